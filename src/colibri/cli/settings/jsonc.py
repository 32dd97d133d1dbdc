"""JSON as settings files have it, changed in one place and byte for byte the same elsewhere.

A client reads plain JSON, or JSON with comments, or also commas before a closing bracket: a Json
says which. `load` gives the value; `put` sets one member and leaves order, comments, indentation
and line ends as they are. What the client could not read is Broken, at a line and a column.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

BOM = "\ufeff"

_BLANKS = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_STRINGS = json.JSONDecoder()
_LITERALS = {"true": True, "false": False, "null": None}


class Broken(Exception):
    """The text is not what it should be; the message names the place."""

    @classmethod
    def at(cls, text: str, at: int, what: str) -> "Broken":
        line = text.count("\n", 0, at) + 1
        column = at - text.rfind("\n", 0, at)
        return cls(f"line {line}, column {column}: {what}")


class Node(NamedTuple):
    """A value and the part of the text that it stands in."""

    start: int
    end: int
    value: Any
    members: "tuple[Member, ...] | None" = None  # of an object
    comma: bool = False  # after the last member

    def member(self, key: str) -> "Member | None":
        """The one that counts: of several with one name, the last."""
        return next((m for m in reversed(self.members or ()) if m.key == key), None)


class Member(NamedTuple):
    key: str
    start: int
    node: Node


@dataclass(frozen=True, slots=True)
class Json:
    """What a client takes for JSON."""

    comments: bool = False
    commas: bool = False

    def load(self, text: str) -> Any:
        """The value; None when there is none but blanks and comments."""
        root = self._parse(text)
        return None if root is None else root.value

    def put(self, text: str, path: tuple[str, ...], value: Any) -> str:
        """The text with this value at the path; objects that are missing or null are made."""
        node = self._parse(text)
        if node is None:
            return _begin(text, _nest(path, value))
        style = _Style.of(text, node)
        for depth, key in enumerate(path):
            if node.value is None:
                return style.replace(node, _nest(path[depth:], value))
            if node.members is None:
                raise Broken.at(text, node.start, f"{_name(path[:depth])} is not an object")
            member = node.member(key)
            if member is None:
                return style.add(node, key, _nest(path[depth + 1 :], value))
            node = member.node
        return text if node.value == value else style.replace(node, value)

    def _parse(self, text: str) -> Node | None:
        reader = _Reader(text, self)
        try:
            return reader.document()
        except RecursionError:
            raise Broken.at(text, 0, "it is nested too deep") from None


class _Reader:
    """Recursive descent over the text; `at` is the next character."""

    def __init__(self, text: str, dialect: Json) -> None:
        self.text = text
        self.dialect = dialect
        self.at = len(BOM) if text.startswith(BOM) else 0

    def document(self) -> Node | None:
        self.skip()
        if self.at == len(self.text):
            return None
        root = self.value()
        self.skip()
        if self.at < len(self.text):
            raise self.broken("there is more text after the end of the value")
        return root

    def value(self) -> Node:
        match self.peek():
            case "{":
                return self.object()
            case "[":
                return self.array()
            case '"':
                start, value = self.at, self.string()
                return Node(start, self.at, value)
        scalar = _SCALAR.match(self.text, self.at)
        if scalar is None:
            raise self.broken("a value is missing")
        self.at = scalar.end()
        word = scalar.group()
        return Node(*scalar.span(), _LITERALS[word] if word in _LITERALS else float(word))

    def object(self) -> Node:
        start = self.at
        members: list[Member] = []
        comma = self.items("}", lambda: members.append(self.member()))
        value = {member.key: member.node.value for member in members}
        return Node(start, self.at, value, tuple(members), comma)

    def array(self) -> Node:
        start = self.at
        values: list[Any] = []
        self.items("]", lambda: values.append(self.value().value))
        return Node(start, self.at, values)

    def items(self, closing: str, read: Callable[[], None]) -> bool:
        """Everything up to the closing bracket; whether a comma stands before it."""
        self.at += 1
        self.skip()
        comma = False
        while self.peek() != closing:
            read()
            self.skip()
            comma = self.peek() == ","
            if not comma and self.peek() != closing:
                raise self.broken(f"a comma or {closing} is missing")
            self.at += comma
            self.skip()
            if comma and self.peek() == closing and not self.dialect.commas:
                raise self.broken(f"a comma before {closing}, which this client does not accept")
        self.at += 1
        return comma

    def member(self) -> Member:
        start = self.at
        if self.peek() != '"':
            raise self.broken("a name in double quotes is missing")
        key = self.string()
        self.skip()
        if self.peek() != ":":
            raise self.broken("a colon is missing")
        self.at += 1
        self.skip()
        return Member(key, start, self.value())

    def string(self) -> str:
        try:
            value: str
            value, self.at = _STRINGS.raw_decode(self.text, self.at)
        except json.JSONDecodeError as problem:
            what = "a string does not end, or holds what a string cannot hold"
            raise Broken.at(self.text, problem.pos, what) from None
        return value

    def skip(self) -> None:
        """Blanks, and comments where they are allowed."""
        while True:
            blanks = _BLANKS.match(self.text, self.at)
            assert blanks is not None  # it matches nothing, too
            self.at = blanks.end()
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                return
            if not self.dialect.comments:
                raise self.broken("a comment, which this client does not accept")
            self.at = comment.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def broken(self, what: str) -> Broken:
        return Broken.at(self.text, self.at, what)


class _Style(NamedTuple):
    """A text, and how its lines are indented and ended."""

    text: str
    unit: str = "  "
    newline: str = "\n"

    @classmethod
    def of(cls, text: str, root: Node) -> "_Style":
        first = root.members[0].start if root.members else 0
        unit = _indentation(text, first) if _begins_line(text, first) else ""
        return cls(text, unit or "  ", line_end(text))

    def replace(self, node: Node, value: Any) -> str:
        new = self.render(value, _indentation(self.text, node.start))
        return self.text[: node.start] + new + self.text[node.end :]

    def add(self, parent: Node, key: str, value: Any) -> str:
        """After the last member, and after a comment that may follow it."""
        text, close = self.text, parent.end - 1
        tail = len(text[:close].rstrip(" \t\r\n"))
        new = self._member(parent, key, value)
        if tail == parent.start + 1:  # nothing in it but blanks, which go
            base = _indentation(text, parent.start)
            return text[:tail] + new + self.newline + base + text[close:]
        if parent.comma:
            return text[:tail] + new + "," + text[tail:]
        last = parent.members[-1].node.end if parent.members else tail
        comma = "," if parent.members else ""
        return text[:last] + comma + text[last:tail] + new + text[tail:]

    def _member(self, parent: Node, key: str, value: Any) -> str:
        """A new member: on a line of its own, unless the others stand on one."""
        members = parent.members
        if members and "\n" not in self.text[parent.start : parent.end]:
            return f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        if members and _begins_line(self.text, members[-1].start):
            indent = _indentation(self.text, members[-1].start)
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
    return mark + above + _Style(text, newline=newline).render(value) + newline


def line_end(text: str) -> str:
    """What ends the lines of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def _nest(path: tuple[str, ...], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _name(path: tuple[str, ...]) -> str:
    return ".".join(path) or "the file"


def _begins_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _indentation(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]
