"""The command: its exit codes, what it is given, and what it prints."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verify.conftest import INDEX, ROOT, SCRIPT, VECTORS

GOOD = VECTORS / "good" / "log.colibri.json"
SESSION = VECTORS / "good" / "session-with-tasks.colibri.json"
BAD = VECTORS / "bad" / "task-done-without-thought.colibri.json"
LIMITED = "import resource,sys;resource.setrlimit(resource.RLIMIT_AS,(1<<30,1<<30));import runpy;"


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The script in a Python that sees no installed package."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **environment},
        check=False,
        timeout=60,
    )


def outside(name: str) -> dict[str, str]:
    """The root and head that the index gives for a vector, as on the command line."""
    entry = next(entry for entry in INDEX if entry["file"] == name)
    return {"root": entry["root"], "head": "{seq}:{leaf}".format(**entry["head"])}


def test_a_good_bundle_exits_0_and_says_so_in_separate_lines() -> None:
    done = run(GOOD)
    titles = [line[:12].strip() for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    wanted = ["intact", "complete", "sealed", "rules kept", "erased", "open calls", "not checked"]
    assert [title for title in titles if title in wanted][:7] == wanted
    assert done.stdout.endswith("verdict      GOOD, findings: 0\n")


def test_a_bad_bundle_exits_1_and_names_record_and_lie() -> None:
    done = run(BAD)
    assert (done.returncode, done.stderr) == (1, "")
    assert "found        missing-evidence at record 21: " in done.stdout
    assert "rules kept   no\n" in done.stdout


@pytest.mark.parametrize("name", ["version-3", "cut-short", "too-deep", "head-in-a-gap"])
def test_what_cannot_be_judged_exits_2(name: str) -> None:
    entry = next(entry for entry in INDEX if entry["file"] == f"unclear/{name}.colibri.json")
    options = ["--head", "{seq}:{leaf}".format(**entry["head"])] if entry["head"] else []
    done = run(VECTORS / entry["file"], *options)
    assert (done.returncode, done.stderr) == (2, "")
    assert f"found        {entry['code']}" in done.stdout
    assert "verdict      CANNOT TELL" in done.stdout


def test_a_file_that_cannot_be_read_exits_2(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.json", tmp_path):
        done = run(path)
        assert (done.returncode, done.stderr) == (2, "")
        assert "found        unreadable: the file cannot be read: " in done.stdout
        assert "Errno" not in done.stdout


def test_the_right_root_and_head_are_accepted_and_leave_no_note() -> None:
    given = outside("good/log-root-and-head-given.colibri.json")
    for root, head in (given.values(), (one.upper() for one in given.values())):
        done = run(GOOD, "--root", root, "--head", head)
        assert done.returncode == 0
        assert "outside-" not in done.stdout


def test_another_root_or_head_exits_1() -> None:
    given = outside("good/log-root-and-head-given.colibri.json")
    wrong = run(GOOD, "--root", "ab" * 32)
    assert (wrong.returncode, "root-differs at record 14" in wrong.stdout) == (1, True)
    wrong = run(GOOD, "--head", "17:" + "ab" * 32)
    assert (wrong.returncode, "head-differs at record 17" in wrong.stdout) == (1, True)
    later = run(GOOD, "--head", given["head"].replace("17:", "18:"))
    assert (later.returncode, "truncated at record 18" in later.stdout) == (1, True)


@pytest.mark.parametrize(
    "options",
    [
        ("--root", "xyz"),
        ("--head", "17"),
        ("--head", "x:" + "ab" * 32),
        ("--head", "0:" + "ab" * 32),
        ("--head", "17:" + "ab" * 31),
        ("--nonsense",),
    ],
)
def test_an_option_that_makes_no_sense_exits_2_and_explains_itself(
    options: tuple[str, ...],
) -> None:
    done = run(GOOD, *options)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: colibri_verify.py")
    assert "Traceback" not in done.stderr


def test_without_a_bundle_it_exits_2_with_its_usage() -> None:
    done = run()
    assert (done.returncode, done.stderr[:6]) == (2, "usage:")


def test_help_names_the_options_and_the_exit_codes() -> None:
    done = run("--help")
    assert done.returncode == 0
    words = ("--root SIZE:HEX", "--head SEQ:HEX", "--checkpoint LOG@SIZE:HEX", "--json")
    for word in (*words, "0 good, 1 bad, 2 cannot tell"):
        assert word in done.stdout


def test_json_has_the_documented_members_and_only_these() -> None:
    done = run(SESSION, "--json")
    verdict = json.loads(done.stdout)
    lists = {"seal": "seals", "erased": "erased", "open_call": "open_calls", "finding": "findings"}
    counts = {f"{name}_count" for name in lists}
    others = {"format", "verdict", "bundle", "lines", "coverage", "not_checked"}
    assert set(verdict) == others | {*lists.values()} | counts
    assert set(verdict["bundle"]) == {"log", "kind", "session", "task"} | {
        "records",
        "first_seq",
        "head",
        "checkpoint",
    }
    assert set(verdict["lines"]) == {"intact", "complete", "sealed", "rules"}
    assert set(verdict["seals"][0]) == {"seq", "session", "count", "root"}
    assert (verdict["format"], verdict["verdict"]) == ("colibri-verdict/1", "good")
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    for note in verdict["not_checked"]:
        assert f"| `{note['code']}` |" in page


def test_json_of_a_bad_bundle_lists_the_findings_and_exits_1() -> None:
    done = run(BAD, "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert done.returncode == 1
    assert (finding["code"], finding["seq"]) == ("missing-evidence", 21)
    assert finding["detail"]


def test_a_reader_that_goes_away_does_not_change_the_exit_code() -> None:
    for path, code in ((GOOD, 0), (BAD, 1)):
        read, write = os.pipe()
        os.close(read)
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(path)], stdout=write, stderr=subprocess.PIPE
        )
        os.close(write)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (code, b"")


def test_a_terminal_that_knows_only_ascii_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "later.colibri.json"
    path.write_text('{"format": "colibri-bundle/é"}', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(path)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, b"")
    assert rb"colibri-bundle/\xe9" in done.stdout


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS does not limit a process's memory")
def test_little_memory_is_no_traceback(tmp_path: Path) -> None:
    """120 MB of brackets and quotes in a process that may have 1 GiB."""
    path = tmp_path / "large.colibri.json"
    path.write_bytes(b'["' + b"A" * 120_000_000 + b'"]')
    code = (
        LIMITED
        + f"sys.argv=['x',{str(path)!r}];runpy.run_path({str(SCRIPT)!r},run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (2, "")
