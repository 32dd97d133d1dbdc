"""One file of another program that is to be changed: what is shown before, done, and told after."""

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from colibri.cli import files, terminal
from colibri.cli.files import Text
from colibri.cli.show import times

Action = Literal["create", "change", "delete", "none", "print"]
PENDING = ("create", "change", "delete")
_COLOURS = {"+": "added", "-": "removed", "@": "dim"}


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done to a file; `file` is "" where there is only text to show."""

    file: str
    action: Action
    old: Text
    new: str
    mode: int = files.SETTINGS  # of a new file
    ours: bool = False  # nobody else writes it: no copy of the old text is kept
    is_so: str = "is as it should be"  # the message if there is nothing to do
    then: str = ""  # what its user does next


def planned(file: str, old: Text, new: str, **more: Any) -> Change:
    """The change from one text to the other; a file of ours with nothing in it is deleted."""
    action: Action = "change" if old.found else "create"
    if new == old.text and (old.found or not new):
        action = "none"
    elif not new and more.get("ours"):
        action = "delete"
    return Change(file, action, old, new, **more)


def carry_out(change: Change) -> str | None:
    """The copy of what was there before, if one is kept."""
    if change.action == "delete":
        files.delete(change.old)
        return None
    stamp = "" if change.ours else times.stamp()
    return files.replace(change.old, change.new, stamp, change.mode)


def report(change: Change, written: bool, backup: str | None) -> dict[str, Any]:
    """What --json says of a file."""
    shown = change.action != "print"
    return {
        "file": change.file or None,
        "action": change.action,
        "written": written,
        "backup": backup,
        "diff": "".join(f"{line}\n" for line in _diff(change)) if shown else None,
    }


def tell(change: Change, written: bool, backup: str | None) -> None:
    if change.action == "print":
        print(change.new, end="")
    elif change.action == "none":
        terminal.line(f"nothing to do: {change.file} {change.is_so}", hang=2)
    elif written:
        real = f", a link to {change.old.path}" if os.path.islink(change.file) else ""
        verb = "deleted" if change.action == "delete" else "wrote  "
        terminal.line(f"{verb} {change.file}{real}", whole=True)
        if backup:
            terminal.line(f"backup  {backup}", whole=True)
        if change.then:
            terminal.line(f"next    {change.then}", hang=8)
    else:
        for line in _diff(change):
            terminal.say(line, _COLOURS.get(line[:1], ""))


def _diff(change: Change) -> Iterator[str]:
    old = change.file if change.old.found else os.devnull
    new = os.devnull if change.action == "delete" else change.file
    return difflib.unified_diff(_lines(change.old.text), _lines(change.new), old, new, lineterm="")


def _lines(text: str) -> list[str]:
    """As they are shown: how they end is kept, but not worth a line of a diff."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]
