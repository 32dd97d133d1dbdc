"""src/colibri/cli/files.py: a file is replaced whole or not at all."""

import os
from pathlib import Path

import pytest

from colibri.cli import files
from colibri.cli.settings.jsonc import Broken
from colibri.core.errors import ResourceError
from tests.support.mounts import immutable, small_disk

STAMP = "2026-01-02T030405000006Z"


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_what_another_program_has_changed_meanwhile_is_not_lost(tmp_path: Path) -> None:
    """Claude Code, say, writes ~/.claude.json while it runs."""
    path = tmp_path / "a.json"
    path.write_text("old")
    old = files.read(str(path))
    path.write_text("newer")
    with pytest.raises(ResourceError, match="has just been changed by another program"):
        files.replace(old, "ours", STAMP)
    assert path.read_text() == "newer"
    assert names(tmp_path) == ["a.json"]


def test_a_file_that_appeared_meanwhile_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    old = files.read(str(path))
    path.write_text("theirs")
    with pytest.raises(ResourceError, match="changed by another program"):
        files.replace(old, "ours", STAMP)
    assert path.read_text() == "theirs"


def test_an_unwritable_directory_is_reported_and_nothing_is_left(tmp_path: Path) -> None:
    directory = tmp_path / "conf"
    directory.mkdir()
    path = directory / "a.json"
    path.write_text("old")
    old = files.read(str(path))
    refused = pytest.raises(ResourceError, match=r"cannot write .*: Operation not permitted")
    with immutable(directory), refused:
        files.replace(old, "new", STAMP)
    assert path.read_text() == "old"
    assert names(directory) == ["a.json"]


def test_a_file_of_ours_is_deleted_as_it_was_read_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "conf" / "a.sh"
    path.parent.mkdir()
    path.write_text("ours")
    old = files.read(str(path))
    refused = pytest.raises(ResourceError, match=r"cannot delete .*: Operation not permitted")
    with immutable(path.parent), refused:
        files.delete(old)
    path.write_text("theirs")
    with pytest.raises(ResourceError, match="changed by another program"):
        files.delete(old)
    assert path.read_text() == "theirs"
    files.delete(files.read(str(path)))
    assert not path.exists()


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k") as disk:
        path = disk / "a.json"
        path.write_text("old")
        with pytest.raises(ResourceError, match="No space left on device"):
            files.replace(files.read(str(path)), "x" * 100_000, STAMP)
        assert path.read_text() == "old"
        assert names(disk) == ["a.json"]


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(ResourceError, match=r"cannot read .*: Too many levels of symbolic links"):
        files.read(str(loop))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(ResourceError, match="is not a regular file"):
        files.read(str(fifo))
    large = tmp_path / "large"
    large.touch()
    os.truncate(large, files.MAX_TEXT + 1)
    with pytest.raises(ResourceError, match="large is too large for settings"):
        files.read(str(large))


def test_a_dangling_link_leads_to_where_the_file_is_created(tmp_path: Path) -> None:
    link = tmp_path / "a.json"
    link.symlink_to("deep/b.json")
    assert files.replace(files.read(str(link)), "new", STAMP) is None
    assert link.is_symlink()
    assert (tmp_path / "deep" / "b.json").read_text() == "new"


def test_the_owner_stays_the_owner(tmp_path: Path) -> None:
    """Whoever runs it with sudo must not end up with a file of root's."""
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(0o620)
    try:
        os.chown(path, 12345, 23456)
    except PermissionError:
        pytest.skip("only root can give files away")
    backup = files.replace(files.read(str(path)), "new", STAMP)
    assert backup is not None
    for one in (path, Path(backup)):
        found = one.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (12345, 23456, 0o620)


def test_a_new_file_has_the_permissions_that_the_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.replace(files.read(str(tmp_path / "a.json")), "new", STAMP)
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o7777 == 0o640


def test_bytes_that_are_no_text_have_a_place(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes("{\n é".encode() + b"\xff")
    with pytest.raises(Broken, match="line 2, column 3: it is not UTF-8"):
        files.read(str(path))
