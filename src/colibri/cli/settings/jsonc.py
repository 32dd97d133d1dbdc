"""JSON as settings files have it, changed in one place and byte for byte the same elsewhere.

A client reads plain JSON, or JSON with comments, or also commas before a closing bracket: a Json
says which. `load` gives the value; `put` sets one member and leaves order, comments, indentation
and line ends as they are. What the client could not read is Broken, at a line and a column.

Comments and such commas are first replaced by blanks: what is left is plain JSON with every
character in its place, which Python's own reader takes apart.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

BOM = "\ufeff"

# Possessive, and with an end that may be missing: no text is looked at twice.
_STRING = r'"(?:\\.|[^"\\])*+"?'
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?", re.DOTALL)
_STRING_OR_COMMA = re.compile(rf"{_STRING}|,(?=[ \t\r\n]*+[}}\]])", re.DOTALL)
_BLANKS = re.compile(r"[ \t\r\n]*+")


class Broken(Exception):
    """The text is not what it should be; the message names the place."""

    @classmethod
    def at(cls, text: str, at: int, what: str) -> "Broken":
        line = text.count("\n", 0, at) + 1
        column = at - text.rfind("\n", 0, at)
        return cls(f"line {line}, column {column}: {what}")


class Node(NamedTuple):
    """A value and the part of the text that it stands in; of a member also its name."""

    start: int
    end: int
    value: Any
    key: str = ""
    name_at: int = 0


@dataclass(frozen=True, slots=True)
class Json:
    """What a client takes for JSON."""

    comments: bool = False
    commas: bool = False

    def load(self, text: str) -> Any:
        """The value; None when there is none but blanks and comments."""
        root = _root(text, self._plain(text))
        return None if root is None else root.value

    def put(self, text: str, path: tuple[str, ...], value: Any) -> str:
        """The text with this value at the path; objects that are missing or null are made."""
        plain = self._plain(text)
        node = _root(text, plain)
        if node is None:
            return _begin(text, _nest(path, value))
        style = _Style.of(text, plain, node)
        for depth, key in enumerate(path):
            if node.value is None:
                return style.replace(node, _nest(path[depth:], value))
            if not isinstance(node.value, dict):
                name = ".".join(path[:depth]) or "the file"
                raise Broken.at(text, node.start, f"{name} is not an object")
            # Of several with one name, the last counts.
            named = [one for one in _members(plain, node) if one.key == key]
            if not named:
                return style.add(node, key, _nest(path[depth + 1 :], value))
            node = named[-1]
        return text if node.value == value else style.replace(node, value)

    def _plain(self, text: str) -> str:
        """Plain JSON with every character at the same offset; Broken if the client reads less."""

        def without_comment(found: re.Match[str]) -> str:
            token = found[0]
            if token.startswith('"'):
                return token
            if not self.comments:
                raise Broken.at(text, found.start(), "a comment, which this client does not accept")
            if token.startswith("/*") and not token.endswith("*/"):
                raise Broken.at(text, found.start(), "a comment does not end")
            return re.sub(r"[^\r\n]", " ", token)

        def without_comma(found: re.Match[str]) -> str:
            if found[0] == "," and not self.commas:
                raise Broken.at(text, found.start(), "a comma that this client does not accept")
            return " " if found[0] == "," else found[0]

        unmarked = f" {text[1:]}" if text.startswith(BOM) else text
        plain = _STRING_OR_COMMENT.sub(without_comment, unmarked)
        return _STRING_OR_COMMA.sub(without_comma, plain)


def _root(text: str, plain: str) -> Node | None:
    start = _skip(plain, 0)
    if start == len(plain):
        return None
    try:
        value = json.loads(plain, parse_int=float, parse_constant=_refuse)
    except json.JSONDecodeError as problem:
        raise Broken.at(text, problem.pos, problem.msg.lower()) from None
    except RecursionError:
        raise Broken.at(text, 0, "it is nested too deep") from None
    return Node(start, len(plain.rstrip(" \t\r\n")), value)


def _refuse(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not JSON", "", 0)


def _members(plain: str, parent: Node) -> list[Node]:
    """Of an object that is known to be one."""
    read = json.JSONDecoder(parse_int=float).raw_decode
    found: list[Node] = []
    at = _skip(plain, parent.start + 1)
    while plain[at] != "}":
        name_at = at
        key, at = read(plain, at)
        start = _skip(plain, _skip(plain, at) + 1)
        value, end = read(plain, start)
        found.append(Node(start, end, value, key, name_at))
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return found


def _skip(plain: str, at: int) -> int:
    blanks = _BLANKS.match(plain, at)
    assert blanks is not None  # it matches nothing, too
    return blanks.end()


class _Style(NamedTuple):
    """A text, and how its lines are indented and ended."""

    text: str
    plain: str
    unit: str = "  "
    newline: str = "\n"

    @classmethod
    def of(cls, text: str, plain: str, root: Node) -> "_Style":
        members = _members(plain, root) if isinstance(root.value, dict) else []
        first = members[0].name_at if members else 0
        unit = _indentation(text, first) if _begins_line(text, first) else ""
        return cls(text, plain, unit or "  ", line_end(text))

    def replace(self, node: Node, value: Any) -> str:
        new = self.render(value, _indentation(self.text, node.start))
        return self.text[: node.start] + new + self.text[node.end :]

    def add(self, parent: Node, key: str, value: Any) -> str:
        """After the last member, and after a comment that may follow it."""
        text, close = self.text, parent.end - 1
        members = _members(self.plain, parent)
        tail = len(text[:close].rstrip(" \t\r\n"))
        new = self._member(parent, members, key, value)
        if tail == parent.start + 1:  # nothing in it but blanks, which go
            base = _indentation(text, parent.start)
            return text[:tail] + new + self.newline + base + text[close:]
        if not members:
            return text[:tail] + new + text[tail:]
        last = members[-1].end
        if self._has_comma(last, close):
            return text[:tail] + new + "," + text[tail:]
        return text[:last] + "," + text[last:tail] + new + text[tail:]

    def _has_comma(self, start: int, end: int) -> bool:
        """Whether a comma stands there, and not in a comment."""
        return "," in _STRING_OR_COMMENT.sub("", self.text[start:end])

    def _member(self, parent: Node, members: list[Node], key: str, value: Any) -> str:
        """A new member: on a line of its own, unless the others stand on one."""
        if members and "\n" not in self.text[parent.start : parent.end]:
            return f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        if members and _begins_line(self.text, members[-1].name_at):
            indent = _indentation(self.text, members[-1].name_at)
        else:
            indent = _indentation(self.text, parent.start) + self.unit
        return f"{self.newline}{indent}{json.dumps(key)}: {self.render(value, indent)}"

    def render(self, value: Any, indent: str = "") -> str:
        """Objects over several lines, everything else on one."""
        if not isinstance(value, dict):
            return json.dumps(value, ensure_ascii=False)
        inner = indent + self.unit
        members = [f"{inner}{json.dumps(k)}: {self.render(v, inner)}" for k, v in value.items()]
        return "{" + self.newline + f",{self.newline}".join(members) + self.newline + indent + "}"


def _begin(text: str, value: Any) -> str:
    """A document where there is none yet; comments stay above it."""
    newline = line_end(text)
    mark, above = (BOM, text[1:]) if text.startswith(BOM) else ("", text)
    above = above.rstrip() + newline if above.strip() else ""
    return mark + above + _Style(text, text, newline=newline).render(value) + newline


def line_end(text: str) -> str:
    """What ends the lines of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def _nest(path: tuple[str, ...], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _begins_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _indentation(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]
