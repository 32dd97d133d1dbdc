"""The page of a report: the files of web/ put together around a bundle, in one file.

Each module becomes a function of its own, in the order of MODULES, so that no two of them can clash
over a name. The page's policy then names the hashes of its program and its style: a browser runs
these and nothing else, and loads nothing.
"""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape, unescape

import colibri

# Each after those that it imports; page.mjs starts the program.
MODULES = (
    "verify.mjs",
    "report/dom.mjs",
    "report/words.mjs",
    "report/deeds.mjs",
    "report/model.mjs",
    "report/judge.mjs",
    "report/story.mjs",
    "report/people.mjs",
    "report/decisions.mjs",
    "report/project.mjs",
    "report/work.mjs",
    "report/tasks.mjs",
    "report/record.mjs",
    "report/entry.mjs",
    "report/timeline.mjs",
    "report/tree.mjs",
    "report/verdict.mjs",
    "report/place.mjs",
    "report/page.mjs",
)
_HEAD = 4096  # bytes of a page that say what it is
_LOG = re.compile(rb'^<meta name="colibri-log" content="([^"]+)">$', re.MULTILINE)
_IMPORT = re.compile(r'^import (\{[^}]{0,1000}+\}) from "[./]*(\w+)\.mjs";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|const|class) ([\w$]+))", re.MULTILINE)


def write(
    bundle: Iterable[bytes],
    *,
    log: str = "",
    watched: str = "",
    changes: Mapping[str, object] | None = None,
) -> Iterator[bytes]:
    """The page's text, piece by piece, around the pieces of a bundle of a log.

    `watched` is the time of writing of a page that is kept current: it loads itself again.
    `changes` is what why/unexplained.py found; it is no part of the evidence.
    """
    style, script = _read("look.css") + _read("report/page.css"), program()
    page = _read("report/page.html").replace("{watched}", watched).replace("{log}", escape(log))
    told = json.dumps(changes).replace("<", "\\u003c")
    for name, text in {"policy": _policy(script, style), "style": style, "program": script}.items():
        page = page.replace(f"{{{name}}}", text)
    before, after = page.split("{evidence}")
    before = before.replace("{changes}", told)  # last: its paths may have such names in them
    yield before.encode()
    for piece in bundle:
        # In JSON a < stands in strings only; written so, nothing can end the element it is in.
        yield piece.replace(b"<", b"\\u003c")
    yield after.encode()


def log_of(path: str) -> str | None:
    """The log that the page in a file is about; None if it is no page of ours."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        found = _LOG.search(file.read(_HEAD))
    return unescape(found[1].decode("utf-8", "replace")) if found else None


def program() -> str:
    """All modules as one script."""
    return "\n" + "".join(_as_function(name) for name in MODULES)


def _as_function(name: str) -> str:
    text = _read(name)
    exported = ", ".join(_EXPORT.findall(text))
    text = _IMPORT.sub(r"const \1 = \2_mjs;", _EXPORT.sub("", text))
    stem = os.path.basename(name).removesuffix(".mjs")
    return f"// {name}\nconst {stem}_mjs = (() => {{\n{text}return {{ {exported} }};\n}})();\n"


def _policy(script: str, style: str) -> str:
    rules = {
        "default-src": "'none'",
        "script-src": _source(script),
        "style-src": _source(style),
        "worker-src": "blob:",  # made by the page, of its own program
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    folder = os.path.join(os.path.dirname(colibri.__file__), "web")
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()
