"""A deed that somebody altered, removed, moved or bound elsewhere after it was written."""

import copy
from collections.abc import Callable
from types import ModuleType

import pytest

from tests.vectors.builder import (
    Object,
    b64,
    edit_header,
    edit_payload,
    headers,
    log_bundle,
    rehead,
    session_bundle,
    text_of,
    without,
)
from tests.vectors.deeds import A, T, told
from tests.verify.conftest import Node

DEED, TEXT = 16, 17  # the command that failed


def moved(bundle: Object) -> Object:
    """The failed run and the record after its text change places."""
    lie = copy.deepcopy(bundle)
    first = next(at for at, one in enumerate(headers(bundle)) if one["seq"] == DEED)
    lie["headers"][first : first + 3] = lie["headers"][first : first + 3][::-1]
    return lie


LIES: dict[str, Callable[[Object], Object]] = {
    "exit-code": lambda bundle: edit_payload(bundle, DEED, exit=0),
    "command": lambda bundle: edit_payload(bundle, TEXT, command="true"),
    "removed": lambda bundle: without(bundle, DEED, TEXT),
    "removed-and-a-new-head": lambda bundle: rehead(without(bundle, DEED, TEXT)),
    "bound-to-nothing": lambda bundle: edit_header(bundle, DEED, session=None, task=None),
    "bound-to-another-session": lambda bundle: edit_header(bundle, DEED, session="S-B"),
    "bound-to-another-task": lambda bundle: edit_header(bundle, DEED, task="T-0002"),
    "moved": moved,
}


@pytest.mark.parametrize("lie", LIES)
def test_both_verifiers_find_it(python: ModuleType, node: Node, lie: str) -> None:
    """Specification 19.9: in the bundle of the log and in that of the session."""
    log = told().log
    bundles = [LIES[lie](one) for one in (log_bundle(log), session_bundle(log, A, [T]))]
    others = node("verify", [{"base64": b64(text_of(one))} for one in bundles])
    for bundle, other in zip(bundles, others, strict=True):
        mine = python.verify(text_of(bundle)).as_json()
        assert mine["verdict"] == other["verdict"] == "bad"
        assert [one["code"] for one in mine["findings"]] == [
            one["code"] for one in other["findings"]
        ]
