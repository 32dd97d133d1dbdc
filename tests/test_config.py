"""config.py: the environment, read once, refused as a whole."""

import os
from pathlib import Path

import pytest

from colibri import config
from colibri.config import KNOWN, LOG_LEVELS, Config, detect_mode, load
from colibri.core.errors import ConfigError
from colibri.core.modes import Mode
from colibri.project import NAMED

# variable, field, default, smallest value
NUMBERS = [
    ("COLIBRI_STARTUP_TIMEOUT_MS", "startup_timeout_ms", 30_000, 1),
    ("COLIBRI_SEED", "seed", 0, 0),
    ("COLIBRI_HEALTH_INTERVAL_MS", "health_interval_ms", 30_000, 10),
    ("COLIBRI_HEALTH_MAX_RSS_MB", "health_max_rss_mb", 512, 1),
    ("COLIBRI_HEALTH_MAX_LAG_MS", "health_max_lag_ms", 5_000, 1),
    ("COLIBRI_HEALTH_MAX_QUEUE", "health_max_queue", 768, 1),
]
MOST = 2**31 - 1


def problems(environ: dict[str, str], project: str | None = None) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load(project, environ)
    return caught.value.problems


def test_an_empty_environment_gives_the_defaults(tmp_path: Path) -> None:
    """Specification 14.1."""
    assert load(str(tmp_path), {}) == Config(
        mode=Mode.FULL,
        project=str(tmp_path),
        found_by=NAMED,
        claim_minutes=60.0,
        capture="commands",
        host_session=None,
        person=None,
        db_path=str(tmp_path / "data" / "colibri.db"),
        db_url=None,
        db_schema="colibri",
        skills_root=str(tmp_path / ".agents" / "skills"),
        state=None,
        log_level="info",
        startup_timeout_ms=30_000,
        seed=0,
        health_interval_ms=30_000,
        health_max_rss_mb=512,
        health_max_lag_ms=5_000,
        health_max_queue=768,
    )


@pytest.mark.parametrize(
    ("environ", "state"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.local/state/colibri"),
        ({"HOME": "/home/ada", "XDG_STATE_HOME": "/var/ada"}, "/var/ada/colibri"),
        ({"HOME": "/home/ada", "XDG_STATE_HOME": "state"}, "/home/ada/.local/state/colibri"),
        ({"HOME": "/home/ada", "XDG_STATE_HOME": ""}, "/home/ada/.local/state/colibri"),
        ({"XDG_STATE_HOME": "/var/ada"}, "/var/ada/colibri"),
        ({"HOME": "home"}, None),
        ({"HOME": "/home/ada", "COLIBRI_MODE": "TEST"}, None),
    ],
)
def test_heads_are_kept_where_xdg_says(
    tmp_path: Path, environ: dict[str, str], state: str | None
) -> None:
    """Specification 24.2: relative paths are ignored, and TEST keeps none."""
    assert load(str(tmp_path), environ).state == state


def test_every_known_variable_is_tried_here() -> None:
    """The lists of this file are complete."""
    others = {
        *("COLIBRI_MODE", "COLIBRI_DB_PATH", "COLIBRI_SKILLS_ROOT", "COLIBRI_LOG_LEVEL"),
        *("COLIBRI_CLAIM_MINUTES", "COLIBRI_CAPTURE", "COLIBRI_DB_URL", "COLIBRI_DB_SCHEMA"),
    }
    assert set(KNOWN) == others | {name for name, *_ in NUMBERS}
    assert config.__doc__ is not None
    assert all(f"| {name} |" in config.__doc__ for name in KNOWN)


def test_an_empty_value_counts_as_unset(tmp_path: Path) -> None:
    """Specification 14.2: also for names that would be refused."""
    empty = dict.fromkeys([*KNOWN, "AMS_MODE", "COLIBRI_NO_SUCH", "CLAUDE_PROJECT_DIR"], "")
    assert load(str(tmp_path), empty) == load(str(tmp_path), {})


@pytest.mark.parametrize("mode", ["FULL", "READONLY", "TEST", "MINIMAL"])
def test_each_mode_is_taken(mode: str) -> None:
    """Specification 10.1; detect_mode says the same."""
    assert load(environ={"COLIBRI_MODE": mode}).mode == mode
    assert detect_mode({"COLIBRI_MODE": mode}) == mode


@pytest.mark.parametrize("mode", ["full", "SAFE_MODE", " FULL", "FULL\n"])
def test_another_mode_is_refused_with_the_four(mode: str) -> None:
    """Specification 14.3: a bad value names what is right, and is not repeated."""
    sentence = "COLIBRI_MODE must be one of FULL, READONLY, TEST, MINIMAL"
    assert problems({"COLIBRI_MODE": mode}) == (sentence,)
    with pytest.raises(ConfigError, match=sentence):
        detect_mode({"COLIBRI_MODE": mode})


def test_test_mode_has_a_database_of_its_own(tmp_path: Path) -> None:
    """Specification 10.6: unless one is named."""
    test = {"COLIBRI_MODE": "TEST"}
    assert load(str(tmp_path), test).db_path == str(tmp_path / "data" / "colibri-test.db")
    named = load(str(tmp_path), {**test, "COLIBRI_DB_PATH": "mine.db"})
    assert named.db_path == str(tmp_path / "mine.db")


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_each_log_level_is_taken(level: str) -> None:
    """Specification 14.1."""
    assert load(environ={"COLIBRI_LOG_LEVEL": level}).log_level == level


def test_another_log_level_is_refused() -> None:
    """Specification 14.3."""
    assert problems({"COLIBRI_LOG_LEVEL": "warning"}) == (
        "COLIBRI_LOG_LEVEL must be one of error, warn, info, debug",
    )


@pytest.mark.parametrize(("name", "field", "default", "least"), NUMBERS)
def test_a_number_is_taken_within_its_bounds(
    name: str, field: str, default: int, least: int
) -> None:
    """Specification 14.1."""
    assert getattr(load(environ={}), field) == default
    for value in (least, 20, MOST):
        assert getattr(load(environ={name: str(value)}), field) == value


@pytest.mark.parametrize(("name", "field", "default", "least"), NUMBERS)
@pytest.mark.parametrize(
    "text",
    [
        "-1",
        "+20",
        "1.5",
        "1e3",
        "20 ",
        "0x10",
        "twenty",
        "²0",
        "\u0661\u0660",
        str(MOST + 1),
        "9" * 99,
    ],
)
def test_what_is_no_such_number_is_refused(
    name: str, field: str, default: int, least: int, text: str
) -> None:
    """Specification 14.3: with the bounds, without the value."""
    assert problems({name: text}) == (f"{name} must be a whole number from {least} to {MOST}",)
    if least > 0:
        assert len(problems({name: str(least - 1)})) == 1


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("60", 60.0), ("0.5", 0.5), (".25", 0.25), ("7.", 7.0), ("0.001", 0.001), (str(MOST), MOST)],
)
def test_the_minutes_of_a_claim_may_be_fractions(text: str, minutes: float) -> None:
    """Specification 14.1."""
    assert load(environ={"COLIBRI_CLAIM_MINUTES": text}).claim_minutes == minutes


@pytest.mark.parametrize(
    "text",
    [
        *("0", "0.0", ".", "-1", "+1", "1e3", "1_0", " 5", "5 ", "inf", "nan", "1.2.3", "1,5"),
        *("twenty", "\u0661", "²", f"{MOST}.5", str(MOST + 1), "9" * 400, f"0.{'0' * 400}1"),
    ],
)
def test_what_is_no_number_of_minutes_is_refused(text: str) -> None:
    """Specification 14.3: with what is right, without the value."""
    sentence = "COLIBRI_CLAIM_MINUTES must be a number of minutes above 0, such as 60 or 0.5"
    assert problems({"COLIBRI_CLAIM_MINUTES": text}) == (sentence,)


def test_paths_are_relative_to_the_project(tmp_path: Path) -> None:
    """Specification 14.1; an absolute one stays as it is."""
    settings = load(
        str(tmp_path), {"COLIBRI_DB_PATH": "x/y.db", "COLIBRI_SKILLS_ROOT": "/abs/skills"}
    )
    assert settings.db_path == str(tmp_path / "x" / "y.db")
    assert settings.skills_root == "/abs/skills"


def test_the_project_is_the_option_then_claudes_then_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specification 14.6: hosts differ."""
    option, claude, working = (tmp_path / name for name in ("option", "claude", "working"))
    for folder in (option, claude, working):
        folder.mkdir()
    monkeypatch.chdir(working)
    env = {"CLAUDE_PROJECT_DIR": str(claude)}
    assert load(str(option), env).project == str(option)
    assert load(None, env).project == str(claude)
    assert load("", env).project == str(claude)
    assert load(None, {}).project == str(working)


def test_a_relative_project_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specification 14.6: server_health shows absolute paths."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    settings = load("here", {})
    assert settings.project == str(tmp_path / "here")
    assert Path(settings.db_path).is_absolute()


def test_a_project_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Specification 14.6: it is not created, a misspelt path would start a new ledger."""
    (problem,) = problems({}, str(tmp_path / "missing"))
    assert str(tmp_path / "missing") in problem
    assert not (tmp_path / "missing").exists()


def test_a_file_is_not_taken_for_a_project(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert problems({}, str(tmp_path / "notes.txt")) == (
        f"the project directory {tmp_path / 'notes.txt'} is a file: name the directory it is in",
    )


def test_a_working_directory_that_is_gone_is_a_problem_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specification 14.5: named like any other, instead of a traceback."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir("gone")
    (tmp_path / "gone").rmdir()
    (problem,) = problems({})
    assert "working directory" in problem
    assert load(str(tmp_path), {}).project == str(tmp_path)


@pytest.mark.parametrize("name", ["AMS_MODE", "AMS_", "AMS_DB_PATH"])
def test_any_ams_variable_is_refused(name: str) -> None:
    """Specification 14.4."""
    (problem,) = problems({name: "x"})
    assert problem.startswith(f"{name} belongs to the old AMS runtime: unset it")


def test_an_unknown_colibri_variable_is_refused_with_the_known_ones() -> None:
    """Specification 14.4: a misspelling is not ignored."""
    (problem,) = problems({"COLIBRI_DB": "x"})
    assert problem.startswith("COLIBRI_DB is not known: unset it")
    assert all(name in problem for name in KNOWN)


def test_variables_of_others_are_ignored() -> None:
    """Only our prefixes are ours."""
    others = {"MY_COLIBRI_MODE": "x", "TEAMS_MODE": "x", "colibri_mode": "x"}
    assert load(environ=others) == load(environ={})


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    """Specification 14.5: naming each."""
    bad = {
        "AMS_MODE": "secret-1",
        "COLIBRI_TYPO": "secret-2",
        "COLIBRI_MODE": "secret-3",
        "COLIBRI_LOG_LEVEL": "secret-4",
        "COLIBRI_SEED": "secret-5",
        "COLIBRI_HEALTH_MAX_QUEUE": "0",
    }
    found = problems(bad, str(tmp_path / "missing"))
    assert len(found) == 7
    for name in bad:
        assert sum(problem.startswith(f"{name} ") for problem in found) == 1
    assert "secret" not in str(found)


def test_without_an_argument_the_process_environment_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """config.py is the one reader of os.environ."""
    for name in list(os.environ):
        if name.startswith(("COLIBRI_", "AMS_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLIBRI_SEED", "17")
    assert load(str(tmp_path)).seed == 17


def test_the_configuration_cannot_be_changed(tmp_path: Path) -> None:
    """Specification 14.7: what was decided at start stays."""
    settings = load(str(tmp_path), {})
    with pytest.raises(AttributeError, match="frozen"):
        settings.mode = Mode.TEST  # type: ignore[misc]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://ada@db.example/team", "must look like postgresql://"),
        ("postgresql://ada:hunter2@db.example/team", "has a password in it"),
        ("postgresql://ada@db.example/team?sslmode=require&password=hunter2", "has a password"),
    ],
)
def test_the_url_of_a_database_has_no_password(tmp_path: Path, url: str, says: str) -> None:
    """Others could read it in the list of processes; the message does not repeat it."""
    (found,) = problems({"COLIBRI_DB_URL": url}, str(tmp_path))
    assert says in found
    assert "hunter2" not in found


def test_a_ledger_on_a_server_is_known_by_its_place_and_its_schema(tmp_path: Path) -> None:
    """Not by the user, who may differ from machine to machine."""
    url = "postgresql://ada@db.example:5433/team"
    settings = load(str(tmp_path), {"COLIBRI_DB_URL": url, "COLIBRI_DB_SCHEMA": "web"})
    assert settings.ledger_name == "postgresql://db.example:5433/team#web"
    assert load(str(tmp_path), {"COLIBRI_DB_URL": url, "COLIBRI_MODE": "TEST"}).db_schema == (
        "colibri_test"
    )
