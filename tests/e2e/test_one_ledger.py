"""A project has one ledger, wherever in it a server is started."""

import json
import re
import threading
from pathlib import Path

import pytest

from colibri.project import HOLDS_LEDGER, IS_MAIN_TREE, IS_REPOSITORY, IS_START
from tests.support.client import COLIBRI, Server
from tests.support.program import colibri
from tests.test_project import inside, repository, work_tree


@pytest.fixture
def main(tmp_path: Path) -> Path:
    return repository(tmp_path / "main")


def told(project: Path) -> tuple[str, str]:
    """The project of a server that is started here, and the rule that found it."""
    with Server(project, COLIBRI) as server:
        server.data("task_list")
        found = server.data("server_health")["project"]
    return found["path"], found["found_by"]


def test_a_server_finds_the_ledger_of_the_rule(main: Path, tmp_path: Path) -> None:
    """Specification 14.8: in a subdirectory, a work tree and a nested repository."""
    tree, below = work_tree(main, tmp_path / "tree"), Path(inside(main))
    assert told(below) == (str(main), IS_REPOSITORY)
    assert told(below) == (str(main), HOLDS_LEDGER)  # now there is one
    assert told(tree) == (str(main), IS_MAIN_TREE)
    nested = repository(main / "nested")
    assert told(nested) == (str(main), HOLDS_LEDGER)
    alone = tmp_path / "alone"
    alone.mkdir()
    assert told(alone) == (str(alone), IS_START)
    rules = {tree: IS_MAIN_TREE, below: HOLDS_LEDGER, nested: HOLDS_LEDGER}
    for start, rule in rules.items():
        for command in ("status", "doctor"):
            code, out, _ = colibri(start, command)
            assert code == 0
            assert {str(main), rule} <= set(re.split(r"\n|: | {2,}", out)), (command, out)
        _, out, _ = colibri(start, "status", "--json")
        said = json.loads(out)
        assert (said["project"], said["found_by"]) == (str(main), rule)
    code, out, _ = colibri(below, "status", "--project", str(nested))
    assert (code, f"{nested}\n            --project names it" in out) == (0, True)


def test_two_work_trees_at_once_write_one_chain(main: Path, tmp_path: Path) -> None:
    """Specification 9.13, 14.8."""
    trees = [work_tree(main, tmp_path / name) for name in ("left", "right")]

    def work(tree: Path) -> None:
        with Server(tree, COLIBRI) as server:
            for number in range(20):
                server.data("task_create", title=f"{tree.name} {number}")

    threads = [threading.Thread(target=work, args=(tree,)) for tree in trees]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Server(main, COLIBRI) as server:
        titles = {task["title"] for task in server.data("task_list", limit=100)["tasks"]}
        assert server.data("audit_verify_chain")["valid"] is True
    assert titles == {f"{tree.name} {number}" for tree in trees for number in range(20)}
    assert not any((tree / "data").exists() for tree in trees)
