"""src/colibri/cli/jsonc.py: whatever surrounds a change, it is the only one."""

import difflib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colibri.cli.settings.jsonc import Broken, Json
from tests.support.user_home import plain

ALL = Json(comments=True, commas=True)
PATH = ("mcpServers", "colibri")
ENTRY = {"command": "/x/colibri", "args": ["serve"]}

scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\/ é{[,:', max_size=4)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab/*", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
servers = st.none() | st.dictionaries(st.sampled_from(["a", "b c"]), values, max_size=2)
fillers = st.sampled_from(["", " ", "\n", "\n  ", "\t", " // x\n", "/* } , */", "\r\n"])


def written(draw: Any, value: Any) -> str:
    """JSON with blanks and comments anywhere, and perhaps commas before closing brackets."""
    if isinstance(value, dict):
        names = [json.dumps(name) + gap(draw) + ":" + gap(draw) for name in value]
        items = [name + written(draw, one) for name, one in zip(names, value.values(), strict=True)]
        return "{" + listed(draw, items) + "}"
    if isinstance(value, list):
        return "[" + listed(draw, [written(draw, one) for one in value]) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


def listed(draw: Any, items: list[str]) -> str:
    comma = draw(st.sampled_from(["", ","])) if items else ""
    return ",".join(gap(draw) + item + gap(draw) for item in items) + comma + gap(draw)


def gap(draw: Any) -> str:
    return str(draw(fillers))


@st.composite
def documents(draw: Any) -> tuple[str, dict[str, Any]]:
    data = draw(st.dictionaries(st.sampled_from(["a", "b", "ui"]), values, max_size=2))
    if draw(st.booleans()):
        data["mcpServers"] = draw(servers)
    return draw(fillers) + written(draw, data) + draw(fillers), data


@given(documents())
def test_a_member_is_added_to_any_document_and_the_rest_stays(
    document: tuple[str, dict[str, Any]],
) -> None:
    text, data = document
    assert ALL.load(text) == data
    new = ALL.put(text, PATH, ENTRY)
    wanted = {**data, "mcpServers": {**(data.get("mcpServers") or {}), "colibri": ENTRY}}
    assert plain(new) == wanted
    assert ALL.put(new, PATH, ENTRY) == new
    if data.get("mcpServers", {}) is not None:
        steps = difflib.SequenceMatcher(None, text, new, autojunk=False).get_opcodes()
        gone = (text[start:end] for tag, start, end, *_ in steps if tag in ("delete", "replace"))
        assert not "".join(gone).strip(), "only blanks of an empty object may go"


@given(st.text('{}[]",:/*\n 1atruefalsn\\', max_size=12))
def test_any_text_is_read_as_python_reads_it_or_refused(text: str) -> None:
    """Plain JSON: the standard library is the judge."""
    try:
        expected = json.loads(text)
    except ValueError:
        expected = ...
    try:
        found = Json().load(text)
    except Broken:
        found = ...
    if text.strip(" \n"):
        assert found == expected
    else:
        assert found is None


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-", "01", "+1", ".5", "1.", "nul", "'a'", "\f1"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(Broken):
        ALL.load(text)
