"""Makes foreign text safe to show: invisible characters are escaped.

A terminal obeys control characters, bidirectional controls mislead readers, and a model reads what
people cannot see. So each character that Unicode puts into category Other, that separates lines, or
that a display may ignore is written as an escape such as \\x1b or \\u202e.

Persian, Hindi and emoji need joiners and variation selectors: these stay where they have an effect,
between two letters of such a script or after a symbol.
"""

import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
# Default_Ignorable_Code_Point, unless its category covers it; then characters that are only blank.
_IGNORED = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),
        (0x115F, 0x1160),  # fillers of Hangul, like the next but two
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),  # variation selectors
        (0xFFA0, 0xFFA0),
        (0x2800, 0x2800),
        (0x1D159, 0x1D159),
    )
    for code in range(first, last + 1)
)
_TAGS = ("\U000e0000", "\U000e0fff")  # and further selectors: not listed, for the start-up's sake
_JOINERS, _SELECTORS = "\u200c\u200d", "\ufe0e\ufe0f"


def visible(text: str, *, lines: bool = False) -> str:
    """The text with invisible characters escaped; with `lines`, line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(
        _escaped(character)
        if _is_invisible(character) and character not in kept and not _has_effect(text, at)
        else character
        for at, character in enumerate(text)
    )


def ascii_only(text: str) -> str:
    """The same for the keys of an object, which must be ASCII in records and answers."""
    return "".join(c if c.isascii() and c.isprintable() else _escaped(c) for c in text)


def _is_invisible(character: str) -> bool:
    if unicodedata.category(character) in _UNSEEN or character in _IGNORED:
        return True
    first, last = _TAGS
    return first <= character <= last


def _has_effect(text: str, at: int) -> bool:
    """Whether a joiner or a selector is where a script needs it."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if text[at] in _SELECTORS:
        return before != "" and (_is_symbol(before) or after == "\u20e3")  # a key, such as 1️⃣
    return text[at] in _JOINERS and _joins(before) and _joins(after)


def _is_symbol(character: str) -> bool:
    return unicodedata.category(character) in ("So", "Sm", "Po") and not character.isascii()


def _joins(character: str) -> bool:
    """A letter or mark of a script that joins, a symbol, or the selector after one."""
    if character == "" or character.isascii():
        return False
    return character in _SELECTORS or unicodedata.category(character)[0] in "LMS"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
