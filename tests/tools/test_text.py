"""tools/text.py: what text may hold, and how a field gets its rule."""

import unicodedata
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, UnsetType

from colibri.core.errors import Invalid
from colibri.tools import schema
from colibri.tools.catalogue import CATALOGUE
from colibri.tools.text import LINE, PROSE, Description, Name, TaskId, Title, rule_of
from colibri.tools.tool import Tool

CONTROLS = {chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cc"}
TURNING = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def everything() -> Iterator[str]:
    return (chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF)


def test_a_line_refuses_every_control_and_bidi_override_and_nothing_else() -> None:
    """Specification 5.8: no C0, C1 or bidi override and isolate controls."""
    refused = {c for c in everything() if LINE.breach(f"a{c}") is not None}
    assert refused == CONTROLS | TURNING


def test_prose_refuses_the_controls_but_line_breaks_and_tabs() -> None:
    """Specification 5.8: no C0 or C1 controls but \\n, \\r and \\t."""
    refused = {c for c in everything() if PROSE.breach(f"a{c}") is not None}
    assert refused == CONTROLS - {"\n", "\r", "\t"}


def test_a_breach_names_the_character_and_its_place_but_not_the_text() -> None:
    """Specification 4.12: what was wrong, never the value itself."""
    assert LINE.breach("ab\x1bcd\0") == "holds the control character U+001B at position 2"


@pytest.mark.parametrize("blank", ["", " ", "\u3000\u00a0", "\u2028"])
def test_a_line_is_not_blank_and_prose_may_be(blank: str) -> None:
    """Specification 5.8: titles, projects, assignees and ids are not blank."""
    assert LINE.breach(blank) == "is blank"
    assert PROSE.breach(blank) is None


@pytest.mark.parametrize(
    ("annotation", "rule"),
    [
        (Title, LINE),
        (Name, LINE),
        (Name | None, LINE),
        (Annotated[Name | UnsetType | None, Meta(description="-")], LINE),
        (Annotated[Description | None, Meta(description="-")], PROSE),
        (TaskId, None),
        (str, None),
        (Annotated[str, Meta(extra={"other": 1})], None),
        (Annotated[str, "no Meta"], None),
        (str | None, None),
    ],
)
def test_a_rule_is_found_also_where_a_field_may_be_something_else(
    annotation: object, rule: object
) -> None:
    """tools/text.py: also if it is one of several types."""
    assert rule_of(annotation) is rule


@pytest.mark.parametrize("id", ["T-0001", "T-9999", "T-10000", "T-123456789"])
def test_an_id_of_the_right_form_passes(id: str) -> None:
    """Specification 5.9: `T-0001`, five digits after 9999."""
    assert msgspec.convert(id, TaskId) == id


@pytest.mark.parametrize("id", ["T-1", "T-0001\n", " T-0001", "T-0001 ", "t-0001", "T-1234567890"])
def test_an_id_of_another_form_does_not(id: str) -> None:
    """Specification 5.9."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(id, TaskId)


def places(shown: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every place in arguments that takes a text: its path, and arguments with U+0000 there."""
    for name, field in shown["properties"].items():
        for option in field.get("anyOf", [field]):
            if option.get("type") == "object":
                yield from ((f"{name}.{path}", {name: inner}) for path, inner in places(option))
            elif option.get("type") == "array":
                yield f"{name}.0", {name: ["a\0b"]}
            elif option.get("type") == "string" or "enum" in option:
                yield name, {name: "a\0b"}


@pytest.mark.parametrize("tool", CATALOGUE, ids=lambda tool: tool.name)
def test_no_argument_may_hold_the_character_0(tool: Tool) -> None:
    """Specification 5.8: PostgreSQL could not store it, and no engine is given it."""
    for path, arguments in places(schema.input_schema(tool.input)):
        required = {"intent": "some"} if tool.name == "audit_session_start" else {}
        with pytest.raises(Invalid) as told:
            schema.Validator(tool.input)({**required, **arguments})
        assert path.partition(".")[0] in {
            str(one["path"]).partition(".")[0].partition("[")[0] for one in told.value.issues
        }
