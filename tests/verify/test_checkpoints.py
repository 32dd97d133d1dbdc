"""Checkpoints in bundles and from elsewhere: mutants, the command's option, the file of a note."""

import base64
import json
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from colibri.core import checkpoint, merkle
from colibri.core.checkpoint import Checkpoint
from tests.vectors.builder import LOG, bundle_from, sha, text_of
from tests.vectors.checkpoints import tree
from tests.verify.conftest import SCRIPT, VECTORS, Node, without_words

MUTANTS = 150
COVERED = VECTORS / "good" / "checkpoint-session.colibri.json"  # record 15, in one of 17
PUBLISHED = Checkpoint(LOG, 17, tree().root(0, 17))
WRONG = sha(b"another").hex()


def mutate(stated: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """One lie: a bit of the root or the path, another size, a hash more or less, two swapped."""
    path: list[str] = list(stated["path"])
    at, other = chance.sample(range(len(path)), 2)
    way = chance.choice(["bit", "root", "size", "more", "less", "swap", "twice"])
    if way == "size":
        sizes = [size for size in range(1, 70) if size != stated["size"]]
        return {**stated, "size": chance.choice([*sizes, 2**40, 2**53 - 1])}
    if way == "root":
        return {**stated, "root": flipped(stated["root"], chance)}
    if way == "bit":
        path[at] = flipped(path[at], chance)
    elif way == "more":
        path.insert(at, WRONG)
    elif way == "less":
        del path[at]
    elif way == "swap":
        path[at], path[other] = path[other], path[at]
    else:
        path.insert(at, path[at])
    return {**stated, "path": path}


def flipped(text: str, chance: random.Random) -> str:
    data = bytearray.fromhex(text)
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data.hex()


def is_accepted(leaf: str, stated: dict[str, Any]) -> bool:
    return merkle.check_inclusion(
        bytes.fromhex(leaf),
        index=14,
        size=stated["size"],
        path=[bytes.fromhex(step) for step in stated["path"]],
        root=bytes.fromhex(stated["root"]),
    )


def test_no_mutated_checkpoint_is_accepted_and_both_verifiers_agree(
    python: ModuleType, node: Node
) -> None:
    """Specification 9.15: nor by the server's own check.

    A bundle whose stated size is another one is refused even where the path would lead to the root
    in both trees: then it is the proof that a checkpoint of the other size exists, and it does not
    fit the one that was published.
    """
    chance, bundle = random.Random(17), bundle_from(COVERED.read_bytes())
    mutants = [mutate(bundle["checkpoint"], chance) for _ in range(MUTANTS)]
    files = [text_of({**bundle, "checkpoint": mutant}) for mutant in mutants]
    given = {"log": LOG, "size": 17, "root": PUBLISHED.root.hex()}
    mine = [python.verify(file, checkpoint=tuple(given.values())).as_json() for file in files]
    items = [{"base64": base64.b64encode(file).decode(), "checkpoint": given} for file in files]
    for mutant, verdict, other in zip(mutants, mine, node("verify", items), strict=True):
        assert without_words(verdict) == without_words(other)
        assert verdict["verdict"] != "good", mutant
        holds = is_accepted(bundle["head"]["leaf"], mutant)
        found = {finding["code"] for finding in verdict["findings"]}
        assert holds == ("bad-checkpoint" not in found), mutant
        assert not holds or mutant["size"] != 17


def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def test_the_command_takes_one_line_or_the_file_of_a_note(tmp_path: Path) -> None:
    note = tmp_path / "checkpoint"
    note.write_text(checkpoint.text(PUBLISHED) + "\n— somebody c2lnbmF0dXJl\n", encoding="utf-8")
    line = checkpoint.trailer(PUBLISHED)
    alone = run(COVERED)
    assert alone.returncode == 0
    assert f"checkpoint   {line}\n" in alone.stdout
    assert "not checked  outside-checkpoint: " in alone.stdout
    for given in (line, line.upper(), note):
        done = run(COVERED, "--checkpoint", given)
        assert done.returncode == 0, done
        assert "outside-head" not in done.stdout and "outside-checkpoint" not in done.stdout
    wrong = run(COVERED, "--checkpoint", f"{LOG}@17:{WRONG}", "--json")
    assert wrong.returncode == 1
    (found,) = json.loads(wrong.stdout)["findings"]
    assert (found["code"], found["seq"]) == ("checkpoint-differs", 15)


NO_NOTES = {
    "hex": f"{LOG}\n17\n{PUBLISHED.root.hex()}\n",
    "bits": checkpoint.text(PUBLISHED).replace("=", "").strip()[:-1] + "B=\n",
    "size": checkpoint.text(PUBLISHED).replace("\n17\n", "\n017\n"),
    "nothing": "",
}


@pytest.mark.parametrize("name", [*NO_NOTES, "no such file", "\0"])
def test_what_is_no_checkpoint_is_a_mistake_of_the_command(tmp_path: Path, name: str) -> None:
    path = tmp_path / "note"
    if name in NO_NOTES:
        path.write_text(NO_NOTES[name], encoding="utf-8")
    given = str(path) if name != "\0" else f"{LOG}@0:{WRONG}"
    done = run(COVERED, "--checkpoint", given)
    assert (done.returncode, done.stdout) == (2, "")
    assert "not LOG@SIZE:HEX, and no" in done.stderr
    assert "Traceback" not in done.stderr
