"""A repository with a ledger, in which hosts report edits, or do not."""

import hashlib
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from colibri.hook.deed import recorded_path
from tests.support.ledger_writer import Lab

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=a@example.org", "-c", "commit.gpgSign=false")
    command = ["git", "-C", str(folder), *who, "-c", "init.defaultBranch=main", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=True)
    return done.stdout.decode().strip()


class Work:
    """A repository with a ledger: edits that a host reports, edits that none does, and commits."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        self.folder = folder
        self.lab = lab
        self._now = BEGUN
        self._at(0)
        lab.client = "host"
        self.task = lab.create("change it").task_id
        lab.start("S-1", agent="ada")
        lab.update(self.task, status="GATHER", session="S-1", agent="ada")

    def _at(self, minutes: int) -> str:
        self._now += timedelta(minutes=minutes)
        self.lab.second = f"{self._now:%Y-%m-%dT%H:%M:%S}"
        return f"{self._now:%Y-%m-%dT%H:%M:%SZ}"

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(text.encode())

    def begin(self, host: str) -> str:
        """Another task, in a session of another host; its id."""
        self._at(1)
        self.lab.client = host
        task = self.lab.create(f"the task of {host}").task_id
        self.lab.start(f"S-{host}", agent="bob")
        self.lab.update(task, status="GATHER", session=f"S-{host}", agent="bob")
        self.lab.client = "host"
        return task

    def edit(
        self, name: str, text: str, *, tree: str = ".", host: str = "host", watched: bool = False
    ) -> int:
        """Write a file of a work tree, and report it; if it is watched, also what it held before.

        The record of the deed.
        """
        self._at(1)
        said: dict[str, Any] = {
            "class_": "edit",
            "paths": [recorded_path(name)],
            "tree": tree,
            "host_session": host,
        }
        if watched:
            found = (self.folder / tree / name).read_bytes()
            said["use"] = f"use-{self._now.timestamp()}"
            self.lab.deed(event="tool.begin", files=_files(found), **said)
        self.write(f"{tree}/{name}", text)
        entry = self.lab.deed(event="tool.end", files=_files(text.encode()), **said)
        assert entry is not None
        return entry.seq - 1

    def decide(self, text: str) -> int:
        self._at(1)
        return self.lab.think("S-1", text, type="decision", task=self.task, agent="ada").seq

    def commit(self, *options: str, at: Path | None = None) -> str:
        date = self._at(1)
        git(at or self.folder, "add", "-A")
        self._run(at or self.folder, "commit", "-q", "--allow-empty", f"--date={date}", *options)
        return git(at or self.folder, "rev-parse", "HEAD")

    @staticmethod
    def _run(folder: Path, *words: str) -> None:
        git(folder, *words, *(() if "--amend" in words else ("-m", "a change")))


def _files(content: bytes) -> list[dict[str, Any]]:
    return [{"n": 0, "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}]
