"""tools/text.py: what text may hold, and how a field gets its rule."""

import unicodedata
from collections.abc import Iterator
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta, UnsetType

from colibri.tools.text import LINE, PROSE, Description, Name, TaskId, Title, rule_of

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
