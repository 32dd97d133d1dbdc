"""store/skills.py: what is read of a folder that anybody may have filled, and how much of it."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from colibri.store import skills
from colibri.store.skills import Listing

SECRET = "---\nname: theirs\ndescription: the secret\n---\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / ".agents" / "skills"
    folder.mkdir(parents=True)
    return folder


def add(root: Path, name: str, text: str | None = None) -> Path:
    """A good skill, or whatever the text is."""
    file = root / name / "SKILL.md"
    file.parent.mkdir()
    file.write_text(
        text or f"---\nname: {name}\ndescription: Does {name}.\n---\n", encoding="utf-8"
    )
    return file


def read(root: Path) -> Listing:
    return skills.read(str(root), str(root.parent.parent))


def names(listing: Listing) -> list[str]:
    return [found.skill.name for found in listing.skills]


def reasons(listing: Listing) -> dict[str, str]:
    return {skipped.path: skipped.reason for skipped in listing.skipped}


# What is listed.


def test_canonical_skills_come_first_then_all_by_name(root: Path) -> None:
    for name in ("b", "colibri-z", "a", "colibri-a", "colibri"):
        add(root, name)
    listing = read(root)
    assert names(listing) == ["colibri-a", "colibri-z", "a", "b", "colibri"]
    assert [found.skill.canonical for found in listing.skills] == [True, True, False, False, False]
    assert (listing.skipped, listing.note) == ((), None)


def test_a_skill_has_its_path_and_the_hash_of_its_whole_file(root: Path) -> None:
    file = add(root, "one", "---\nname: one\ndescription: x\n---\n" + "body\n" * 20_000)
    (found,) = read(root).skills
    assert found.path == str(file)
    assert found.sha256 == sha256(file.read_bytes()).hexdigest()


def test_only_folders_with_a_skill_md_count(root: Path) -> None:
    add(root, "one")
    add(root, ".hidden")
    (root / "empty").mkdir()
    (root / "README.md").write_text("---\nname: readme\ndescription: x\n---\n")
    (root / "SKILL.md").write_text("---\nname: skills\ndescription: x\n---\n")
    (root / "deep" / "deeper").mkdir(parents=True)
    (root / "deep" / "deeper" / "SKILL.md").write_text(SECRET)
    listing = read(root)
    assert (names(listing), listing.skipped, listing.note) == (["one"], (), None)


def test_a_malformed_file_hides_no_other(root: Path) -> None:
    add(root, "a")
    bad = add(root, "b", "no frontmatter")
    add(root, "c")
    listing = read(root)
    assert names(listing) == ["a", "c"]
    assert reasons(listing).keys() == {str(bad)}


def test_changes_on_disk_show_at_once(root: Path) -> None:
    add(root, "one")
    assert names(read(root)) == ["one"]
    file = add(root, "two")
    (before,) = [found for found in read(root).skills if found.skill.name == "two"]
    file.write_text("---\nname: two\ndescription: Does more.\n---\n")
    (after,) = [found for found in read(root).skills if found.skill.name == "two"]
    assert after.skill.description == "Does more."
    assert after.sha256 != before.sha256
    file.unlink()
    assert names(read(root)) == ["one"]


# The root.


def test_a_missing_skills_root_is_reported(root: Path) -> None:
    listing = skills.read(str(root / "none"), str(root))
    assert (listing.skills, listing.skipped) == ((), ())
    assert listing.note == (
        f"there is no folder {root}/none: a skill is a file NAME/SKILL.md in it;"
        " COLIBRI_SKILLS_ROOT can name another folder"
    )


def test_a_skills_root_that_is_a_file_is_reported(root: Path) -> None:
    file = add(root, "one")
    note = skills.read(str(file), str(root)).note
    assert note is not None
    assert note.startswith(f"{file} cannot be read: Not a directory;")


def test_a_root_that_is_a_pipe_does_not_keep_us_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for project in (tmp_path, Path("/elsewhere")):
        note = skills.read(str(pipe), str(project)).note
        assert note is not None
        assert "Not a directory" in note


def test_a_root_in_the_project_that_leads_out_of_it_is_not_followed(root: Path) -> None:
    """Containment is by components, not by the beginning of a text."""
    project = root.parent.parent
    outside = project.parent / "project-of-others"  # has the project's path as a prefix
    outside.mkdir()
    add(outside, "theirs")
    root.rmdir()
    root.symlink_to(outside)
    listing = read(root)
    assert listing.skills == ()
    assert listing.note == (
        f"{root} leads out of the project by a link, which is not followed;"
        " COLIBRI_SKILLS_ROOT can name another folder"
    )
    assert skills.count_files(str(root), str(project)) == 0


def test_a_link_within_the_project_is_followed_to_the_root(root: Path) -> None:
    """Several programs share one folder of skills that way."""
    elsewhere = root.parent.parent / "skills"
    elsewhere.mkdir()
    add(elsewhere, "one")
    root.rmdir()
    root.symlink_to("../skills")
    listing = read(root)
    assert names(listing) == ["one"]
    assert listing.skills[0].path == f"{root}/one/SKILL.md"


def test_a_root_outside_the_project_is_where_the_user_says(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    add(real, "one")
    (tmp_path / "link").symlink_to(real)
    for root in (real, tmp_path / "link", tmp_path / "project" / ".." / "real"):
        assert names(skills.read(str(root), str(tmp_path / "project"))) == ["one"]


def test_the_project_itself_can_be_the_root(root: Path) -> None:
    add(root, "one")
    assert names(skills.read(str(root), str(root))) == ["one"]


def test_the_project_may_be_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    add(root, "one")
    (tmp_path / "link").symlink_to("project")
    assert names(read(tmp_path / "link" / ".agents" / "skills")) == ["one"]


# What is not read.


def test_links_are_skipped_and_reported(root: Path) -> None:
    """Neither a folder nor a file that is a link is followed."""
    theirs = root.parent / "theirs"
    secret = add(root.parent, "theirs", SECRET)
    (root / "theirs").symlink_to(theirs)
    (root / "up").symlink_to("..")
    (root / "gone").symlink_to("nowhere")
    for name, target in (("file", secret), ("dots", Path("../../theirs/SKILL.md"))):
        (root / name).mkdir()
        (root / name / "SKILL.md").symlink_to(target)
    listing = read(root)
    assert listing.skills == ()
    link = "it is a symbolic link, which is not followed"
    assert reasons(listing) == {
        f"{root}/dots/SKILL.md": link,
        f"{root}/file/SKILL.md": link,
        f"{root}/gone": link,
        f"{root}/theirs": link,
        f"{root}/up": link,
    }


@contextmanager
def pipe(path: Path) -> Iterator[None]:
    os.mkfifo(path)
    yield


@contextmanager
def listener(path: Path) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
            yield
    finally:
        os.chdir(here)


@contextmanager
def device(path: Path) -> Iterator[None]:
    try:
        os.mknod(path, 0o20644, os.makedev(1, 5))  # /dev/zero, without end
    except PermissionError:
        pytest.skip("only root makes devices")
    yield


@contextmanager
def directory(path: Path) -> Iterator[None]:
    path.mkdir()
    yield


@pytest.mark.parametrize("kind", [pipe, listener, device, directory])
def test_what_is_no_regular_file_is_not_opened(root: Path, kind: object) -> None:
    """A pipe or a device would keep us waiting, or never end."""
    (root / "strange").mkdir()
    add(root, "one")
    with kind(root / "strange" / "SKILL.md"):  # type: ignore[operator]
        listing = read(root)
    assert names(listing) == ["one"]
    assert reasons(listing) == {f"{root}/strange/SKILL.md": "it is not a regular file"}
    assert skills.count_files(str(root), str(root)) == 1


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(root: Path) -> None:
    """It was a folder when the root was looked at: what counts is what it is when it is opened."""
    add(root, "a")
    theirs = add(root.parent, "theirs", SECRET).parent
    add(root, "theirs")

    def swap() -> None:
        if not (root / "theirs").is_symlink():
            (root / "theirs" / "SKILL.md").unlink()
            (root / "theirs").rmdir()
            (root / "theirs").symlink_to(theirs)

    listing = skills.read(str(root), str(root), pause=swap)
    assert names(listing) == ["a"]
    assert reasons(listing).keys() == {f"{root}/theirs/SKILL.md"}
    assert reasons(listing)[f"{root}/theirs/SKILL.md"].startswith("it cannot be read: ")


def test_a_file_that_becomes_something_else_meanwhile_is_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at it and its opening: the opened file is looked at again."""
    file = add(root, "a")
    real = os.stat

    def stat_and_swap(path: str, **options: Any) -> os.stat_result:
        found = real(path, **options)
        if path == "SKILL.md":
            file.unlink()
            os.mkfifo(file)
        return found

    monkeypatch.setattr(os, "stat", stat_and_swap)
    assert reasons(read(root)) == {str(file): "it is not a regular file"}


def test_a_file_that_grows_meanwhile_is_not_read_to_its_end(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = add(root, "a")
    monkeypatch.setattr(skills, "MAX_FILE", 100)
    real = os.fstat

    def fstat_and_grow(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        with file.open("a") as more:
            more.write("x" * 1000)
        return found

    monkeypatch.setattr(os, "fstat", fstat_and_grow)
    assert reasons(read(root)) == {str(file): "it is larger than 16 MiB"}


def test_a_file_that_is_too_large_is_not_read(root: Path) -> None:
    """A sparse file takes no space: 1 GiB costs nothing to make."""
    file = add(root, "large")
    os.truncate(file, 1 << 30)
    at_the_limit = add(root, "limit")
    os.truncate(at_the_limit, 16 << 20)
    listing = read(root)
    assert names(listing) == ["limit"]
    assert reasons(listing) == {str(file): "it is larger than 16 MiB"}


@contextmanager
def without_privileges() -> Iterator[None]:
    """As a user to which permissions apply."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_without_read_permission_is_reported() -> None:
    with TemporaryDirectory(dir="/tmp") as folder:  # where everybody may pass
        root = Path(folder) / "skills"
        root.mkdir()
        Path(folder).chmod(0o755)
        closed, file = add(root, "closed").parent, add(root, "file")
        add(root, "one")
        closed.chmod(0)
        file.chmod(0)
        with without_privileges():
            listing = skills.read(str(root), "/elsewhere")
            root_listing = skills.read(str(closed), "/elsewhere")
            count = skills.count_files(str(root), "/elsewhere")
        closed.chmod(0o700)
    assert names(listing) == ["one"]
    denied = "it cannot be read: Permission denied"
    assert reasons(listing) == {f"{root}/closed/SKILL.md": denied, str(file): denied}
    assert root_listing.note is not None
    assert root_listing.note.startswith(f"{closed} cannot be read: Permission denied;")
    assert count == 2  # whoever may not enter a folder does not see its file


STRANGE = {
    b"\x1b[2J": "\\x1b[2J",
    b"a\nb": "a\\nb",
    "\u202eabc".encode(): "\\u202eabc",
    b"\xff\xc2\x9b": "\\udcff\\x9b",
}


@pytest.mark.parametrize("name", STRANGE)
def test_an_unusual_name_is_spelt_out(root: Path, name: bytes) -> None:
    """Names are bytes, and anybody may choose them."""
    try:
        add(root, os.fsdecode(name), "---\nname: x\ndescription: y\n---\n")
        (root / os.fsdecode(name + b"!")).symlink_to("x")
    except OSError:
        pytest.skip("no such name here")  # macOS has only names in UTF-8
    shown = STRANGE[name]
    assert reasons(read(root)).keys() == {f"{root}/{shown}/SKILL.md", f"{root}/{shown}!"}


# Bounds.


def test_a_folder_with_very_many_folders_is_bounded_and_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "MAX_FOLDERS", 3)
    for name in ("a", "b", "c", "d", "colibri-z"):
        add(root, name)
    listing = read(root)
    assert names(listing) == ["colibri-z", "a", "b"]
    assert listing.note == "only the first 3 of 5 folders were read"
    assert skills.count_files(str(root), str(root)) == 3


@pytest.mark.long
def test_a_folder_with_very_many_entries_is_bounded_and_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "MAX_NAMES", 3)
    for name in ("a", "b", "c"):
        add(root, name)
    assert read(root).note is None
    add(root, "d")
    listing = read(root)
    assert len(listing.skills) == 3
    assert listing.note == "only 3 of its entries were looked at"


@pytest.mark.parametrize(("bound", "most"), [("MAX_FILES", 70), ("MAX_HEADS", 45)])
def test_what_is_read_and_parsed_at_a_time_is_bounded(
    root: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(skills, bound, most)
    for name in ("a", "b", "c", "d"):
        add(root, name)
    listing = read(root)
    assert names(listing) == ["a", "b"]
    assert listing.note == "the folders up to b hold so much that no more were read"


def test_a_long_list_of_what_was_skipped_is_cut(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "MAX_SKIPPED", 2)
    for name in ("a", "b"):
        add(root, name, "no frontmatter")
    assert read(root).note is None
    (root / "link").symlink_to("a")
    listing = read(root)
    assert [Path(path).parent.name for path in reasons(listing)] == ["a", "b"]
    assert listing.note == "1 more were skipped"


def test_two_thousand_skills_are_read_in_good_time(root: Path) -> None:
    """With the real bounds; `pause` is called between them, so that others are served."""
    pauses: list[None] = []
    for number in range(2_001):
        add(root, f"skill-{number:04d}")
    listing = skills.read(str(root), str(root), pause=lambda: pauses.append(None))
    assert len(listing.skills) == len(pauses) == 2_000
    assert listing.note == "only the first 2000 of 2001 folders were read"


def test_no_descriptor_is_left_open(root: Path) -> None:
    add(root, "a")
    add(root, "bad", "no frontmatter")
    (root / "strange").mkdir()
    os.mkfifo(root / "strange" / "SKILL.md")
    (root / "link").symlink_to("a")
    (root / "nested").mkdir()
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        read(root)
        skills.count_files(str(root), str(root))
        skills.read(str(root / "none"), str(root))
        skills.read(str(root / "link"), str(root))
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_the_database_under_another_name_is_skipped_and_need_not_have_all_its_files(
    tmp_path: Path,
) -> None:
    """Specification 15.2: nothing but SQLite may open it."""
    database, root = tmp_path / "colibri.db", tmp_path / "skills"
    database.write_bytes(b"SQLite format 3")
    (root / "twin").mkdir(parents=True)
    (root / "twin" / "SKILL.md").hardlink_to(database)
    listing = skills.read(str(root), str(tmp_path), database=str(database))
    assert [one.reason for one in listing.skipped] == [
        "it is Colibri's own database, which nothing else may open"
    ]
