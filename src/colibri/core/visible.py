"""Text that somebody else wrote, made safe to look at: nothing in it works unseen.

A terminal obeys control characters, a reader is misled by those that turn the direction of writing
around, and a model reads what people cannot see. Each of them is written as \\x1b or \\u202e.
"""

import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # Persian, Hindi and emoji are not written without them


def visible(text: str, *, lines: bool = False) -> str:
    """The text with what cannot be seen spelt out; with `lines`, line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    kept = _JOINERS + "\n\t" * lines
    return "".join(
        character if character in kept or not _is_unseen(character) else _spelt(character)
        for character in text
    )


def ascii_only(text: str) -> str:
    """The same for the keys of an object, of which records and answers take only ASCII."""
    return "".join(c if c.isascii() and c.isprintable() else _spelt(c) for c in text)


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN


def _spelt(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
