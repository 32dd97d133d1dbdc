"""Every function that reads foreign text, by name: each takes a text and may refuse it.

Python's own TOML parser is not included: a key of very many parts takes it quadratic time. It only
reads the user's settings, in `setup` and `doctor`.
"""

import argparse
import json
from collections.abc import Callable
from contextlib import suppress

import colibri_verify
from colibri.cli.settings.jsonc import Broken, Json
from colibri.cli.settings.toml import Toml
from colibri.cli.show import times
from colibri.core import frontmatter, redaction, skills
from colibri.core.errors import Malformed
from colibri.core.visible import ascii_only, visible
from colibri.server import lines
from colibri.tools import text as rules


def _quietly(work: Callable[[str], object], *expected: type[Exception]) -> Callable[[str], object]:
    def run(text: str) -> None:
        with suppress(*expected):
            work(text)

    return run


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
}
