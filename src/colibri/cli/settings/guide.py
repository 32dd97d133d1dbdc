"""The guide: a short section about Colibri in the file that a project's agents read first.

Some clients show an agent neither a server's instructions nor its tools until it looks for them.
The section lies between two marks, each on a line of its own, so that it can be updated and
removed; every other byte of the file stays as it is. Adding it and removing it again gives the
file as it was.
"""

import os
import re

NAMES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
BEGIN = "<!-- colibri: begin (its setup command updates and removes this part) -->"
END = "<!-- colibri: end -->"
# The words after "begin" may be those of another version.
_BEGIN = re.compile(r"^<!-- colibri: begin\b[^\r\n]*-->(?=\r?$)", re.MULTILINE)
_END = re.compile(rf"^{re.escape(END)}(?=\r?$)", re.MULTILINE)

SECTION = """\
## Colibri

This project keeps an account of what agents do, in the MCP server `colibri`.

1. Start with `audit_session_start` (intent, agent_id). Its brief says where the work stands. After
   a break, resume your session instead.
2. Take a task with `task_next_actions` and `claim: true`. Plan new work with `task_create`.
3. Before you act: `task_update` to GATHER, ANALYZE, PLAN, APPLY, with your plan as its `thought`.
4. When it is done: `task_update` to VERIFY, DONE, with what you did and how you know that it works
   as its `thought`.
5. When your work is over: `merkle_finalize`. Report the root to your user.
"""


class Unclear(Exception):
    """The marks are not there once each, in the right order."""


def path_of(directory: str, name: str) -> str:
    """The file that agents read first.

    Many projects keep one such file and link the others to it: that link is followed, no other.
    """
    file = os.path.join(directory, name)
    real = os.path.realpath(file)
    beside = [os.path.join(os.path.realpath(directory), one) for one in NAMES]
    return real if os.path.islink(file) and real in beside else file


def has_section(text: str) -> bool:
    return _find(text) is not None


def put(text: str) -> str:
    """The text with the current section, in place of the old one or at the end."""
    line = "\r\n" if "\r\n" in text else "\n"
    section = f"{BEGIN}\n{SECTION}{END}".replace("\n", line)
    if (place := _find(text)) is not None:
        before, after = place
        return f"{before}{section}{after}"
    if not text:
        return f"{section}{line}"
    # What has no line break at its end gets none, so that it can be removed without a trace.
    return f"{text}{line}{section}{line}" if text.endswith("\n") else f"{text}{line * 2}{section}"


def remove(text: str) -> str:
    """The text without the section, and without the line breaks that came with it."""
    if (place := _find(text)) is None:
        return text
    before, after = place
    line = "\r\n" if "\r\n" in text else "\n"
    gap = line if after else line * 2
    if before.endswith(line * 2):
        before = before.removesuffix(gap)
    return before + after.removeprefix(line)


def _find(text: str) -> tuple[str, str] | None:
    """What comes before and after the section, if there is one; Unclear if that cannot be told."""
    begins, ends = [*_BEGIN.finditer(text)], [*_END.finditer(text)]
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or begins[0].end() > ends[0].start():
        raise Unclear
    return text[: begins[0].start()], text[ends[0].end() :]
