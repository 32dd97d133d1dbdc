"""Makes the private environments of this clone; called by scripts/setup with one of the levels.

    .venv             run: locks/run.txt    postgres: locks/postgres.txt, which contains run
                      dev: locks/dev.txt, which contains both
    .venv-client-1x   dev: locks/client-1x.txt

Each environment holds a stamp per level it serves: the first line of the lock file it was built
from, written last. If the stamp is missing or differs, the environment is rebuilt from scratch.

Both names are links to directories next to them. A new environment is built in its own directory
and then swapped in by one rename: servers that run or start meanwhile always find a complete one.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
CLIENT = ROOT / ".venv-client-1x"

# environment -> the levels it is stamped for; the last one names the lock that is installed
LEVELS: dict[str, dict[Path, tuple[str, ...]]] = {
    "run": {VENV: ("run",)},
    "postgres": {VENV: ("run", "postgres")},
    "dev": {VENV: ("run", "postgres", "dev"), CLIENT: ("client-1x",)},
}
BUILT = ".env-"  # prefix of the directories' names
UNAVAILABLE = 75


class SetupError(Exception):
    """Set-up cannot continue; the text is for the user."""


def main(level: str) -> None:
    with (ROOT / ".setup.lock").open("a") as lock:
        # Children share the lock: if pip outlives this process, others still stay out.
        os.set_inheritable(lock.fileno(), True)
        acquire(lock)
        for env, stamps in LEVELS[level].items():
            if not current(env, stamps):
                build(env, stamps)


def acquire(lock: IO[str]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("waiting for another set-up of this clone")
        fcntl.flock(lock, fcntl.LOCK_EX)


def current(env: Path, stamps: tuple[str, ...]) -> bool:
    return os.access(env / "bin/python", os.X_OK) and all(
        stamp(env, name).is_file() and stamp(env, name).read_text() == lock_id(name)
        for name in stamps
    )


def build(env: Path, stamps: tuple[str, ...]) -> None:
    say(f"setting up {env.name} (once, this may take a minute)")
    new = Path(tempfile.mkdtemp(prefix=BUILT, dir=ROOT))
    try:
        install(new, ROOT / f"locks/{stamps[-1]}.txt")
        if env == VENV:
            # Relative, so that the clone can be moved; a .pth line is the cheapest way to install.
            (site_packages(new) / "colibri.pth").write_text("../../../../src\n")
            (new / "bin/colibri").symlink_to("../../scripts/colibri")
        for name in stamps:
            stamp(new, name).write_text(lock_id(name))
        switch(env, new)
    finally:
        remove_unused()
    say(f"{env.name} is ready")


def switch(env: Path, new: Path) -> None:
    """Point the name at the new directory."""
    if env.is_dir() and not env.is_symlink():  # as older versions of this program left it
        env.rename(tempfile.mkdtemp(prefix=BUILT, dir=ROOT))
    link = new / "link"
    link.symlink_to(new.name)
    link.rename(env)


def remove_unused() -> None:
    """Delete directories that no name points at: replaced, or left by an interrupted set-up."""
    used = {env.resolve() for envs in LEVELS.values() for env in envs}
    for directory in ROOT.glob(f"{BUILT}*"):
        if directory.resolve() not in used:
            shutil.rmtree(directory, ignore_errors=True)


def install(env: Path, lock: Path) -> None:
    """Install wheels only, each with a known hash: nothing is built and nothing is unpinned."""
    venv.create(env, symlinks=True)
    python = str(env / "bin/python")
    uv = shutil.which("uv")
    if uv:
        pip = [uv, "pip", "install", "--python", python, "--no-build", "--compile-bytecode"]
    else:
        run([python, "-Im", "ensurepip"], "cannot get pip (on Debian, install python3-venv)")
        pip = [python, "-Im", "pip", "install", "--only-binary", ":all:", "--no-input"]
    name = lock.relative_to(ROOT)
    run([*pip, "--quiet", "--require-hashes", "-r", str(lock)], f"cannot install {name}")


def run(command: list[str], complaint: str) -> None:
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,  # ours may be the client's pipe
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        close_fds=False,  # the child shares the lock
    )
    if done.returncode:
        raise SetupError(f"{complaint}\n{done.stdout.rstrip()}")


def lock_id(name: str) -> str:
    with (ROOT / f"locks/{name}.txt").open(encoding="ascii") as lock:
        return lock.readline()


def stamp(env: Path, name: str) -> Path:
    return env / f"stamp-{name}"


def site_packages(env: Path) -> Path:
    return env / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def say(text: str) -> None:
    with contextlib.suppress(OSError):  # the client is gone; finish for its next start
        print(f"colibri: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except (SetupError, OSError) as error:
        say(f"error: set-up failed: {error}")
        sys.exit(UNAVAILABLE)
    except KeyboardInterrupt:
        say("set-up interrupted; the next start begins again")
        sys.exit(130)
