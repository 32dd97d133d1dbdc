"""docs/formats.md §12: the format is simple enough to check a record by hand."""

import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

from tests.vectors.builder import (
    Object,
    b64,
    bundle_from,
    edit_header,
    edit_payload,
    sha,
    text_of,
)
from tests.verify.conftest import ROOT, VECTORS

LOG = bundle_from((VECTORS / "good" / "log.colibri.json").read_bytes())


def snippet() -> str:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page.split("## 12 By hand")[1], re.DOTALL)
    assert len(block.splitlines()) <= 14
    return str(block)


def by_hand(directory: Path, bundle: Object) -> dict[str, str]:
    """What the snippet prints, exactly as it is written."""
    (directory / "log.colibri.json").write_bytes(text_of(bundle))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e"],
        input=snippet(),
        cwd=directory,
        env={**os.environ, "PATH": path},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return {line[:7].strip(): line[8:] for line in done.stdout.splitlines()}


def test_the_snippet_accepts_a_good_bundle(tmp_path: Path) -> None:
    body = b64decode(LOG["payloads"]["8"]["body"])
    leaf = sha(b"\0", b64decode(LOG["headers"][7])).hex()
    assert json.loads(b64decode(LOG["headers"][8]))["prev"] == leaf
    assert by_hand(tmp_path, LOG) == {
        "says": repr(body),
        "payload": "True",
        "link": "True",
        "leaf": leaf,
    }


def test_the_snippet_sees_another_payload(tmp_path: Path) -> None:
    told = by_hand(tmp_path, edit_payload(LOG, 8, content="I advised against it"))
    assert (told["payload"], told["link"]) == ("False", "True")


def test_the_snippet_sees_another_record_before_it(tmp_path: Path) -> None:
    told = by_hand(tmp_path, edit_header(LOG, 7, agent="somebody else"))
    assert (told["payload"], told["link"]) == ("True", "False")


def test_the_snippet_shows_another_leaf_for_another_header(tmp_path: Path) -> None:
    changed = edit_header(LOG, 8, agent="somebody else")
    assert changed["headers"][7] != LOG["headers"][7] == b64(b64decode(LOG["headers"][7]))
    assert by_hand(tmp_path, changed)["leaf"] != by_hand(tmp_path, LOG)["leaf"]
