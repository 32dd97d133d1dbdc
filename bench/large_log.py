"""`scripts/large_log RECORDS DIRECTORY`: a log of any size, exported and verified in little memory.

A real store is built, unless it exists; then `colibri export`, colibri_verify.py and verify.mjs
under Node run one after the other. Each must find the log valid and stay under 256 MB. Ten million
records take most of an hour and 15 GB.
"""

import multiprocessing
import os
import sys
import time
from pathlib import Path

from bench import install, stores

LIMIT = 256_000_000
SOURCE = install.ROOT / "src"


def main(arguments: list[str]) -> int:
    if len(arguments) != len(("RECORDS", "DIRECTORY")):
        print(__doc__, file=sys.stderr)
        return 2
    records, project = int(arguments[0]), Path(arguments[1]).resolve()
    database, bundle = project / "data" / "colibri.db", project / "log.colibri.json"
    if not database.exists():
        started = time.monotonic()
        # In a process of its own: what a parent has in memory counts as a child's before its exec.
        building = multiprocessing.get_context("spawn").Process(
            target=stores.log, args=(str(database), records, 1_000)
        )
        building.start()
        building.join()
        print(f"built: {time.monotonic() - started:,.0f} s", flush=True)
    os.environ["COLIBRI_DB_PATH"] = str(database)
    python, measure = sys.executable, install.ROOT / "tests" / "verify" / "measure.mjs"
    export = [python, "-m", "colibri", "export", "--all", "--force", "--output", str(bundle)]
    commands = {
        "colibri export": [*export, "--project", str(project)],
        "colibri_verify.py": [python, str(SOURCE / "colibri_verify.py"), str(bundle)],
        "verify.mjs": ["node", str(measure), str(bundle)],
    }
    return max(measured(name, command, project) for name, command in commands.items())


def measured(name: str, command: list[str], folder: Path) -> int:
    """Run it and print its time and memory; 0 if it succeeded within the limit."""
    output = folder / f"{name}.txt"
    started = time.monotonic()
    with output.open("wb") as file:
        pid = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, file.fileno(), 1)],
        )
        _, status, used = os.wait4(pid, 0)
    code, memory = os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024
    seconds = time.monotonic() - started
    print(
        f"{name}: exit {code}, {memory / 1e6:.0f} MB, {seconds:,.0f} s,"
        f" of them {used.ru_utime + used.ru_stime:,.0f} s of processor time; see {output}",
        flush=True,
    )
    return 0 if code == 0 and memory <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
