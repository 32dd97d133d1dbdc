"""core/visible.py: text of others, made safe to look at."""

import sys
import unicodedata

import pytest

from colibri.core.visible import ascii_only, visible
from tests.support.ignorable import ignorable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Straße 日本語 👩‍🚀 می‌خواهم", "Straße 日本語 👩‍🚀 می‌خواهم"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b2J", "\\x9b2J"),
        ("\x7f\x00\r", "\\x7f\\x00\\r"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("\u200b\ufeff\u00ad", "\\u200b\\ufeff\\xad"),
        ("\U000e0041", "\\U000e0041"),  # a tag: models read what people cannot see
        ("\u2028\u2029\x85", "\\u2028\\u2029\\x85"),
        ("\ud800", "\\ud800"),
        ("a\nb\tc", "a\\nb\\tc"),
    ],
)
def test_what_cannot_be_seen_is_spelt_out(text: str, shown: str) -> None:
    """C0, DEL, C1, bidi and zero-width controls, but for the joiners of scripts."""
    assert visible(text) == shown


def test_every_ignorable_character_is_spelt_out_after_a_letter() -> None:
    """Variation selectors, fillers, tags, joiners: a model reads them, people do not."""
    for character in ignorable():
        for text in (character, f"a{character}", f"a{character}b", f"👍{character * 2}"):
            shown = visible(text)
            assert character not in shown.replace(f"👍{character}", "", 1), hex(ord(character))
    assert visible("a" + "".join(ignorable())).isprintable()


def test_of_every_character_only_what_can_be_seen_is_shown_as_it_is() -> None:
    """Held against the categories of Python's own tables."""
    # where nobody has a character, some will do
    empty = (range(0x40000, 0xE0000, 251), range(0xF0000, sys.maxunicode + 1, 251))
    every = {
        chr(code) for part in (range(0x40000), range(0xE0000, 0xF0000), *empty) for code in part
    }
    shown = {one for one in every if visible(one) == one}
    assert {unicodedata.category(one)[0] for one in shown} == set("LMNPSZ")
    assert shown.isdisjoint(ignorable())
    spaces = {one for one in shown if unicodedata.category(one)[0] == "Z"}
    assert {unicodedata.category(one) for one in spaces} == {"Zs"}
    seen = {
        one for one in every - shown - set(ignorable()) if unicodedata.category(one)[0] in "LMNPSZ"
    }
    assert seen == set("\u2028\u2029\u2800\U0001d159")


@pytest.mark.parametrize(
    "text", ["❤️", "👩‍🚀", "🏳️‍🌈", "1️⃣", "می‌خواهم", "क्‍ष", "⚠️ mind it", "‼️", "日本語　です", "a\u00a0b"]
)
def test_what_a_script_or_an_emoji_needs_stays(text: str) -> None:
    assert visible(text) == text


def test_in_prose_line_breaks_and_tabs_stay() -> None:
    assert visible("a\nb\tc\r", lines=True) == "a\nb\tc\\r"


def test_keys_become_ascii() -> None:
    """Specification 9.2: objects with ASCII keys."""
    assert ascii_only("plain key") == "plain key"
    assert ascii_only("über\n\x1b\ud800") == "\\xfcber\\n\\x1b\\ud800"
