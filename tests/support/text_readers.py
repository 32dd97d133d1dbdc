"""Every function that reads foreign text, by name: each takes a text and may refuse it.

Python's own TOML parser is not included: a key of very many parts takes it quadratic time. It only
reads the user's settings, in `setup` and `doctor`.
"""

import argparse
import copy
import functools
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import colibri_verify
from colibri.cli.commands import search
from colibri.cli.settings.jsonc import Broken, Json
from colibri.cli.settings.toml import Toml
from colibri.cli.show import times
from colibri.core import frontmatter, redaction, skills
from colibri.core.errors import Malformed
from colibri.core.visible import ascii_only, visible
from colibri.hook import deed
from colibri.hook import report as reports
from colibri.server import lines
from colibri.store import deed_list, tasks, thought_search, trail
from colibri.store.sqlite.connection import Connection
from colibri.store.tasks import Filter
from colibri.tools import text as rules
from tests.hook.fixtures import KEPT, RECORDED, environment, payload
from tests.support.ledger_writer import in_memory
from tests.vectors.builder import log_bundle, text_of
from tests.vectors.honest import small


def _quietly(work: Callable[[str], object], *expected: type[Exception]) -> Callable[[str], object]:
    def run(text: str) -> None:
        with suppress(*expected):
            work(text)

    return run


MOST_WORDS = 256  # characters that a tool takes to search for


# What hosts report.

_KINDS = {("tool.end", "run"), ("tool.end", "edit"), ("prompt", None)}


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the texts of a payload are."""
    if isinstance(value, str):
        yield path
    inside = (
        value
        if isinstance(value, dict)
        else dict(enumerate(value if isinstance(value, list) else ()))
    )
    for key, one in inside.items():
        yield from _leaves(one, (*path, key))


def _put(event: Any, path: tuple[Any, ...], text: str) -> None:
    *above, last = path
    for key in above:
        event = event[key]
    event[last] = text


@functools.cache
def _events(host: str) -> list[tuple[Any, list[tuple[Any, ...]]]]:
    """A command, an edit and a prompt with the most texts, and those that may be any text."""
    environ, best = environment(host), dict[Any, Any]()
    for name in (name for kept, name in KEPT if kept == host):
        event = payload(host, name)
        free = [path for path in _leaves(event) if _reads(event, path, environ)]
        found = reports.read(event, environ)
        assert found is not None
        kind = (found.event, found.class_)
        if kind in _KINDS and len(free) > len(best.get(kind, ((), ()))[1]):
            best[kind] = event, free
    return list(best.values())


def _reads(event: Any, path: tuple[Any, ...], environ: dict[str, str]) -> bool:
    """Whether it is the same event with another text there."""
    changed = copy.deepcopy(event)
    _put(changed, path, "x")
    before, after = reports.read(event, environ), reports.read(changed, environ)
    return before is not None and after is not None and before.event == after.event


def _hook(host: str) -> Callable[[str], object]:
    """All that is done with reports but for recording them, with the text all over."""

    def run(text: str) -> None:
        for event, free in _events(host):
            filled = copy.deepcopy(event)
            for path in free:
                _put(filled, path, text)
            found = reports.read(json.loads(json.dumps(filled)), environment(host))
            if found is not None:
                deed.make(found, "/project", "/project", keeps_text=True, in_time=lambda: True)

    return run


# What verifiers read.

_SOME = 9  # records: a session, its first thought, a call
_FREE = frozenset({"content", "intent", "reason", "title", "description", "client"})


def bundle_with(text: str) -> bytes:
    """The file of a log with correct hashes that has the text wherever a record may hold any."""
    log = small()
    for record in log.drafts[:_SOME]:
        record.agent = record.agent and text
        for body in (record.body, record.body.get("set", {}), record.body.get("arguments", {})):
            for name in _FREE & body.keys():
                body[name] = [None, text] if isinstance(body[name], list) else text
    return text_of(log_bundle(log))


# What is searched, and for what.


@functools.cache
def _library() -> Connection:
    """A database with tasks and thoughts, in the index and not yet."""
    lab = in_memory()
    lab.start("S-1")
    for number in range(40):
        words = f"{number} token=a1 eyJ a(a( -----BEGIN x: aaa.aaa/aaa"
        lab.create(words)
        lab.think("S-1", words)
    db: Connection = lab.db
    return db


def _search(text: str) -> None:
    """As the tools do, within what they accept, and as `colibri search` does, whatever it gets."""
    db, words = _library(), text[:MOST_WORDS]
    tasks.find(db, Filter(), search=words, limit=10, offset=0)
    trail.find(db, trail.Filter(), search=words, order="best", limit=10, offset=0)
    for _ in deed_list.find(db, text.split()):
        pass


def _searched(text: str) -> None:
    """A thought that has the text, where words of it are looked for."""
    thought_search._score(text, thought_search._terms(_library(), text[:MOST_WORDS]))
    search._passage(text, text[-MOST_WORDS:])


def _skill(text: str) -> object:
    head = f"name: x\ndescription: y\nallowed-tools: {json.dumps(text)}\n"
    return skills.parse(head.encode("utf-8", "replace")[: skills.MAX_HEAD], "x")


READERS: dict[str, Callable[[str], object]] = {
    "redaction": redaction.scrub,
    "redaction of keys": lambda text: redaction.redact({text: [text]}),
    "visible text": lambda text: visible(text, lines=True),
    "visible keys": ascii_only,
    "what the verifier shows": colibri_verify.show,
    "a verifier's JSON": lambda text: colibri_verify.parse_canonical(
        json.dumps(text).encode(), "head"
    ),
    "what the verifier refuses": lambda text: colibri_verify.verify(
        text.encode("utf-8", "replace")
    ),
    "a verifier's bundle": lambda text: colibri_verify.verify(bundle_with(text)),
    "words of a skill": _quietly(_skill, Malformed),
    "frontmatter": _quietly(
        lambda text: frontmatter.parse(text.encode("utf-8", "replace")), Malformed
    ),
    "fences": _quietly(
        lambda text: skills.between_fences(b"---\n" + text.encode("utf-8", "replace")), Malformed
    ),
    "a line": _quietly(lambda text: lines.parse(json.dumps([text]).encode()), lines.Malformed),
    "no JSON": _quietly(lambda text: lines.parse(text.encode("utf-8", "replace")), lines.Malformed),
    "settings in JSON": _quietly(Json(comments=True, commas=True).load, Broken),
    "a setting in JSON": lambda text: Json().put(json.dumps({"a": {"b": text}}), ("a", "b"), 1),
    "a setting in TOML": lambda text: Toml().put(f"[a]\nb = {text}\n", ("a", "b"), "c"),
    "a time": _quietly(times.since, argparse.ArgumentTypeError),
    "one line of text": rules.LINE.breach,
    "prose": rules.PROSE.breach,
    **{f"what {host} reports": _hook(host) for host in RECORDED},
    "words to search for": _search,
    "text that is searched": _searched,
}


@functools.cache
def copies(name: str) -> int:
    """How many times a reader meets its text: some put it into many places."""
    if name == "a verifier's bundle":
        return 3 * _SOME
    if name == "words to search for":
        return 4  # searches: of tasks with and without the index, of thoughts, of commands
    if name.startswith("what ") and name.endswith(" reports"):
        return sum(len(free) for _, free in _events(name.split()[1]))
    return 1
