"""Records deeds in a project's ledger, as a hook does while a server runs there."""

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from colibri.store import ledger
from colibri.store.deeds import Arrival, Deed, record
from colibri.store.ledger import Chain
from tests.support.ledger_writer import DEED, nonce, opened

HOST = "host-session-1"


def observe(project: Path, *, late: str | None = None, **said: Any) -> int:
    """Record a deed of the host HOST, by default a command that has ended; returns its seq."""
    arrival = Arrival(
        call=str(uuid.uuid4()),
        bind_call=str(uuid.uuid4()),
        at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        late=late,
        lost=0,
    )
    with opened(project) as db, db.engine.transaction(db, durable=False):
        chain = Chain(db, ledger.log_id(db), nonce)
        made = Deed(**{**DEED, "host_session": HOST, **said})
        entry = record(db, chain, made, arrival, minutes=60)
    assert entry is not None
    return entry.seq - (said.get("command") is not None or bool(said.get("paths")))


def run(project: Path, command: str, exit: int | None = 0, **said: Any) -> int:
    """Record a command's start and end; returns the seq of the end."""
    use = f"use-{uuid.uuid4()}"
    observe(project, event="tool.begin", use=use, command=command)
    event = "tool.end" if exit == 0 else "tool.failed"
    return observe(
        project, **{"event": event, "use": use, "command": command, "exit": exit, **said}
    )


def edit(project: Path, **said: Any) -> int:
    return observe(project, class_="edit", use=f"use-{uuid.uuid4()}", paths=("a.py",), **said)
