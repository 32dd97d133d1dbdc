"""src/colibri/store/place.py: on what file system a database lies, and who else gets at it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from colibri.core.errors import ResourceError
from colibri.store.sqlite import place
from tests.store.conftest import Writer
from tests.support.client import COLIBRI, Server
from tests.support.ledger_reader import booted, error, eventually
from tests.support.mounts import small_disk

SERVE = """
import sys
from colibri.store.sqlite import place
place.MOUNTS = sys.argv.pop(1)
from colibri.server import main
sys.exit(main())
"""


def mounts(folder: Path, kind: str) -> str:
    """A list of mounts in which the folder's device is of this kind; and some lines more."""
    device = folder.stat().st_dev
    lines = [
        "22 27 0:21 / /proc rw,relatime - proc proc rw",
        "27 1 254:999 / /else rw,relatime shared:1 master:2 - xfs /dev/else rw,discard",
        f"29 1 {os.major(device)}:{os.minor(device)} /a\\040b / rw - {kind} host:/export rw,vers=4",
    ]
    path = folder / "mountinfo"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "kind",
    [
        *("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse", "fuse.sshfs", "fuseblk", "gfs2"),
        *("virtiofs", "vboxsf", "fakeowner", "ocfs2", "lustre", "glusterfs", "prl_fs", "vmhgfs"),
        *("drvfs", "osxfs", "grpcfuse", "beegfs"),
    ],
)
def test_a_network_or_user_space_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Writer, path: str, kind: str
) -> None:
    """Its locks and shared memory cannot be trusted; and nothing is made there."""
    monkeypatch.setattr(place, "MOUNTS", mounts(tmp_path, kind))
    with pytest.raises(ResourceError, match=rf"file system \({kind}\)") as caught, writer():
        pass
    assert caught.value.hint == "set COLIBRI_DB_PATH to a local disk"
    assert not Path(path).parent.exists()


def test_a_database_that_is_mounted_by_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Writer, path: str
) -> None:
    """As a container may have it: the write-ahead log is then in a directory of its own."""
    listed = Path(mounts(tmp_path, "ext4"))
    listed.write_text(listed.read_text().replace("/else", path))
    monkeypatch.setattr(place, "MOUNTS", str(listed))
    with pytest.raises(ResourceError, match="is mounted as a single file") as caught, writer():
        pass
    assert caught.value.hint == "mount its directory instead"


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "apfs", "fusectl"])
def test_a_local_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Writer, kind: str
) -> None:
    monkeypatch.setattr(place, "MOUNTS", mounts(tmp_path, kind))
    with writer():
        assert place.file_system(str(tmp_path)) == kind


def test_where_nobody_says_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Writer
) -> None:
    """On macOS there is no such list, and a subvolume of btrfs is not in it."""
    for listed in (str(tmp_path / "none"), os.devnull):
        monkeypatch.setattr(place, "MOUNTS", listed)
        assert place.file_system(str(tmp_path)) is None
        with writer():
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_real_mount_is_distinguished_from_what_is_below_it(tmp_path: Path) -> None:
    """By the list of this very machine; also for a path that is not there yet."""
    below = place.file_system(str(tmp_path))
    assert below is not None
    with small_disk(tmp_path / "disk") as disk:
        assert place.file_system(str(disk)) == "tmpfs"
        assert place.file_system(str(disk / "not" / "there" / "yet.db")) == "tmpfs"
    assert place.file_system(str(tmp_path / "disk")) == below


def test_a_server_there_says_why_and_what_to_do(tmp_path: Path) -> None:
    """UNAVAILABLE for every call, and exit 75 at its end."""
    program = (sys.executable, "-c", SERVE, mounts(tmp_path, "nfs4"))
    with Server(tmp_path, program) as server:
        problem = error(server.call("task_list"))
        assert problem["code"] == "UNAVAILABLE"
        assert "is on a network, shared or user-space file system (nfs4)" in problem["message"]
        assert server.data("server_health")["db"]["status"].startswith("not open: ")
        assert server.close() == 75
        assert "hint: set COLIBRI_DB_PATH to a local disk" in server.stderr
    assert not (tmp_path / "data").exists()


# Permissions.

OPEN = {
    (0o600, 0o755): False,
    (0o644, 0o700): False,
    (0o644, 0o755): True,
    (0o640, 0o750): True,
    (0o640, 0o701): False,
    (0o602, 0o701): True,
    (0o604, 0o710): False,
}


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory to which everybody can come; those of pytest are private."""
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder).resolve()


@pytest.mark.parametrize(("modes", "is_open"), OPEN.items(), ids=str)
def test_others_get_at_a_file_that_they_may_open_in_a_directory_that_they_may_pass(
    public: Path, modes: tuple[int, int], is_open: bool
) -> None:
    path = public / "colibri.db"
    path.touch()
    path.chmod(modes[0])
    public.chmod(modes[1])
    found = place.exposure(str(path))
    assert found == (f"other users can open {path}: chmod 600" if is_open else "")


def test_a_directory_further_up_protects_as_well(public: Path) -> None:
    public.chmod(0o755)
    path = public / "a" / "b" / "colibri.db"
    path.parent.mkdir(parents=True)
    path.touch()
    path.chmod(0o666)
    assert place.exposure(str(path)) != ""
    (public / "a").chmod(0o700)
    assert place.exposure(str(path)) == ""


def test_what_is_not_there_is_not_open(public: Path) -> None:
    public.chmod(0o755)
    assert place.exposure(str(public / "colibri.db")) == ""
    assert place.exposure(str(public / "nowhere" / "colibri.db")) == ""


def test_the_write_ahead_log_and_what_a_link_leads_to_count_as_well(public: Path) -> None:
    public.chmod(0o755)
    for name in ("colibri.db", "colibri.db-wal"):
        (public / name).touch()
        (public / name).chmod(0o644)
    (public / "link.db").symlink_to("colibri.db")
    both = f"{public}/colibri.db and {public}/colibri.db-wal"
    assert place.exposure(str(public / "link.db")) == f"other users can open {both}: chmod 600"


def test_a_server_warns_of_a_database_that_others_can_read(public: Path) -> None:
    """On stderr when it starts, and in server_health."""
    with Server(public, COLIBRI) as server:
        booted(server)
        assert server.close() == 0
        assert "other users" not in server.stderr
    for folder in (public, public / "data"):
        folder.chmod(0o755)
    (public / "data" / "colibri.db").chmod(0o644)
    with Server(public, COLIBRI, COLIBRI_HEALTH_INTERVAL_MS="20") as server:
        booted(server)
        assert f"[colibri] other users can open {public}/data/colibri.db" in server.stderr

        def checks() -> str:
            found = server.data("server_health")["condition"]["checks"]
            return str(found.get("permissions", ""))

        assert eventually(checks, "the first check").startswith("other users can open ")
        (public / "data").chmod(0o700)
        eventually(lambda: checks() == "ok", "a check that finds it closed")
        assert server.close() == 0
