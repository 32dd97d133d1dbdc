"""Readers have no mutex, so no two threads of a server may share one."""

import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from colibri.store.sqlite.watch import Reader
from tests.contract import Linked
from tests.support.in_process import project
from tests.support.ledger_reader import eventually


def test_each_thread_reads_over_a_connection_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, users = Reader.__enter__, defaultdict[Reader, set[str]](set)

    def noted(reader: Reader) -> Any:
        users[reader].add(threading.current_thread().name)
        return begin(reader)

    monkeypatch.setattr(Reader, "__enter__", noted)
    server = Linked(config=project(tmp_path, COLIBRI_HEALTH_INTERVAL_MS="100"))
    with server:
        server.wait_for_store()
        server.call("task_create", {"title": "a task"})
        for tool in ("task_list", "audit_verify_chain") * 10:
            server.call(tool)
        eventually(lambda: len(users) > 1, "the health thread has read, too")
    assert sorted(users.values(), key=sorted) == [{"colibri-health"}, {"colibri-read"}]
