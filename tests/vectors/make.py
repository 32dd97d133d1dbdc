"""Write the vectors: python -m tests.vectors.make DIRECTORY

The files in this folder are frozen (SHA256SUMS) from the first release on. A new vector is added;
one that is there is then never rewritten: whoever verifies by them must find them unchanged.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.vectors import (
    about,
    checkpoints,
    claims,
    deeds,
    digests,
    forged,
    further,
    gates,
    honest,
    malformed,
    of_task,
    tail,
    tampered,
)
from tests.vectors.builder import Object

FAMILIES = (
    *(honest, tampered, forged, malformed, of_task, tail, further, about, digests, claims),
    *(deeds, gates, checkpoints),
)


def main(arguments: list[str]) -> int:
    (directory,) = map(Path, arguments)
    index: list[Object] = []
    names = ["index.json"]
    for family in FAMILIES:
        for vector in family.vectors():
            path = directory / vector.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(vector.data())
            index.append(vector.entry())
            names.append(vector.file)
    _write(directory / "index.json", index)
    sums = [f"{_sha(directory / name)}  {name}\n" for name in sorted(names)]
    (directory / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return 0


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
