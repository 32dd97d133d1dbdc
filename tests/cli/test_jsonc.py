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


LIST = ("mcpServers", "on")
OURS = {"hooks": [{"command": "x # ours"}]}


@st.composite
def lists(draw: Any) -> tuple[str, dict[str, Any]]:
    """Documents with a list at LIST, or without one."""
    data = draw(st.dictionaries(st.sampled_from(["a", "on"]), values, max_size=2))
    if draw(st.booleans()):
        inside = draw(st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2))
        if draw(st.booleans()):
            inside["on"] = draw(st.lists(scalars, max_size=3))
        data["mcpServers"] = inside
    return draw(fillers) + written(draw, data) + draw(fillers), data


@given(lists())
def test_an_item_is_added_to_a_list_and_taken_out_again(
    document: tuple[str, dict[str, Any]],
) -> None:
    text, data = document
    inside = data.get("mcpServers", {})
    new = ALL.append(text, LIST, OURS)
    assert plain(new) == {**data, "mcpServers": {**inside, "on": [*inside.get("on", []), OURS]}}
    again = ALL.drop(new, LIST, lambda item: item == OURS)
    assert ALL.drop(again, LIST, lambda item: item == OURS) == again
    empty = not inside or not inside.get("on", [0])  # what was empty before is gone after
    if not empty:
        assert plain(again) == data
    assert "".join(again.split()) == "".join(text.split()) or empty


@given(lists(), st.integers(0, 3))
def test_items_are_taken_out_of_anywhere_and_comments_stay(
    document: tuple[str, dict[str, Any]], count: int
) -> None:
    text, data = document
    listed = data.get("mcpServers", {}).get("on", [])
    unwanted = listed[:count]
    new = ALL.drop(text, LIST, lambda item: item in unwanted)
    left = [item for item in listed if item not in unwanted]
    if left or not listed:
        inside = {"mcpServers": {**data["mcpServers"], "on": left}} if listed else {}
        assert plain(new) == {**data, **inside}
    else:
        assert "on" not in plain(new).get("mcpServers", {})
    if left:
        assert new.count("// x") == text.count("// x")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"mcpServers": {"on": [1]}}', "{}"),
        ('{\n  "a": 1,\n  "mcpServers": {\n    "on": [1]\n  }\n}\n', '{\n  "a": 1\n}\n'),
        ('{"mcpServers": {"on": [1, 2, 1]}}', '{"mcpServers": {"on": [ 2]}}'),
        ('{"a": [0, // x\n 1]}', '{"a": [0, // x\n 1]}'),
        ('{"mcpServers": {"on": [0, // x\n 1]}}', '{"mcpServers": {"on": [0 // x\n]}}'),
        ('{"mcpServers": {"on": [0, 1, ]}}', '{"mcpServers": {"on": [0, ]}}'),
        ('{"mcpServers": {"on": {"on": 1}}}', '{"mcpServers": {"on": {"on": 1}}}'),
        ('{"mcpServers": [1]}', '{"mcpServers": [1]}'),
        ("", ""),
    ],
)
def test_what_is_left_when_items_go(text: str, after: str) -> None:
    assert ALL.drop(text, LIST, lambda item: item == 1) == after


def test_what_is_no_list_gets_no_item() -> None:
    with pytest.raises(Broken, match=r"line 1, column 23: mcpServers\.on is not a list"):
        ALL.append('{"mcpServers": {"on": "x"}}', LIST, OURS)
    assert plain(ALL.append('{"mcpServers": {"on": null}}', LIST, 1)) == {"mcpServers": {"on": [1]}}


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
