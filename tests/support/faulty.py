"""The real server with one fault: `python -m tests.support.faulty FAULT`.

Each fault is the negative control of a trial or a test: a harness that does not notice it proves
nothing about the real server. A new fault is a function decorated with `@fault(name, what)`.
"""

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple


class Fault(NamedTuple):
    """What is wrong with the server, in words, and the function that installs the fault."""

    what: str
    install: Callable[[], None]


FAULTS: dict[str, Fault] = {}


def fault(name: str, what: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """A row of the table."""

    def enter(install: Callable[[], None]) -> Callable[[], None]:
        FAULTS[name] = Fault(what, install)
        return install

    return enter


def program(name: str) -> tuple[str, ...]:
    """The command that serves on stdio with this fault."""
    assert name in FAULTS
    return (sys.executable, "-m", "tests.support.faulty", name)


@fault("answers-early", "a call is answered before its commit")
def _answer_early() -> None:
    from colibri.core.errors import Unavailable
    from colibri.server.call import Call
    from colibri.server.envelope import UNAVAILABLE
    from colibri.server.faults import CommitFailed
    from colibri.server.pipeline import Pipeline
    from colibri.server.recorder import Recorder

    def answer_early(self: Pipeline, recorder: Recorder, calls: deque[Call], chain: Any) -> None:
        while calls:
            call = calls.popleft()
            outcome = self._run_in_savepoint(call, recorder, chain)
            recorder.synced = recorder.exit(chain, call, outcome)  # a lie: it is not synced
            self.finish(call, outcome, recorder.synced)
        time.sleep(0.01)

    def hasty_round(self: Pipeline, recorder: Recorder, calls: deque[Call]) -> None:
        """Pipeline.round, but answering inside the transaction and ignoring its failure."""
        try:
            recorder.transact(
                lambda chain: answer_early(self, recorder, calls, chain), durable=True
            )
        except (Unavailable, CommitFailed) as problem:
            while calls:
                self.turn_away(calls.popleft(), UNAVAILABLE, str(problem))

    Pipeline.round = hasty_round  # type: ignore[method-assign]


@fault("never-syncs", "no commit is synced")
def _never_sync() -> None:
    from colibri.store.sqlite.transaction import Transaction

    begin: Any = Transaction.__init__
    Transaction.__init__ = (  # type: ignore[method-assign]
        lambda self, db, *, durable: begin(self, db, durable=False)
    )


@fault("never-looks-up", "a commit that was not answered is said to have changed nothing")
def _never_look_up() -> None:
    from colibri.store.postgres.opened import Opened

    Opened.has_committed = lambda self, last, known: False  # type: ignore[method-assign]


@fault("believes-its-files", "nobody looks whether the files are still those that were opened")
def _believe_the_files() -> None:
    from colibri.store.sqlite import identity, opened, opening, writing

    def believe(*anything: Any) -> str:
        return ""

    for name in ("check", "check_again"):
        setattr(opened.Opened, name, believe)
    for module in (opened, opening, writing):
        for name in vars(module).keys() & vars(identity).keys():
            if name.startswith(("changed", "guard_", "require_")):
                setattr(module, name, believe)
    writing.Opening._is_what_others_opened = lambda self: True  # type: ignore[method-assign]


@fault("believes-the-schema", "nobody compares the schema with the one that Colibri made")
def _believe_the_schema() -> None:
    from colibri.store.sqlite import expected, watch

    expected.differences = watch.differences = lambda *_: []  # type: ignore[attr-defined]


@fault("hides-checkpoints", "a log that cannot be copied back is kept secret")
def _hide_checkpoints() -> None:
    from colibri.server.recorder import Recorder

    Recorder._checkpoint_failed = lambda self, problem: None  # type: ignore[method-assign]


@fault("does-not-wait", "another process that holds the database is not waited for")
def _do_not_wait() -> None:
    from colibri.server.clock import Patience

    Patience.__call__ = lambda self, tries: False  # type: ignore[method-assign]


@fault("drops-locks", "each reading call opens and closes the file: POSIX drops every lock on it")
def _drop_locks() -> None:
    from colibri.config import load
    from colibri.server.pipeline import Pipeline

    read = Pipeline.read

    def meddling_read(self: Pipeline, *arguments: Any) -> None:
        os.close(os.open(load().db_path, os.O_RDONLY))
        read(self, *arguments)

    Pipeline.read = meddling_read  # type: ignore[assignment, method-assign]


@fault("takes-any-json", "a line is parsed as json.loads does, and nothing but that")
def take_any_json() -> None:
    import json

    from colibri.server import wire

    wire.parse = json.loads  # type: ignore[attr-defined, assignment]


@fault("searches-anew", "a pattern searches for its end from every place where it could begin")
def _search_anew() -> None:
    import re

    from colibri.core import redaction

    pattern, replace = re.compile(r"eyJ[\w-]{8,}\."), redaction._replace

    def slowly(text: str) -> tuple[str, list[str]]:
        pattern.search(text)
        return replace(text)

    redaction._replace = slowly


@fault("leaks-descriptors", "every call leaves a descriptor open")
def _leak_descriptors() -> None:
    _before_each_call(lambda: os.dup(2))


@fault("leaks-memory", "every call leaves 64 KiB behind")
def _leak_memory() -> None:
    kept: list[bytes] = []
    _before_each_call(lambda: kept.append(os.urandom(65_536)))


def _before_each_call(leak: Callable[[], object]) -> None:
    from colibri.server.call import Call
    from colibri.server.pipeline import Pipeline

    prepare = Pipeline.prepare

    def leaky(self: Pipeline, call: Call) -> None:
        leak()
        prepare(self, call)

    Pipeline.prepare = leaky  # type: ignore[method-assign]


@fault("done-without-evidence", "a task is DONE without evidence")
def _done_without_evidence() -> None:
    from colibri.store import task_checks, tasks

    for module in (task_checks, tasks):
        setattr(module, "has_evidence", lambda db, task: True)  # noqa: B010 - mypy sees the other


@fault("ignores-seals", "a sealed session takes thoughts")
def _ignore_seals() -> None:
    from colibri.store import sessions

    sessions.get_open = sessions.get


@fault("ignores-claims", "a task is changed that another session holds")
def _ignore_claims() -> None:
    from colibri.store import claims

    settle = claims.settle
    claims.settle = lambda db, task, asked: settle(db, task._replace(holder=None), asked)


@fault("shares-tasks", "a task that another session holds is offered, and changed, as if free")
def _share_tasks() -> None:
    from colibri.store import claims

    _ignore_claims()
    held = claims.held
    claims.held = lambda *about: [(holder, count, "") for holder, count, _ in held(*about)]


@fault("forgets-keys", "a call with a key is done again when it comes again")
def _forget_keys() -> None:
    from colibri.store import keys

    keys.find = lambda *_, **__: None
    keys.keep = lambda *_: None


@fault("guesses-sessions", "of several sessions a call belongs to one of them")
def _guess_sessions() -> None:
    from colibri.store import sessions

    def guess(*caller: Any, **now: Any) -> Any:
        return next(iter(sessions.at_work(*caller, **now)), None)

    sessions.current = guess


@fault("counts-all", "a total ignores the filter")
def _count_all() -> None:
    from colibri.store import trail

    count = trail._count

    def lax(db: Any, wanted: Any) -> int:
        return count(db, trail.Filter(type=wanted.type))

    trail._count = lax


@fault("sorts-by-time", "thoughts are told in the order of their time instead of the ledger's")
def _sort_by_time() -> None:
    from colibri.store import trail

    find = trail.find

    def sorted_by_time(*arguments: Any, **options: Any) -> Any:
        found, total = find(*arguments, **options)
        return sorted(found, key=lambda thought: thought.created_at), total

    trail.find = sorted_by_time


@fault("shares-stdout", "the protocol's descriptor stays where every print reaches it")
def _share_stdout() -> None:
    from colibri.server import transport

    transport.claim_stdout = lambda: os.dup(1)


FORGOTTEN_RULES = (
    *("done-without-evidence", "ignores-seals", "counts-all"),
    *("ignores-claims", "forgets-keys", "guesses-sessions"),
)


if __name__ == "__main__":
    from colibri.server import main

    FAULTS[sys.argv.pop(1)].install()
    sys.exit(main())
