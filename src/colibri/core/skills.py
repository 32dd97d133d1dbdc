"""Parses SKILL.md: the bytes of a file become a Skill, or Malformed says what is wrong.

FORMAT: the open Agent Skills format, and the fields that Colibri adds

    ---                     the first line; a byte order mark before it is skipped
    name                    required: the name of its folder, a-z, 0-9 and single hyphens, up to 64
    description             required: what it does and when to use it
    license, compatibility  text
    allowed-tools           a list, or words
    metadata                a mapping; its version counts if the field below is missing
    version, entrypoint     text
    capabilities            a list, or words: read, write, spawn, audit, admin
    greekLetter             text
    …                       anything else is kept
    ---                     the line that ends it, within the first 64 KiB; Markdown follows

An optional field of the wrong type is kept with the unknown fields, under its own name.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from colibri.core.errors import Malformed

T = TypeVar("T")

CAPABILITIES = ("read", "write", "spawn", "audit", "admin")
CANONICAL = "colibri-"
MAX_HEAD = 64 * 1024
MAX_NAME = 64
MAX_DESCRIPTION = 1024

_BOM = b"\xef\xbb\xbf"
_BEGIN = re.compile(rb"---[ \t]*+\r?\n")
_END = re.compile(rb"\n---[ \t]*+\r?\n")
_NAME = re.compile(r"[a-z0-9]++(?:-[a-z0-9]++)*+")
_WORD = re.compile(r"[^\s,(]++(?:\([^)]{0,256}+\))?")  # Bash(git add:*) is one word


class Skill(NamedTuple):
    """The fields of a skill's frontmatter."""

    name: str
    description: str
    version: str | None
    capabilities: tuple[str, ...]
    greek_letter: str | None
    canonical: bool
    license: str | None
    compatibility: str | None
    entrypoint: str | None
    allowed_tools: tuple[str, ...]
    metadata: dict[str, Any]
    extra: dict[str, Any]


def between_fences(data: bytes) -> bytes:
    """The text between the fences of a file; raises Malformed."""
    top = data[:MAX_HEAD].removeprefix(_BOM)
    if len(data) <= MAX_HEAD:
        top += b"\n"  # the last line of a file may lack its newline
    begin = _BEGIN.match(top)
    if begin is None:
        raise Malformed("its first line is not --- (in UTF-8), so it has no frontmatter")
    end = _END.search(top, begin.end() - 1)
    if end is None:
        raise Malformed(f"no line --- ends its frontmatter within the first {MAX_HEAD >> 10} KiB")
    return top[begin.end() : end.start() + 1]


def parse(head: bytes, folder: str) -> Skill:
    """The skill that this frontmatter describes, in a file of this folder; raises Malformed."""
    from colibri.core import frontmatter  # noqa: PLC0415 - PyYAML takes 30 ms to load

    fields = frontmatter.parse(head)
    name = _name(fields.pop("name", None), folder)
    description = _description(fields.pop("description", None))
    metadata = _take(fields, "metadata", _mapping) or {}
    return Skill(
        name=name,
        description=description,
        version=_take(fields, "version", _text) or _text(metadata.get("version")),
        capabilities=_take(fields, "capabilities", _capabilities) or (),
        greek_letter=_take(fields, "greekLetter", _text),
        canonical=name.startswith(CANONICAL),
        license=_take(fields, "license", _text),
        compatibility=_take(fields, "compatibility", _text),
        entrypoint=_take(fields, "entrypoint", _text),
        allowed_tools=_take(fields, "allowed-tools", _words) or (),
        metadata=metadata,
        extra=fields,
    )


def matches(skill: Skill, *, words: list[str], capability: str | None) -> bool:
    """Whether every case-folded word is in its name or description, and it has the capability."""
    text = f"{skill.name}\n{skill.description}".casefold()
    return all(word in text for word in words) and capability in (None, *skill.capabilities)


def _name(value: object, folder: str) -> str:
    name = _text(value)
    if name is None:
        raise Malformed("it has no name")
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise Malformed("its name must be 1 to 64 characters: a-z, 0-9 and single hyphens between")
    if name != folder:
        raise Malformed(f"its name is {name}, which is not the name of its folder")
    return name


def _description(value: object) -> str:
    text = _text(value)
    if not text:
        raise Malformed("it has no description, or one that is not text")
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 1] + "…"


def _take(fields: dict[str, Any], key: str, form: Callable[[object], T | None]) -> T | None:
    """Remove a field and return it converted; one of the wrong type stays where it is."""
    value = fields.pop(key, None)
    formed = form(value)
    if formed is None and value is not None:
        fields[key] = value
    return formed


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip() if isinstance(value, str | int) else None


def _words(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return tuple(_WORD.findall(value))
    if not isinstance(value, list):
        return None
    words = tuple(filter(None, map(_text, value)))
    return words if len(words) == len(value) else None


def _capabilities(value: object) -> tuple[str, ...] | None:
    words = _words(value)
    if words is None or not set(words) <= set(CAPABILITIES):
        return None
    return tuple(dict.fromkeys(words))


def _mapping(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
