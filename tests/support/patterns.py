"""Every pattern of the package, worst-case texts for it, and whether its time grows too fast.

`collected` finds each pattern where the source makes or uses it; one that cannot be determined
there must be in MADE. `attacks` reads a pattern's grammar: for every repeat, what comes before and
what is repeated. `slow` judges by processor time on texts of growing size.
"""

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import colibri
import colibri_verify
from colibri.core import redaction
from colibri.core.secret_tokens import TOKEN_SHAPES

SOURCE = Path(colibri.__file__).parents[1]
_RUNS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, where it is, and how it is used."""

    where: str
    pattern: str | bytes
    flags: int = 0
    method: str = "finditer"

    def work(self) -> Callable[[str], object]:
        """A function that applies it to a text; a search continues to the end."""
        compiled = re.compile(self.pattern, self.flags)
        name = "finditer" if self.method in ("search", "sub", "subn") else self.method
        run = getattr(compiled, name)
        is_bytes = isinstance(self.pattern, bytes)

        def use(text: str) -> None:
            found = run(text.encode("utf-8", "surrogatepass") if is_bytes else text)
            for _ in found if name == "finditer" else ():
                pass

        return use


def _shapes() -> list[bytes]:
    """One token for each pattern that follows the beginning."""
    ways = {shape.pattern.rpartition(b")")[2]: shape for shape in TOKEN_SHAPES}
    frames = redaction.SHAPES[len(TOKEN_SHAPES) :]
    return [shape.pattern for shape in (*ways.values(), *frames)]


def _tails() -> list[bytes]:
    tails = {shape.tail for shape in redaction.SHAPES if shape.tail}
    return [b"(?:%b){1,%d}+" % (tail, redaction.PIECE) for tail in sorted(tails)]


# By file and expression: the patterns that are built at run time.
MADE: dict[tuple[str, str], Callable[[ModuleType], list[Any]]] = {
    ("redaction.py", "shape.pattern"): lambda module: _shapes(),
    ("redaction.py", "b'(?:%b){1,%d}+' % (tail, PIECE)"): lambda module: _tails(),
    ("secret_values.py", "stop"): lambda module: [module._PEM_STOP, module._PUTTY_STOP],
    ("secret_values.py", "line"): lambda module: [
        module._LINE,
        module._LOGGED_LINE,
        module._HEADER_LINE,
    ],
    ("escapes.py", "pattern"): lambda module: [],  # the function that compiles all of these
    ("colibri_verify.py", "PATTERNS[type].replace('~', '[0-9a-f]')"): lambda module: [
        pattern.replace("~", "[0-9a-f]") for pattern in module.PATTERNS.values()
    ],
    ("log.py", "f'(?<![\\\\w.-]){re.escape(home)}(?![\\\\w.-])'"): lambda module: [
        r"(?<![\w.-])/home/ada(?![\w.-])"
    ],
    ("refusals.py", "begins"): lambda module: [one.begins for one in module._ADVICE.values()],
    ("git.py", "KEPT[name]"): lambda module: list(module.KEPT.values()),
    ("search.py", "wanted"): lambda module: [r"a|b\-c|d\.e"],  # words, escaped
    ("report.py", "_CODES[host]"): lambda module: list(module._CODES.values()),
    ("help.py", "phrase"): lambda module: [phrase for phrase, _ in module._PHRASES],
    ("toml.py", "f'^[ \\\\t]*\\\\[[ \\\\t]*{names}[ \\\\t]*\\\\][^\\\\r\\\\n]*'"): lambda module: [
        r"^[ \t]*\[[ \t]*[\"']?a[\"']?[ \t]*\.[ \t]*[\"']?b[\"']?[ \t]*\][^\r\n]*"
    ],
    ("toml.py", "f'^[ \\\\t]*{_quoted(key)}[ \\\\t]*=[ \\\\t]*'"): lambda module: [
        r"^[ \t]*[\"']?a[\"']?[ \t]*=[ \t]*"
    ],
}


def modules() -> list[ModuleType]:
    """Every module of the package, and the standalone verifier."""
    names = [found.name for found in pkgutil.walk_packages(colibri.__path__, "colibri.")]
    names = [name for name in names if not name.endswith("__main__")]
    return [importlib.import_module(name) for name in (*names, "colibri_verify")]


def collected() -> list[Pattern]:
    """Every pattern; KeyError for one that is built in an unknown way."""
    return [found for module in modules() for found in _of_module(module)]


def _of_module(module: ModuleType) -> Iterator[Pattern]:
    path = Path(str(module.__file__))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    methods = _methods(tree)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        argument, name = _pattern_of(call)
        if argument is None:
            continue
        where = f"{path.relative_to(SOURCE)}:{call.lineno}"
        flags = _flags(call, module)
        used = methods.get(id(call), {"finditer"}) if name == "compile" else {name}
        for method in sorted(used):
            for pattern in _patterns(argument, module, path):
                yield Pattern(where, pattern, flags, method)


def _pattern_of(call: ast.Call) -> tuple[ast.expr | None, str]:
    """The pattern's expression in a call, and how it is used."""
    match call.func:
        case ast.Attribute(ast.Name("re"), name) if name in (*_RUNS, "compile"):
            return call.args[0], name
        case ast.Name("compiled"):
            return call.args[0], "compile"
        case ast.Name("Meta"):
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            return named.get("pattern"), "search"
    return None, ""


def _methods(tree: ast.Module) -> dict[int, set[str]]:
    """How the pattern that a call compiles is used: directly, or through a variable."""
    found: dict[int, set[str]] = {}
    by_name: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Call() as call, name) if name in _RUNS:
                found.setdefault(id(call), set()).add(name)
            case ast.Attribute(ast.Name(owner), name) if name in _RUNS:
                by_name.setdefault(owner, set()).add(name)
    for node in ast.walk(tree):
        match node:
            case ast.Assign([ast.Name(name)], ast.Call() as call) if name in by_name:
                found[id(call)] = by_name[name]
    return found


def _flags(call: ast.Call, module: ModuleType) -> int:
    given = [arg for arg in call.args[1:] if "re." in ast.unparse(arg)]
    given += [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    return sum(int(eval(ast.unparse(flag), vars(module))) for flag in given)


def _patterns(argument: ast.expr, module: ModuleType, path: Path) -> list[str | bytes]:
    source = ast.unparse(argument)
    if (path.name, source) in MADE:
        return MADE[path.name, source](module)
    try:
        value = eval(source, vars(module))
    except NameError:
        raise KeyError(f"{path.name}: say in MADE what {source} may be") from None
    assert isinstance(value, str | bytes), f"{path.name}: {source} is no pattern"
    return [value]


# Worst-case texts, from the grammar of a pattern.

_TRIED = "aA0 -_./:=@%\\\n\t\"'`<>{}()[]+~#;,!&$?*^|rn\x00é"


def attacks(pattern: str | bytes, flags: int = 0) -> list[tuple[str, str]]:
    """A prefix, and the text to repeat after it."""
    tree = _parser.parse(pattern, flags)
    starts = "".join(text[:1] for text in _samples(tree, _TRIED))
    found: set[tuple[str, str]] = set()
    for tried in dict.fromkeys(
        (_TRIED, starts + _TRIED)
    ):  # the second starts a match within a match
        found |= _hurting(tree, tried)
    return sorted((before, body) for before, body in found if body)


def _hurting(tree: Any, tried: str) -> set[tuple[str, str]]:
    whole = _sample(tree, tried)
    found = {("", whole), ("", whole[:-1]), (whole[:-1], whole[-1:]), ("", whole[:1])}
    for before, body in _repeats(tree, "", tried):
        found |= {(before, body), ("", before + body), (before, body[:1]), ("", before)}
        found |= {("", before + body + mark) for mark in " -\n"}
        found |= {(before, body + mark) for mark in " -\n("}
    return found


def _repeats(tree: Any, before: str, tried: str) -> Iterator[tuple[str, str]]:
    """For every repeat: a text that leads to it, and what it repeats."""
    for code, value in tree:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            for body in _samples(value[2], tried):
                yield before, body
            yield from _repeats(value[2], before, tried)
        for inner in _inside(code, value):
            yield from _repeats(inner, before, tried)
        before += _sample([(code, value)], tried)


def _inside(code: Any, value: Any) -> list[Any]:
    if code is op.SUBPATTERN:
        return [value[3]]
    if code is op.ATOMIC_GROUP:
        return [value]
    if code is op.BRANCH:
        return list(value[1])
    return [value[1]] if code in (op.ASSERT, op.ASSERT_NOT) and value[0] > 0 else []


def _samples(tree: Any, tried: str) -> list[str]:
    """Some texts that a pattern matches: one for each top-level branch."""
    if len(tree) == 1 and tree[0][0] is op.SUBPATTERN:
        return _samples(tree[0][1][3], tried)
    if len(tree) == 1 and tree[0][0] is op.BRANCH:
        return [_sample(branch, tried) for branch in tree[0][1][1]]
    return [_sample(tree, tried)]


def _sample(tree: Any, tried: str) -> str:
    """A text that a pattern matches, or nearly so."""
    return "".join(_one(code, value, tried) for code, value in tree)


def _one(code: Any, value: Any, tried: str) -> str:
    if code is op.LITERAL:
        return chr(value)
    if code in (op.NOT_LITERAL, op.ANY, op.IN):
        return next((c for c in tried if _fits(c, code, value)), "")
    if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return _sample(value[2], tried) * int(value[0] or min(value[1], 1))
    if code is op.BRANCH:
        return _sample(value[1][0], tried)
    if code in (op.SUBPATTERN, op.ATOMIC_GROUP):
        return _sample(_inside(code, value)[0], tried)
    return ""  # anchors and lookarounds


def _fits(character: str, code: Any, value: Any) -> bool:
    if code is op.ANY:
        return character != "\n"
    if code is op.NOT_LITERAL:
        return bool(character != chr(value))
    at = ord(character)
    is_negated = bool(value) and value[0][0] is op.NEGATE
    fits = any(
        (kind is op.LITERAL and at == what)
        or (kind is op.RANGE and what[0] <= at <= what[1])
        or (kind is op.CATEGORY and _in_category(character, what))
        for kind, what in value
    )
    return fits != is_negated


def _in_category(character: str, category: Any) -> bool:
    name = str(category).removeprefix("CATEGORY_")
    is_in = {
        "DIGIT": character.isdigit(),
        "SPACE": character.isspace(),
        "WORD": character.isalnum() or character == "_",
    }[name.removeprefix("NOT_")]
    return is_in != name.startswith("NOT_")


# The judge.

LADDER = (16, 24, 32, 48, 64, 128, 256, 1024, 4096)
_SMALL = 0.02  # seconds: more than any text of these sizes may take
_BEYOND = 20  # times the limit: other programs cannot cause that
_SURE = 0.002  # seconds; a text of SIZE done this fast cannot have taken quadratic time
SIZE, LARGE = 16 * 1024, 64 * 1024
_GROWTH = 9  # four times the text; quadratic time would grow by 16
_FEW, _MANY, _LONG = 3, 24, 1.0  # turns at least, turns at most, and seconds after which to stop


def seconds(work: Callable[[str], object], text: str) -> float:
    """Processor time of one use, on this thread only."""
    start = time.thread_time()
    work(text)
    return time.thread_time() - start


def text_of(before: str, body: str, size: int, end: str = "\x00") -> str:
    """The text of an attack: what leads to the repeat, and so much of what is repeated."""
    return before + (body * (size // len(body) + 1))[:size] + end


def slow(
    work: Callable[[str], object], before: str, body: str, end: str = "\x00", copies: int = 1
) -> str | None:
    """What is too slow with such texts, or None if the time grows linearly.

    `copies` is how many times the function meets the text.
    """

    def takes(size: int, enough: float) -> float:
        """The best of several turns: other programs may slow down one, but not all."""
        text = text_of(before, body, size, end)
        times: list[float] = []
        while len(times) < _FEW or (len(times) < _MANY and sum(times) < _LONG):
            times.append(seconds(work, text))
            if times[-1] < enough or min(times) > _BEYOND * enough:
                break
        return min(times)

    for size in LADDER:
        if (took := takes(size, _SMALL * copies)) > _SMALL * copies:
            return f"{size} characters took {took:.3f} s"
    if (short := takes(SIZE, _SURE)) < _SURE:
        return None
    long = takes(LARGE, _GROWTH * short)
    if long < _GROWTH * short:
        return None
    return f"{SIZE} characters took {short:.3f} s, {LARGE} took {long:.3f} s"


# The patterns in the JavaScript files.

_LITERAL = re.compile(
    r"(?:[=(,!:?>]|return|\|\|)\s*/(?![/*])((?:\\.|\[(?:\\.|[^\]\\])*+\]|[^/\\\n\[])++)/([dgimsuvy]*+)"
)
_PROPERTIES = (  # Python's replacements for what only JavaScript knows
    (r"\p{Surrogate}", "a"),
    (r"\p{C}", r"\x01-\x08"),
    (r"\u{1d159}", r"\U0001d159"),
    (r"\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}", r"\u115f"),
    (r"\p{Z}\p{Default_Ignorable_Code_Point}", r"\u115f"),
)
MADE_IN_THE_WEB = 2  # in verify.mjs, from a table that the other verifier also has; in dom.mjs


def web_patterns() -> list[tuple[str, str, str]]:
    """Source and flags of each, and an equivalent Python pattern."""
    made = [pattern.replace("~", "[0-9a-f]") for pattern in colibri_verify.PATTERNS.values()]
    found = [(f"^(?:{pattern})$", "", pattern) for pattern in made]
    count = 0
    for path in sorted((SOURCE / "colibri" / "web").rglob("*.mjs")):
        text = re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        count += text.count("RegExp(")
        for source, flags in _LITERAL.findall(text):
            alike = source
            for property, plain in _PROPERTIES:
                alike = alike.replace(property, plain)
            found.append((source, flags, alike))
    assert count == MADE_IN_THE_WEB, "a pattern is made that nobody sees here"
    return found
