"""The heads in the state directory: what is written there, and what is made of hostile content."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from colibri.core.errors import ResourceError
from colibri.core.ledger import Head
from colibri.core.witness import Acceptance, Place, Witness
from colibri.store import head_lines, heads
from tests.support.ledger_writer import opened

LOG = "colibri/" + "0a" * 16
PLACE = Place("/project/data/colibri.db", "ada")
AT = "2026-01-01T00:00:00.000000Z"


def leaf(seq: int) -> bytes:
    return seq.to_bytes(32)


def keep(state: Path, seq: int, extends: Callable[[Head], bool] = lambda head: True) -> None:
    heads.keep(str(state), LOG, Head(seq, leaf(seq)), at=AT, place=PLACE, extends=extends)


def sizes(state: Path) -> list[int]:
    return [one.size for one in heads.read(str(state), LOG, PLACE).found]


def file_in(state: Path) -> Path:
    return state / "heads" / f"{LOG[8:]}.jsonl"


def written(state: Path, *lines: bytes) -> Path:
    file_in(state).parent.mkdir(parents=True)
    file_in(state).write_bytes(b"".join(line + b"\n" for line in lines))
    return file_in(state)


def head(**changes: Any) -> dict[str, Any]:
    made = {"log": LOG, "seq": 3, "leaf": "0b" * 32, "at": AT, **PLACE._asdict(), **changes}
    return {name: value for name, value in made.items() if value is not ...}


def acceptance(**changes: Any) -> dict[str, Any]:
    by, of = {"seq": 2, "leaf": "0c" * 32}, PLACE._asdict()
    return head(**{"why": "I know", "by": by, "of": of, **changes})


def test_a_head_is_one_line_that_only_the_user_can_read(tmp_path: Path) -> None:
    """Specification 24.1."""
    state = tmp_path / "state" / "colibri"
    keep(state, 3)
    keep(state, 5)
    (file,) = (state / "heads").iterdir()
    assert json.loads(file.read_bytes().splitlines()[0]) == head(leaf=leaf(3).hex())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    folders = (state.parent, state, state / "heads")
    assert {stat.S_IMODE(one.stat().st_mode) for one in folders} == {0o700}
    found = heads.read(str(state), LOG, PLACE)
    assert found.found[1] == Witness(
        LOG, 5, leaf(5), None, "state", head_lines.WHERE, AT, place=PLACE
    )
    assert (found.accepted, found.problems) == ((), ())


def test_nothing_is_kept_and_nothing_known_without_a_directory(tmp_path: Path) -> None:
    """Specification 24.3: neither is an error."""
    for state in (None, str(tmp_path / "none")):
        assert heads.read(state, LOG, PLACE) == ((), (), PLACE, ())


def test_an_acceptance_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Specification 24.8: of a head, and of a checkpoint that was taken nowhere in particular."""
    one = Witness(LOG, 3, leaf(3), None, "state", "x", place=PLACE)
    two = Witness(LOG, 4, None, leaf(4), "ref", "y")
    by, there = Head(2, leaf(2)), Place("/there", "ada")
    heads.accept(str(tmp_path), LOG, [one, two], why="I know", at=AT, by=by, place=there)
    assert {*heads.read(str(tmp_path), LOG, PLACE).accepted} == {
        Acceptance(3, leaf(3), PLACE, "I know", AT, by, there),
        Acceptance(4, leaf(4), None, "I know", AT, by, there, what="root"),
    }


def test_the_longest_reason_for_many_witnesses_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Specification 24.8: one that no line could hold would be lost unnoticed."""
    many = [Witness(LOG, seq, leaf(seq), None, "state", "x") for seq in range(1, 101)]
    why, by = "\N{BIRD}" * 2000, Head(2, leaf(2))
    heads.accept(str(tmp_path), LOG, many, why=why, at=AT, by=by, place=PLACE)
    found = heads.read(str(tmp_path), LOG, PLACE)
    assert ({one.why for one in found.accepted}, len(found.accepted)) == ({why}, 100)


BAD = {
    b"": "",
    b"{": "it is not JSON",
    b"\xff": "it is not JSON",
    b"[" * 16_000: "it is not JSON",
    b"9" * 5_000: "it is not JSON",
    b"[]": "it is not an object",
    b" " * (head_lines.MOST_BYTES + 1): "it is too long",
} | {
    json.dumps(said).encode(): why
    for said, why in (
        ({}, "it has other members than a head or an acceptance"),
        (head(more=1), "it has other members than a head or an acceptance"),
        (head(at=...), "it has other members than a head or an acceptance"),
        (head(leaf=..., root="0b" * 32), "it has other members than a head or an acceptance"),
        (acceptance(root="0b" * 32), "it has other members than a head or an acceptance"),
        (head(seq=0), "seq is not the number of a record"),
        (head(seq=2**53), "seq is not the number of a record"),
        (head(seq=True), "seq is not the number of a record"),
        (head(seq=3.0), "seq is not the number of a record"),
        (head(seq="3"), "seq is not the number of a record"),
        (head(leaf="0B" * 32), "leaf is not 64 hex digits"),
        (head(leaf="0b" * 31), "leaf is not 64 hex digits"),
        (head(leaf=None), "leaf is not 64 hex digits"),
        (head(log="colibri/../../x"), "log is not the id of a log"),
        (head(path=""), "path is not a text"),
        (head(machine=7), "machine is not a text"),
        (head(at="\ud800"), "at is not a text"),
        (acceptance(why=["x"]), "why is not a text"),
        (acceptance(by=[]), "by is not an object with leaf and seq"),
        (acceptance(by={"seq": 1}), "by is not an object with leaf and seq"),
        (acceptance(of=7), "of is not an object with machine and path"),
        (acceptance(of={"path": "/", "machine": 1}), "machine is not a text"),
        (acceptance(more=7), "more is not a list of witnesses"),
        (acceptance(more=[7]), "more is not a list of witnesses"),
        (acceptance(more=[[1, "0b" * 32, 1]]), "more is not a list of witnesses"),
        (acceptance(more=[[1, "0b" * 32]] * 100), "more is not a list of witnesses"),
        (acceptance(more=[[0, "0b" * 32]]), "seq is not the number of a record"),
        (acceptance(more=[[1, "0b"]]), "leaf is not 64 hex digits"),
    )
}


@pytest.mark.parametrize(("text", "why"), BAD.items(), ids=[str(n) for n in range(len(BAD))])
def test_a_damaged_line_is_skipped_and_named(tmp_path: Path, text: bytes, why: str) -> None:
    """Specification 24.3: the lines around it count."""
    good = json.dumps(head()).encode()
    file = written(tmp_path, good, text, json.dumps(acceptance(of=None)).encode())
    found = heads.read(str(tmp_path), LOG, PLACE)
    assert (len(found.found), len(found.accepted)) == (1, 1)
    assert found.problems == ((f"{file}, line 2, was skipped: {why}",) if why else ())


def test_another_log_in_the_file_is_named_and_its_acceptances_do_not_count(tmp_path: Path) -> None:
    """Specification 24.3: whoever copies a line from one file to another excuses nothing."""
    other = "colibri/" + "f" * 32
    lines = (head(log=other), acceptance(log=other))
    written(tmp_path, *(json.dumps(one).encode() for one in lines))
    found = heads.read(str(tmp_path), LOG, PLACE)
    assert ([one.log for one in found.found], found.accepted) == ([other], ())


def test_a_file_that_is_too_large_is_read_from_its_end(tmp_path: Path) -> None:
    """Specification 24.3: in bounded memory, and it says so."""
    line = json.dumps(head()).encode() + b"\n"
    file = written(tmp_path)
    file.write_bytes(line * (heads.MOST_READ // len(line) + 100) + line.replace(b"3", b"4"))
    found = heads.read(str(tmp_path), LOG, PLACE)
    *read, unread = found.found
    assert unread.problem == f"{file} is larger than Colibri makes it: its start was not read"
    assert (len(read), read[-1].size) == (heads.MOST_READ // len(line), 4)


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "depth", "why"),
    [
        (a_link, 0, "cannot open {}: it is a link"),
        (a_link, 1, "cannot open {}: it is a link"),
        (a_link, 2, "cannot open {}: it is a link"),
        (a_pipe, 0, "{} is not a regular file: it was not used"),
        (a_directory, 0, "{} is not a regular file: it was not used"),
    ],
)
def test_what_is_no_file_of_the_users_own_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], depth: int, why: str
) -> None:
    """Specification 24.3: it is neither read nor written."""
    state = tmp_path / "colibri"
    keep(state, 3)
    path = [file_in(state), state / "heads", state][depth]
    spoil(path)
    found = heads.read(str(state), LOG, PLACE)
    assert [one.problem for one in found.found] == [why.format(path)]
    with pytest.raises((ResourceError, OSError)):
        keep(state, 5)


def test_files_of_another_user_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Specification 24.3."""
    keep(tmp_path, 3)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    (unread,) = heads.read(str(tmp_path), LOG, PLACE).found
    assert unread.problem == f"{tmp_path} belongs to another user: it was not used"


def test_the_id_of_a_log_makes_no_path(tmp_path: Path) -> None:
    """Specification 24.3: the id comes from a file that anybody may have sent."""
    found = heads.read(str(tmp_path), "../../etc/passwd", PLACE)
    assert found.problems == ("'../../etc/passwd' is not the id of a log",)


def test_other_logs_are_those_whose_newest_head_is_of_the_same_place(tmp_path: Path) -> None:
    """Specification 24.11: of others, of other places and of what cannot be read, nothing."""
    state, database = tmp_path / "state", tmp_path / "data" / "colibri.db"
    here, logs = heads.here(str(database)), [f"colibri/{number:032x}" for number in range(4)]
    for log, seq, place in (
        *((logs[0], 3, here), (logs[1], 3, PLACE), (logs[1], 4, here)),
        *((logs[2], 3, here), (logs[2], 4, PLACE)),
    ):
        head = Head(seq, leaf(seq))
        heads.keep(str(state), log, head, at=AT, place=place, extends=lambda head: True)
    (state / "heads" / "x.jsonl").mkdir()
    (state / "heads" / "y.jsonl").write_bytes(b"forged\n")
    (state / "heads" / "z").write_bytes(b"")
    with opened(tmp_path, log=logs[0]) as db:
        kept = heads.of(db, str(database), str(state), others=True)
        assert [(one.log, one.size) for one in kept.found] == [(logs[0], 3), (logs[1], 4)]
        assert len(heads.of(db, str(database), str(state)).found) == 1
        missing = heads.of(db, str(database), str(tmp_path / "none"), others=True)
        assert missing.found == heads.of(db, str(database), None, others=True).found == ()
    with opened(tmp_path / "forged", log="../x") as db:
        kept = heads.of(db, str(database), str(state), others=True)
        assert [one.log for one in kept.found] == logs[:2]
        assert kept.problems == ("'../x' is not the id of a log",)


def test_a_line_that_a_full_disk_cut_off_spoils_no_other(tmp_path: Path) -> None:
    """Specification 24.3."""
    keep(tmp_path, 3)
    with file_in(tmp_path).open("ab") as file:
        file.write(b'{"log":"colib')
    keep(tmp_path, 5)
    assert sizes(tmp_path) == [3, 5]


def test_a_long_file_loses_only_heads_that_later_ones_make_redundant(tmp_path: Path) -> None:
    """Specification 24.4: what the log does not extend stays, and so does every acceptance."""
    lost = {7, 8, 9}
    keep(tmp_path, 7)
    found = heads.read(str(tmp_path), LOG, PLACE).found
    heads.accept(str(tmp_path), LOG, found, why="I know", at=AT, by=Head(2, leaf(2)), place=PLACE)
    for seq in range(1, 400):
        keep(tmp_path, seq, lambda head: head.seq not in lost)
    assert file_in(tmp_path).stat().st_size <= heads.MOST_BYTES
    left = sizes(tmp_path)
    assert left[:4] == [7, 1, 8, 9]  # the second 7 was the same line
    assert left[-heads.KEPT_HEADS :] == [*range(400 - heads.KEPT_HEADS, 400)]
    assert len(heads.read(str(tmp_path), LOG, PLACE).accepted) == 1
    assert stat.S_IMODE(file_in(tmp_path).stat().st_mode) == 0o600
    assert [*(tmp_path / "heads").iterdir()] == [file_in(tmp_path)]


def test_what_was_accepted_stays_whatever_comes_after_it(tmp_path: Path) -> None:
    """Specification 24.4: also after very many heads of a copy that goes on by itself."""
    accepted = [Witness(LOG, seq, leaf(seq), None, "state", "x") for seq in range(1000, 1300)]
    for at in (0, 250):
        some = accepted[at : at + 300]
        heads.accept(str(tmp_path), LOG, some, why=f"{at}", at=AT, by=Head(2, leaf(2)), place=PLACE)
    own, there = 5000, Place("/there/colibri.db", "ada")
    keep(tmp_path, own, lambda head: False)
    for seq in range(2000, 2600):
        head = Head(seq, leaf(seq))
        heads.keep(str(tmp_path), LOG, head, at=AT, place=there, extends=lambda head: False)
    found = heads.read(str(tmp_path), LOG, PLACE)
    assert {one.size for one in found.accepted} == {*range(1000, 1300)}
    assert {one.why for one in found.accepted} == {"0", "250"}
    assert own in sizes(tmp_path), "what accuses this ledger is not buried by those of a copy"
    assert sizes(tmp_path)[-1] == 2599
    lines = file_in(tmp_path).read_text().splitlines()
    assert sum('"why"' in line for line in lines) == 4, "many share a line"
    assert len(lines) < 600


def test_a_rewrite_that_was_interrupted_is_tried_again(tmp_path: Path) -> None:
    """Specification 24.4: its file is removed, and the time after that it works."""
    file = written(tmp_path, *([json.dumps(head()).encode()] * 400))
    new = file.with_name(f".{file.name}.new")
    new.write_bytes(b"half")
    keep(tmp_path, 4)
    assert (new.exists(), file.stat().st_size > heads.MOST_BYTES) == (False, True)
    keep(tmp_path, 5)
    assert file.stat().st_size < heads.MOST_BYTES
