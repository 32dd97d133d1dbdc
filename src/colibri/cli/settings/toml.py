"""TOML as settings files have it, changed in one place and byte for byte the same elsewhere.

The standard library reads TOML and does not write it. `put` appends a table, or sets a key of a
table that has a header of its own; other forms (inline tables, dotted keys) it cannot change.
Whoever calls it reads the result again and compares: this module need not be trusted.
"""

import json
import re
import tomllib
from typing import Any

from colibri.cli.settings.jsonc import BOM, Broken, line_end

_NEXT_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
# The parts of a value: texts, comments, line ends, brackets, the rest. A text without an end goes
# on to the end of the line or file, so that it is not begun again at each of its quotes.
_PARTS = re.compile(
    r'"""(?:[^"\\]++|\\.|""?(?!"))*+"{0,5}'
    r"|'''(?:[^']++|''?(?!'))*+'{0,5}"
    r'|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+|\r?\n|[^\"'#\r\n\[\]{}]++|.",
    re.DOTALL,
)


class Toml:
    """The same two verbs as jsonc.Json."""

    def load(self, text: str) -> dict[str, Any]:
        """The document, {} of an empty one."""
        try:
            return tomllib.loads(text.removeprefix(BOM))
        except tomllib.TOMLDecodeError as problem:
            raise Broken(str(problem)) from None

    def put(self, text: str, path: tuple[str, ...], value: Any) -> str:
        """The text with a table, or a key of a table, at the path."""
        if isinstance(value, dict):
            return _append(text, path, value)
        return _assign(text, path[:-1], path[-1], value)


def _append(text: str, path: tuple[str, ...], table: dict[str, Any]) -> str:
    newline = line_end(text)
    gap = ""
    if text.removeprefix(BOM).strip():
        gap = newline if text.endswith("\n") else newline * 2
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {_write(value)}" for key, value in table.items())]
    return text + gap + newline.join(lines) + newline


def _assign(text: str, path: tuple[str, ...], key: str, value: Any) -> str:
    """Set a key in the table with this header; the text as it is when there is no such header."""
    names = r"[ \t]*\.[ \t]*".join(_quoted(name) for name in path)
    header = re.search(rf"^[ \t]*\[[ \t]*{names}[ \t]*\][^\r\n]*", text, re.MULTILINE)
    if header is None:
        return text
    following = _NEXT_HEADER.search(text, header.end())
    end = following.start() if following else len(text)
    name = re.compile(rf"^[ \t]*{_quoted(key)}[ \t]*=[ \t]*", re.MULTILINE)
    found = name.search(text, header.end(), end)
    if found is None:
        line = f"{line_end(text)}{key} = {_write(value)}"
        return text[: header.end()] + line + text[header.end() :]
    return text[: found.end()] + _write(value) + text[_end_of_value(text, found.end()) :]


def _quoted(name: str) -> str:
    """A pattern for a key, bare or in quotes."""
    return rf"[\"']?{re.escape(name)}[\"']?"


def _end_of_value(text: str, start: int) -> int:
    """A value is over where a line or its comment is, and no bracket is open."""
    depth, end = 0, start
    for part in _PARTS.finditer(text, start):
        if depth == 0 and part[0][0] in "#\r\n":
            break
        depth += (part[0] in "[{") - (part[0] in "]}")
        end = part.end()
    return start + len(text[start:end].rstrip(" \t"))


def _write(value: Any) -> str:
    """A string or a list of strings; JSON's escapes are TOML's too."""
    return json.dumps(value, ensure_ascii=False)
