"""The trailer in a commit message: where it goes, and when there is none."""

import re

from colibri.cli.witness.sources import KEY
from colibri.core import checkpoint as checkpoints
from colibri.core.checkpoint import Checkpoint

_SCISSORS = re.compile(r"^[^\s\w] -{24} >8 -{24}$", re.MULTILINE)
_TRAILER = re.compile(r"[A-Za-z0-9-]{1,100}: |\(cherry picked from commit |[ \t]")


def with_trailer(message: str, checkpoint: Checkpoint, comment: str = "#") -> str:
    """The message with the trailer, in place of an older one of the same log.

    A message that is empty but for comments stays as it is: git is to give up the commit.
    """
    cut = _SCISSORS.search(message)
    body, rest = (message[: cut.start()], message[cut.start() :]) if cut else (message, "")
    lines = body.split("\n")
    trailer = f"{KEY}: {checkpoints.trailer(checkpoint)}"
    older = [n for n, one in enumerate(lines) if one.startswith(f"{KEY}: {checkpoint.log}@")]
    if older:
        lines[older[-1]] = trailer
        return "\n".join(lines) + rest
    last = max((n for n, one in enumerate(lines) if _counts(one, comment)), default=None)
    if last is None:
        return message
    gap = [] if _ends_in_trailers(lines[: last + 1], comment) else [""]
    return "\n".join([*lines[: last + 1], *gap, trailer, *(lines[last + 1 :] or [""])]) + rest


def _counts(line: str, comment: str) -> bool:
    return bool(line.strip()) and not line.startswith(comment)


def _ends_in_trailers(lines: list[str], comment: str) -> bool:
    """Whether the last paragraph, which is not the first, has nothing but trailers."""
    paragraph: list[str] = []
    while lines and lines[-1].strip():
        line = lines.pop()
        if not line.startswith(comment):
            paragraph.append(line)
    return any(_counts(one, comment) for one in lines) and all(map(_TRAILER.match, paragraph))
