"""The environment, read once into a frozen Config; nothing else reads os.environ.

| variable | default | meaning |
|---|---|---|
| COLIBRI_MODE | FULL | FULL, READONLY, TEST or MINIMAL |
| COLIBRI_DB_PATH | data/colibri.db (TEST: data/colibri-test.db) | the database file |
| COLIBRI_DB_URL | | a PostgreSQL database that holds the ledger instead; without a password |
| COLIBRI_DB_SCHEMA | colibri (TEST: colibri_test) | the schema of the project in that database |
| COLIBRI_SKILLS_ROOT | .agents/skills | the folder of skills |
| COLIBRI_CLAIM_MINUTES | 60 | without a sign of life after which a claim may be taken over |
| COLIBRI_CAPTURE | commands | what hooks keep: commands and paths; text: prompts and outputs too |
| COLIBRI_STARTUP_TIMEOUT_MS | 30000 | bounds connecting, and the wait for the lock file |
| COLIBRI_LOG_LEVEL | info | error, warn, info or debug |
| COLIBRI_SEED | 0 | what TEST derives its ids and nonces from |
| COLIBRI_HEALTH_INTERVAL_MS | 30000 | time between two health checks |
| COLIBRI_HEALTH_MAX_RSS_MB | 512 | memory above this is an overload |
| COLIBRI_HEALTH_MAX_LAG_MS | 5000 | a lane slower than this is an overload |
| COLIBRI_HEALTH_MAX_QUEUE | 768 | more waiting calls than this are an overload |

Paths are relative to the project directory: --project, else what project.py finds from
CLAUDE_PROJECT_DIR or the working directory. An empty value counts as unset. Some clients give the
id of their session in their own environment variable, which is read too. XDG_STATE_HOME, else
HOME, says where heads are kept; in TEST none are.
"""

import os

from colibri import project as projects
from colibri.core.errors import ConfigError
from colibri.core.frozen import Frozen
from colibri.core.modes import Mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LOG_LEVELS = ("error", "warn", "info", "debug")
CAPTURES = ("commands", "text")
_MAX_INT = 2**31 - 1
_HOST_SESSIONS = ("CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID", "QWEN_CODE_SESSION_ID")

# variable -> (smallest value, default)
_INTEGERS = {
    "COLIBRI_STARTUP_TIMEOUT_MS": (1, 30_000),
    "COLIBRI_SEED": (0, 0),
    "COLIBRI_HEALTH_INTERVAL_MS": (10, 30_000),
    "COLIBRI_HEALTH_MAX_RSS_MB": (1, 512),
    "COLIBRI_HEALTH_MAX_LAG_MS": (1, 5_000),
    "COLIBRI_HEALTH_MAX_QUEUE": (1, 768),
}
_TEXTS = (
    *("COLIBRI_MODE", "COLIBRI_DB_PATH", "COLIBRI_SKILLS_ROOT"),
    *("COLIBRI_LOG_LEVEL", "COLIBRI_CAPTURE"),
)
_PLACES = {"COLIBRI_DB_PATH": "data/colibri.db", "COLIBRI_SKILLS_ROOT": ".agents/skills"}
_TEST_DB = "data/colibri-test.db"
_SCHEMA, _TEST_SCHEMA = "colibri", "colibri_test"
KNOWN = (
    *(*_TEXTS, *_INTEGERS, "COLIBRI_CLAIM_MINUTES"),
    *("COLIBRI_DB_URL", "COLIBRI_DB_SCHEMA"),
)


class Config(Frozen):
    """Everything the environment decides; paths are absolute."""

    __slots__ = (
        "capture",
        "claim_minutes",
        "db_path",
        "db_schema",
        "db_url",
        "found_by",
        "health_interval_ms",
        "health_max_lag_ms",
        "health_max_queue",
        "health_max_rss_mb",
        "host_session",
        "log_level",
        "mode",
        "person",
        "project",
        "seed",
        "skills_root",
        "startup_timeout_ms",
        "state",
    )
    mode: Mode
    project: str
    found_by: str  # the rule that found the project
    db_path: str  # of the file; with a URL, hooks keep next to it what they cannot record
    db_url: str | None
    db_schema: str
    skills_root: str
    state: str | None  # Colibri's own directory in the user's state directory
    claim_minutes: float
    capture: str
    host_session: str | None
    person: str | None  # the name of the person, if a person makes the calls
    startup_timeout_ms: int
    log_level: str
    seed: int
    health_interval_ms: int
    health_max_rss_mb: int
    health_max_lag_ms: int
    health_max_queue: int

    @property
    def ledger_name(self) -> str:
        """How people know the ledger: its file, or its schema of a database, without the user."""
        return self.db_path if self.db_url is None else shared_name(self.db_url, self.db_schema)

    @property
    def home(self) -> tuple[str, str | None, str, str]:
        """What store/homes.py finds the ledger by."""
        return self.db_path, self.db_url, self.db_schema, self.ledger_name


def shared_name(url: str, schema: str) -> str:
    """How people know the ledger in a schema of a database, whoever they connect as."""
    scheme, _, rest = url.partition("://")
    place, _, options = rest.partition("?")
    kept = [one for one in options.split("&") if one and not one.startswith("user=")]
    more = f"?{'&'.join(kept)}" if kept else ""
    return f"{scheme}://{place.rpartition('@')[2]}{more}#{schema}"


def load(
    project: str | None = None,
    environ: "Mapping[str, str] | None" = None,
    *,
    person: str | None = None,
) -> Config:
    """Read the environment; raises a ConfigError that lists every problem."""
    env = {k: v for k, v in (os.environ if environ is None else environ).items() if v != ""}
    problems = _unknown(env)
    mode = _choice(env, "COLIBRI_MODE", tuple(Mode), Mode.FULL, problems)
    level = _choice(env, "COLIBRI_LOG_LEVEL", LOG_LEVELS, "info", problems)
    capture = _choice(env, "COLIBRI_CAPTURE", CAPTURES, "commands", problems)
    values: dict[str, Any] = {name: _integer(env, name, problems) for name in _INTEGERS}
    values["COLIBRI_CLAIM_MINUTES"] = _minutes(env, "COLIBRI_CLAIM_MINUTES", problems)
    host_session = next((env[name] for name in _HOST_SESSIONS if name in env), None)
    root, rule = _project(project, env.get("CLAUDE_PROJECT_DIR"), problems)
    usual = {**_PLACES, **({"COLIBRI_DB_PATH": _TEST_DB} if mode == Mode.TEST else {})}
    paths = {name: os.path.join(root, env.get(name, there)) for name, there in usual.items()}
    _refuse_strange_paths(paths, problems)
    if "COLIBRI_DB_PATH" not in env:
        _refuse_links(root, usual["COLIBRI_DB_PATH"], problems)
    url = _url(env, problems)
    if problems:
        raise ConfigError(problems)
    values.update(paths, COLIBRI_MODE=Mode(mode), COLIBRI_LOG_LEVEL=level, COLIBRI_CAPTURE=capture)
    fields = {name.removeprefix("COLIBRI_").lower(): value for name, value in values.items()}
    fields["state"] = None if mode == Mode.TEST else _state(env)
    usual_schema = _TEST_SCHEMA if mode == Mode.TEST else _SCHEMA
    fields.update(db_url=url, db_schema=env.get("COLIBRI_DB_SCHEMA", usual_schema))
    return Config(project=root, found_by=rule, host_session=host_session, person=person, **fields)


def detect_mode(environ: "Mapping[str, str] | None" = None) -> Mode:
    """Only the mode, with the same refusals, for a server created without a Config."""
    return load(environ=environ).mode


def bare_environment() -> dict[str, str]:
    """The environment without Colibri's variables, for a server that only follows its arguments."""
    ours = ("COLIBRI_", "AMS_", "CLAUDE_PROJECT_DIR")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def forget_relative_programs() -> None:
    """Remove relative entries from PATH, so no program is found in the working directory."""
    path = os.environ.get("PATH", "").split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(one for one in path if os.path.isabs(one))


def of_process() -> "Mapping[str, str]":
    """The environment as it is: for a hook, which hosts tell about themselves in it."""
    return os.environ


def state_of_user() -> str | None:
    """Colibri's own directory in the user's state directory, whatever the project."""
    return _state(os.environ)


def home_of(variable: str, default: str) -> str:
    """Where another program keeps its files: from its variable, else the usual place."""
    return os.environ.get(variable) or os.path.expanduser(default)


def _state(env: "Mapping[str, str]") -> str | None:
    """By the XDG rules, which ignore relative paths; None if the environment names no home."""
    usual = os.path.join(env.get("HOME", ""), ".local", "state")
    found = env.get("XDG_STATE_HOME", "")
    found = found if os.path.isabs(found) else usual
    return os.path.join(found, "colibri") if os.path.isabs(found) else None


def _project(named: str | None, start: str | None, problems: list[str]) -> tuple[str, str]:
    """The project directory, and the rule that found it."""
    try:
        root = os.path.abspath(named or start or "")
    except OSError:
        problems.append("the working directory no longer exists: start from another, or name one")
        return "", ""
    if os.path.exists(root) and not os.path.isdir(root):
        problems.append(f"the project directory {root} is a file: name the directory it is in")
    elif not os.path.isdir(root):
        problems.append(f"the project directory {root} does not exist: create it or name another")
    elif not named:
        return projects.find(root)
    return root, projects.NAMED


def _refuse_strange_paths(paths: dict[str, str], problems: list[str]) -> None:
    """SQLite and JSON both need paths in UTF-8."""
    for name, path in paths.items():
        try:
            path.encode()
        except UnicodeEncodeError:
            shown = path.encode(errors="backslashreplace").decode()
            problems.append(f"{name} is {shown}, which is not UTF-8: name another")


def _refuse_links(root: str, database: str, problems: list[str]) -> None:
    """A repository may contain a link in place of the ledger; only the user may choose another."""
    for inside in (os.path.dirname(database), database):
        path = os.path.join(root, inside)
        if os.path.islink(path):
            there = os.path.realpath(path)
            problems.append(
                f"{path} is a link to {there}: delete it, or set COLIBRI_DB_PATH if you mean that"
            )
            return


def _unknown(env: "Mapping[str, str]") -> list[str]:
    problems = []
    for name in sorted(env):
        if name.startswith("AMS_"):
            problems.append(f"{name} belongs to the old AMS runtime: unset it (see COLIBRI_*)")
        elif name.startswith("COLIBRI_") and name not in KNOWN:
            problems.append(f"{name} is not known: unset it; known are {', '.join(sorted(KNOWN))}")
    return problems


def _url(env: "Mapping[str, str]", problems: list[str]) -> str | None:
    url = env.get("COLIBRI_DB_URL")
    if url is not None and (problem := wrong_url(url, "COLIBRI_DB_URL")):
        problems.append(problem)
    return url


def wrong_url(url: str, name: str) -> str:
    """Why this cannot be the URL of a database, or nothing. `name` is where it was given. One with
    a password is refused: others could read it.
    """
    scheme, _, rest = url.partition("://")
    place, _, options = rest.partition("?")
    user, _, _ = place.rpartition("@")
    if scheme not in ("postgresql", "postgres"):
        return f"{name} must look like postgresql://USER@HOST:PORT/DATABASE"
    if ":" in user or "password=" in options:
        return (
            f"{name} has a password in it: put that into ~/.pgpass, PGPASSFILE, a service"
            " or PGPASSWORD"
        )
    return ""


def _choice(
    env: "Mapping[str, str]", name: str, allowed: tuple[str, ...], usual: str, problems: list[str]
) -> str:
    value = env.get(name, usual)
    if value not in allowed:
        problems.append(f"{name} must be one of {', '.join(allowed)}")
    return value


def _integer(env: "Mapping[str, str]", name: str, problems: list[str]) -> int:
    least, default = _INTEGERS[name]
    text = env.get(name, str(default))
    if text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_INT)):
        value = int(text)
        if least <= value <= _MAX_INT:
            return value
    problems.append(f"{name} must be a whole number from {least} to {_MAX_INT}")
    return default


def _minutes(env: "Mapping[str, str]", name: str, problems: list[str]) -> float:
    text = env.get(name, "60")
    whole, _, part = text.partition(".")
    if f"{whole}{part}".isdecimal() and text.isascii() and 0 < float(text) <= _MAX_INT:
        return float(text)
    problems.append(f"{name} must be a number of minutes above 0, such as 60 or 0.5")
    return 60.0
