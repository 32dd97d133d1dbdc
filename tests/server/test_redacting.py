"""server/pipeline.py between stages 2 and 3: from there on nothing sees a secret."""

from typing import Any

import pytest
from msgspec import Struct

from colibri.server import ColibriToolConfig, register_colibri_tool
from tests.contract import Linked, Recording
from tests.support.made_up_secrets import GITHUB

LEFT = "[redacted:github-token]"


class Free(Struct):
    env: dict[str, str] = {}
    items: list[str] = []
    n: int = 0


class Strict(Struct, forbid_unknown_fields=True):
    inner: Free


@pytest.fixture
def seen() -> list[Any]:
    return []


@pytest.fixture
def sink() -> Recording:
    return Recording()


@pytest.fixture
def server(seen: list[Any], sink: Recording) -> Linked:
    linked = Linked(audit_sink=sink)
    for name, struct in (("free", Free), ("strict", Strict)):
        for lane in ("write", "read", "probe"):
            config = ColibriToolConfig(input_schema=struct, lane=lane)
            register_colibri_tool(linked.ctx, f"{name}_{lane}", config, seen.append)
    return linked


@pytest.mark.parametrize("lane", ["write", "read", "probe"])
def test_handler_and_sink_see_only_what_is_left(
    server: Linked, seen: list[Any], sink: Recording, lane: str
) -> None:
    """Specification 4.5: in lists, in objects and in their keys."""
    with server:
        arguments = {"env": {"TOKEN": GITHUB, GITHUB: "x"}, "items": ["y", GITHUB], "n": 3}
        result = server.call(f"free_{lane}", arguments)
    left = Free(env={"TOKEN": LEFT, LEFT: "x"}, items=["y", LEFT], n=3)
    assert seen == [left]
    assert sink.pair()[0].args == left
    assert [found["path"] for found in result["_meta"]["colibri/redacted"]] == [
        "env.TOKEN",
        f"env.{LEFT}",
        "items[1]",
    ]


def test_arguments_without_a_secret_are_passed_on_as_they_are(
    server: Linked, seen: list[Any]
) -> None:
    with server:
        result = server.call("free_write", {"items": ["a" * 100]})
    assert seen == [Free(items=["a" * 100])]
    assert "_meta" not in result


def test_a_sink_never_sees_a_secret_that_stage_2_refused(server: Linked, sink: Recording) -> None:
    """Specification 17.4: {size, sha256} of the line; and the error repeats no key."""
    with server:
        result = server.call("strict_write", {GITHUB: 1, "inner": {"n": GITHUB}})
    enter, end = sink.pair()
    assert isinstance(enter.args, dict)
    assert sorted(enter.args) == ["sha256", "size"]
    assert GITHUB not in str(end.error) + str(result) + repr(sink.events)
    assert LEFT in str(end.error)
