"""core/visible.py: text of others, made safe to look at."""

import pytest

from colibri.core.visible import ascii_only, visible


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


def test_in_prose_line_breaks_and_tabs_stay() -> None:
    assert visible("a\nb\tc\r", lines=True) == "a\nb\tc\\r"


def test_keys_become_ascii() -> None:
    """Design §9: objects with ASCII keys."""
    assert ascii_only("plain key") == "plain key"
    assert ascii_only("über\n\x1b\ud800") == "\\xfcber\\n\\x1b\\ud800"
