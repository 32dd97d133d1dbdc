"""JSON as settings files have it, changed in one place and byte for byte the same elsewhere.

A client reads plain JSON, or JSON with comments, or also commas before a closing bracket: a Json
says which. `load` gives the value; `put` sets one member, `append` adds an item to a list and
`drop` takes items out again; order, comments, indentation and line ends stay as they are. What the
client could not read is Broken, at a line and a column.

Comments and such commas are first replaced by blanks: what is left is plain JSON with every
character in its place, which Python's own reader takes apart.
"""

import json
import re
from collections.abc import Callable, Sequence
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

    def append(self, text: str, path: tuple[str, ...], item: Any) -> str:
        """The text with one more item in the list at the path, which is made if it is missing."""
        plain = self._plain(text)
        way = _way(text, plain, path)
        if len(way) <= len(path) or way[-1].value is None:
            return self.put(text, path, [item])
        if not isinstance(way[-1].value, list):
            raise Broken.at(text, way[-1].start, f"{'.'.join(path)} is not a list")
        return _Style.of(text, plain, way[0]).add(way[-1], None, item)

    def drop(self, text: str, path: tuple[str | int, ...], unwanted: Callable[[Any], bool]) -> str:
        """The text without such items of the list at the path; what is empty then goes too."""
        plain = self._plain(text)
        way = _way(text, plain, path)
        if len(way) <= len(path) or not isinstance(way[-1].value, list):
            return text
        gone = [item for item in _members(plain, way[-1]) if unwanted(item.value)]
        if not gone:
            return text
        item = gone[-1]
        while len(way) > 1 and len(_members(plain, way[-1])) == 1:
            item = way.pop()
        return self.drop(_cut(text, plain, way[-1], item), path, unwanted)

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


def _way(text: str, plain: str, path: Sequence[str | int]) -> list[Node]:
    """The nodes from the root to the path, as far as there are any; a number is one of a list."""
    root = _root(text, plain)
    way = [] if root is None else [root]
    for key in path:
        value = way[-1].value if way else None
        inside = _members(plain, way[-1]) if isinstance(value, dict | list) else []
        if isinstance(key, int):
            named = inside[key : key + 1]
        else:
            named = [one for one in inside if one.key == key]
        if not named:
            break
        way.append(named[-1])
    return way


def _members(plain: str, parent: Node) -> list[Node]:
    """Of an object or a list that is known to be one."""
    read = json.JSONDecoder(parse_int=float).raw_decode
    found: list[Node] = []
    at = _skip(plain, parent.start + 1)
    while plain[at] not in "}]":
        name_at, key = at, ""
        if isinstance(parent.value, dict):
            key, at = read(plain, at)
            at = _skip(plain, _skip(plain, at) + 1)
        value, end = read(plain, at)
        found.append(Node(at, end, value, key, name_at))
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return found


def _cut(text: str, plain: str, parent: Node, item: Node) -> str:
    """The text without a member, its comma and the blanks before it."""
    members = _members(plain, parent)
    before = max((one.end for one in members if one.end < item.end), default=parent.start + 1)
    after = min((one.name_at for one in members if one.start > item.start), default=parent.end - 1)
    head, tail = text[: item.name_at], text[item.end :]
    comma = _comma(text, item.end, after)
    if comma is not None:
        tail = text[item.end : comma] + text[comma + 1 :]
    elif (comma := _comma(text, before, item.name_at)) is not None:
        head = text[:comma] + text[comma + 1 : item.name_at]
    # A line comment must not swallow what follows.
    ends_line = tail.lstrip(" \t")[:1] in ("\r", "\n") or "\n" not in text[before : item.name_at]
    return head.rstrip(" \t\r\n" if ends_line else " \t") + tail


def _comma(text: str, start: int, end: int) -> int | None:
    """Where a comma stands between two members, and not in a comment."""
    bare = _STRING_OR_COMMENT.sub(lambda found: " " * len(found[0]), text[start:end])
    at = bare.find(",")
    return None if at < 0 else start + at


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

    def add(self, parent: Node, key: str | None, value: Any) -> str:
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
        if _comma(text, last, close) is not None:
            return text[:tail] + new + "," + text[tail:]
        return text[:last] + "," + text[last:tail] + new + text[tail:]

    def _member(self, parent: Node, members: list[Node], key: str | None, value: Any) -> str:
        """A new member: on a line of its own, unless the others stand on one."""
        name = "" if key is None else f"{json.dumps(key)}: "
        if members and "\n" not in self.text[parent.start : parent.end]:
            return f" {name}{json.dumps(value, ensure_ascii=False)}"
        if members and _begins_line(self.text, members[-1].name_at):
            indent = _indentation(self.text, members[-1].name_at)
        else:
            indent = _indentation(self.text, parent.start) + self.unit
        return f"{self.newline}{indent}{name}{self.render(value, indent)}"

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
