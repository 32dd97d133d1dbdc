"""Text that somebody else wrote, made safe to look at: nothing in it works unseen.

A terminal obeys control characters, a reader is misled by those that turn the direction of writing
around, and a model reads what people cannot see. Each of them is written as \\x1b or \\u202e:
whatever Unicode calls Other, separates lines, or may be ignored by what displays it.

Persian, Hindi and emoji are not written without joiners and variation selectors: one of these stays
where it does its work, between two letters of such a script or behind a sign.
"""

import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
# Default_Ignorable_Code_Point, as far as the categories do not say it; then what is only blank.
_IGNORED = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),
        (0x115F, 0x1160),  # fillers of Hangul, as the next but two
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),  # variation selectors, as the last
        (0xFFA0, 0xFFA0),
        (0xE0000, 0xE0FFF),
        (0x2800, 0x2800),
        (0x1D159, 0x1D159),
    )
    for code in range(first, last + 1)
)
_JOINERS, _SELECTORS = "\u200c\u200d", "\ufe0e\ufe0f"


def visible(text: str, *, lines: bool = False) -> str:
    """The text with what cannot be seen spelt out; with `lines`, line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(
        _spelt(character)
        if _is_unseen(character) and character not in kept and not _works(text, at)
        else character
        for at, character in enumerate(text)
    )


def ascii_only(text: str) -> str:
    """The same for the keys of an object, of which records and answers take only ASCII."""
    return "".join(c if c.isascii() and c.isprintable() else _spelt(c) for c in text)


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN or character in _IGNORED


def _works(text: str, at: int) -> bool:
    """Whether a joiner or a selector stands where a script needs it."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if text[at] in _SELECTORS:
        return before != "" and (_is_sign(before) or after == "\u20e3")  # a key, such as 1️⃣
    return text[at] in _JOINERS and _joins(before) and _joins(after)


def _is_sign(character: str) -> bool:
    return unicodedata.category(character) in ("So", "Sm", "Po") and not character.isascii()


def _joins(character: str) -> bool:
    """A letter or mark of a script that joins, a sign, or the selector behind one."""
    if character == "" or character.isascii():
        return False
    return character in _SELECTORS or unicodedata.category(character)[0] in "LMS"


def _spelt(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
