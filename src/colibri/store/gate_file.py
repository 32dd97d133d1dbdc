"""A project's colibri.toml, read once; what is wrong with it is kept, not raised."""

import os
import stat

from colibri.core import gates
from colibri.core.canonical import sha256
from colibri.core.errors import Malformed
from colibri.core.gates import FILE, Gates

MOST_BYTES = 64 * 1024


def read(project: str) -> Gates:
    """The rules of a project; none if it has no such file."""
    path = os.path.join(project, FILE)
    try:
        data = _read(path)
    except FileNotFoundError:
        return gates.NONE
    except OSError as problem:
        return _broken(path, None, f"cannot be read: {problem.strerror}")
    digest = sha256(data).hex()
    try:
        done, edit = gates.parse(data.decode())
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        return _broken(path, digest, f"line {line}: not UTF-8; save it as UTF-8")
    except Malformed as problem:
        return _broken(path, digest, problem.message)
    return Gates(digest=digest, done=done, edit=edit, problem=None)


def _broken(path: str, digest: str | None, what: str) -> Gates:
    return Gates(digest=digest, done=None, edit=None, problem=f"{path}: {what}")


def _read(path: str) -> bytes:
    """A repository may hold a link or a pipe in its place: these are not followed or waited for."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(0, "it must be an ordinary file")
        data = os.read(file, MOST_BYTES + 1)
    finally:
        os.close(file)
    if len(data) > MOST_BYTES:
        raise OSError(0, f"it has more than {MOST_BYTES:,} bytes; leave only the rules in it")
    return data
