"""`colibri demo`: a real server, a short story, its evidence, and an attempt to alter it."""

import argparse
import base64
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from colibri.cli import files, program, terminal
from colibri.cli.complaint import Complaint
from colibri.cli.demo.client import Call, serving
from colibri.cli.demo.story import INTENT, LIE, STORY, TRUTH, Step, fill, told
from colibri.cli.show import words
from colibri.config import bare_environment
from colibri.core.errors import ResourceError

HELP = "watch a session, its evidence, and a forgery being caught"

DESCRIPTION = """\
Start a real server in its own directory, run an agent's session through it, export the evidence and
check it with the independent verifier. Then alter one sentence in a copy and watch the verifier
catch it. This takes a few seconds and does not touch your project.
"""

EPILOG = """\
examples:
  colibri demo
  colibri demo --dir /tmp/colibri-demo

The directory is kept so that you can look around; delete it when you like. If the demo is
interrupted, it removes what it has made.

--json prints directory, calls, refused (codes), session, root, head {seq, leaf}, the paths bundle
and report, and for each bundle, under verified and forged, {verdict, exit_code, lines, findings}.

Exit codes: 0 everything went as shown, 1 DIR is not empty, 75 something is missing on this machine,
130 interrupted.
"""

PAUSE = 0.04  # seconds after a line on a terminal
TIMEOUT = 30  # seconds for a program that is started

FRONT = 12  # columns before what a line says

BUNDLE = "session.colibri.json"
FORGED = "forged.colibri.json"
REPORT = "report.html"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", metavar="DIR", help="an empty or new directory")
    parser.add_argument("--no-pause", action="store_true", help="do not pause between lines")
    parser.add_argument("--json", action="store_true", help="print only the outcome, as JSON")


def run(options: argparse.Namespace) -> int:
    with _directory(options.dir) as directory:
        demo = Demo(directory, options)
        demo.play()  # 1 the session
        demo.export()  # 2 its evidence
        demo.verify()  # 3 judged by a program that shares nothing with us
        demo.forge()  # 4 a lie, which is caught
        demo.report()  # 5 for people
        demo.say_what_next()
    if options.json:
        terminal.emit(demo.outcome)
    return 0


@contextmanager
def _directory(named: str | None) -> Iterator[str]:
    """Where all of it happens; what was begun and not finished is not left behind."""
    made = named is None or not os.path.exists(named)
    if named is None:
        directory = tempfile.mkdtemp(prefix="colibri-demo-")
    else:
        directory = os.path.abspath(named)
        _refuse_used(named)
        os.makedirs(directory, mode=0o700, exist_ok=True)
    try:
        yield directory
    except (KeyboardInterrupt, BrokenPipeError):
        if made:
            shutil.rmtree(directory, ignore_errors=True)
        raise


def _refuse_used(directory: str) -> None:
    files.refuse_links(directory, os.curdir)
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise Complaint(f"{directory} is not a directory", "name a new one")
    if os.path.exists(directory) and os.listdir(directory):
        raise Complaint(f"{directory} is not empty", "name an empty directory, or a new one")


class Demo:
    """One run of it; `outcome` is what --json prints."""

    def __init__(self, directory: str, options: argparse.Namespace) -> None:
        self.outcome: dict[str, Any] = {"directory": directory, "calls": 0, "refused": []}
        self._directory = directory
        self._quiet = options.json
        self._pause = PAUSE if terminal.is_terminal() and not options.no_pause else 0
        self._names: dict[str, str] = {}
        self._env = bare_environment()

    # 1

    def play(self) -> None:
        """Every step of the story, by a real server."""
        self._say(f"An agent's session: {INTENT}", "bold")
        self._say(f"in {self._directory}", "dim", whole=True)
        command = _colibri("serve", "--project", self._directory)
        log = os.path.join(self._directory, "server.log")
        with serving(command, env=self._env, log=log) as call:
            for chapter in STORY:
                self._title(chapter.title)
                for step in chapter.steps:
                    self._take(call, step)

    def _take(self, call: Call, step: Step) -> None:
        result = call(step.tool, fill(step.arguments, self._names))
        self.outcome["calls"] += 1
        data = _data(result)
        refusal = data.get("error", {}) if result["isError"] else {}
        if refusal.get("code", "") != step.refusal or data.get("valid") is False:
            raise ResourceError(f"{step.tool} answered {json.dumps(data)}", "report this")
        self._remember(step, data, result)
        if refusal:
            self.outcome["refused"].append(refusal["code"])
            self._line("refused", step.tool, f"{refusal['code']}: {refusal['message']}", "refused")
        else:
            self._line("ok", step.tool, told(step, data))

    def _remember(self, step: Step, data: dict[str, Any], result: dict[str, Any]) -> None:
        if step.name:
            (named,) = data.get("tasks", [data])
            self._names[step.name] = named.get("task_id") or named.get("session_id", "")
        if step.name == "seal":
            receipt = result["_meta"]["colibri/receipt"]
            self.outcome["session"] = data["session_id"]
            self.outcome["root"] = data["root"]
            self.outcome["head"] = {"seq": receipt["seq"], "leaf": receipt["head"]}

    # 2

    def export(self) -> None:
        """The session as a bundle."""
        self._title("The evidence, in one file that anyone can check")
        self._run("export", "--session", self.outcome["session"], "-o", self._file(BUNDLE))
        self.outcome["bundle"] = self._file(BUNDLE)

    # 3

    def verify(self) -> None:
        """The independent verifier, with the root and the head that the agent's client kept."""
        self.outcome["verified"] = self._judged(BUNDLE, wanted="good")

    # 4

    def forge(self) -> None:
        """A copy in which one thought says something else."""
        with open(self._file(BUNDLE), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        for record in lines:
            body = base64.b64decode(record.get("body", ""))
            if TRUTH.encode() in body:
                forged = body.replace(TRUTH.encode(), LIE.encode())
                record["body"] = base64.b64encode(forged).decode()
        texts = [json.dumps(line, separators=(",", ":")) + "\n" for line in lines]
        files.write([text.encode() for text in texts], self._file(FORGED))
        self._title("A forged copy: one thought was made to look better")
        self._line("was", "", TRUTH)
        self._line("is", "", LIE)
        self.outcome["forged"] = self._judged(FORGED, wanted="bad")

    def _judged(self, name: str, *, wanted: str) -> dict[str, Any]:
        """What the verifier says, in a process of its own that sees none of our packages."""
        import colibri_verify  # noqa: PLC0415 - only to know where the file is

        outside = self._outside()
        _, root, _, head = outside
        shown = f"python3 colibri_verify.py {name} --root {root[:8]}... --head {head[:12]}..."
        self._line("$", "", shown, "dim")
        command = [sys.executable, "-I", "-S", colibri_verify.__file__, self._file(name), *outside]
        done = self._start([*command, "--json"])
        if not done.stdout:
            raise ResourceError(f"the verifier failed: {_said(done)}", "report this")
        verdict: dict[str, Any] = json.loads(done.stdout)
        if verdict["verdict"] != wanted:
            raise ResourceError(f"the verdict on {name} is {verdict['verdict']}", "report this")
        for one in verdict["findings"]:
            found = f"{one['code']} at record {one['seq']}: {one['detail']}"
            self._line("found", "", found, "refused")
        lines = ", ".join(f"{line} {state}" for line, state in verdict["lines"].items())
        style = "good" if wanted == "good" else "bad"
        self._line("verdict", "", f"{verdict['verdict'].upper()}: {lines}", style)
        told = {name: verdict[name] for name in ("verdict", "lines", "findings")}
        return told | {"exit_code": done.returncode}

    def _outside(self) -> list[str]:
        """What the agent's client kept: the root and the head of the seal's answer."""
        return ["--root", self.outcome["root"], "--head", words.head(self.outcome["head"])]

    # 5

    def report(self) -> None:
        """The session as a page, by the command for it."""
        self._title("The session as a page for people, which checks its own evidence")
        self.outcome["report"] = self._file(REPORT)
        self._run("report", self.outcome["session"], "-o", self.outcome["report"])

    def say_what_next(self) -> None:
        """Where to look and what to do next; every command can be copied."""
        project = shlex.quote(self._directory)
        outside = self._outside()
        self._title("Next")
        for what, text in (
            ("open", self.outcome["report"]),
            ("evidence", program.verifier(self.outcome["bundle"], *outside)),
            ("forged", program.verifier(self._file(FORGED), *outside)),
            ("trail", program.typed(f"colibri trail --project {project}")),
            ("check", program.typed(f"colibri verify --project {project}")),
        ):
            self._line(what, "", text, whole=True)
        self._line("yours", "", program.typed("colibri setup CLIENT, in your own project"))

    # How it is shown, and what it starts.

    def _title(self, text: str) -> None:
        self._say("")
        self._say(text, "bold")

    def _say(self, text: str, style: str = "", *, whole: bool = False) -> None:
        if not self._quiet:
            terminal.line((text, style), whole=whole)
            sys.stdout.flush()

    def _line(
        self, what: str, tool: str, text: str, style: str = "", *, whole: bool = False
    ) -> None:
        """With `whole` it is to be copied, and left for the terminal to break."""
        if self._quiet:
            return
        front = f"  {what}".ljust(FRONT) + (f"{tool:<19}  " if tool else "")
        terminal.line((front + text, style), hang=terminal.hang(len(front), FRONT), whole=whole)
        sys.stdout.flush()
        time.sleep(self._pause)

    def _file(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _run(self, *arguments: str) -> None:
        """A command of our own, as a person would type it."""
        shown = [os.path.basename(one) if os.path.isabs(one) else one for one in arguments]
        self._line("$", "", program.typed(f"colibri {shlex.join(shown)}"), "dim")
        done = self._start(_colibri(*arguments, "--project", self._directory))
        if done.returncode:
            raise ResourceError(f"colibri {arguments[0]} failed: {_said(done)}", "report this")

    def _start(self, command: list[str]) -> "subprocess.CompletedProcess[bytes]":
        try:
            return subprocess.run(
                command, env=self._env, capture_output=True, timeout=TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired as problem:
            raise ResourceError(str(problem), "try again when the machine is less busy") from None


def _colibri(*arguments: str) -> list[str]:
    """This very program; what lies in the working directory is not imported."""
    return [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", "colibri", *arguments]


def _said(done: "subprocess.CompletedProcess[bytes]") -> str:
    return done.stderr.decode(errors="replace").strip()


def _data(result: dict[str, Any]) -> dict[str, Any]:
    """What an answer holds; of a refusal {error}, in both patterns."""
    envelope: dict[str, Any] = result["structuredContent"]
    data: dict[str, Any] = envelope.get("data", envelope)
    return data
