"""How many deeds are gone that no deed tells of yet: `<db>-lost`, and where that cannot be written,
such as in a read-only directory, a file for this database in Colibri's own state directory.

A counter has one line of fixed width that is overwritten in place, so that it can be written on a
full disk.
"""

import fcntl
import os

from colibri.core import canonical
from colibri.hook.spool import open_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from colibri.config import Config

_WIDTH = 12  # digits of a counter


def count(config: "Config") -> int:
    """How many deeds of a project were lost that no deed tells of yet."""
    return sum(_read(path) for path in (_beside(config), _elsewhere(config)) if path)


def add(config: "Config", number: int = 1) -> None:
    """Count deeds as lost, in the first place that can be written."""
    if _change(_beside(config), number):
        return
    if (path := _elsewhere(config)) is not None:
        try:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        except OSError:
            return
        _change(path, number)


def settle(config: "Config", before: int, left: int) -> None:
    """So many were lost before; deeds have told of all but those that are left."""
    if left > before:
        add(config, left - before)
    number = before - left
    for path in (_beside(config), _elsewhere(config)):
        if path is not None and (here := min(_read(path), number)) > 0:
            number -= here
            _change(path, -here)


def prepare(config: "Config") -> None:
    """Have the counter in place before the disk is full."""
    if not os.path.lexists(_beside(config)):
        _change(_beside(config), 0)


def _beside(config: "Config") -> str:
    return f"{os.path.realpath(config.db_path)}-lost"


def _elsewhere(config: "Config") -> str | None:
    if config.state is None:
        return None
    name = canonical.sha256(os.fsencode(os.path.realpath(config.db_path))).hex()[:32]
    return os.path.join(config.state, "lost", name)


def _read(path: str) -> int:
    try:
        file = open_own(path, os.O_RDONLY)
    except OSError:
        return 0
    try:
        return _number(file)
    finally:
        os.close(file)


def _change(path: str, number: int) -> bool:
    """Add to a counter, which never falls below 0; whether it could be written."""
    try:
        file = open_own(path, os.O_RDWR | os.O_CREAT)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # nobody holds it for longer than this takes
        after = min(max(0, _number(file) + number), 10**_WIDTH - 1)
        os.pwrite(file, f"{after:0{_WIDTH}}\n".encode(), 0)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(file)


def _number(file: int) -> int:
    try:
        return int(os.pread(file, _WIDTH, 0) or 0)
    except (OSError, ValueError):
        return 0
