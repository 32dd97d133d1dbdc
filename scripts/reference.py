"""Writes docs/tools.md and docs/cli.md; called by scripts/reference.

    scripts/reference [FILE]            write both, or the one with this name
    scripts/reference --check [FILE]    only say whether they are current

Arguments come from the server's own declarations, the answers to mistakes from a server started
here, the commands from their help. The result does not depend on the time, the directory or the
Python version.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from colibri import cli
from colibri.core.modes import MODE_GRANTS
from colibri.tools import schema, text
from colibri.tools.catalogue import CATALOGUE
from colibri.tools.tool import Tool

JSON = dict[str, Any]
Ask = Callable[..., JSON]
DOCS = Path(__file__).resolve().parent.parent / "docs"

INTRODUCTION = """\
# Tools

Made by `scripts/reference` from the declarations and from the answers of a real server; a test
fails when it is stale. Do not edit it.

Every answer is one object, as `structuredContent` and, the same, as text. `isError` is false for
the first kind only.

| what happened | answer |
|---|---|
| it succeeded | `{"ok": true, "data": …}` |
| the arguments do not fit | `{"ok": false, "error": {"code": "INVALID_PARAMS", "message", …}}` |
| a rule said no | `{"ok": true, "data": {"ok": false, "error": {"code": "ERR_…", "message", …}}}` |
| a rule said no¹ | `{"ok": false, "error": {"code": "HANDLER_ERROR", "message": "ERR_…: …"}}` |
| anything else | `{"ok": false, "error": {"code", "message"}}` |

¹ In `thought_record` and `audit_verify_chain`. `thought_record_list` refuses no id: it returns an
empty list for a session or a task that does not exist.

Each tool lists the fields that `data` has on success: `a.b` is the field `b` of `a`, `a[].b` the
field `b` of each item of `a`. Times are UTC, hashes 64 hex digits, a seal's `root` is SIZE:HEX,
with the number of its thoughts. The answer to a recorded call has a receipt in `_meta`:
`colibri/receipt` with `log`, `seq` and `head`. It names a head that survives a power cut: for a
change its own exit record, for a read the newest head that is synced. There is no receipt before
the server's first change, and none for the two probes, which are recorded later.

Lengths count code points. All tools but the two probes refuse arguments that they do not know, and
name the nearest one.
"""

CLI_INTRODUCTION = """\
# Commands

Made by `scripts/reference` from the help of the commands; a test fails when it is stale. Do not
edit it.

```text
{}```

Results go to stdout, messages to stderr: `colibri: error: …`, perhaps with `colibri: hint: …`;
commands in hints are written so that you can copy them. On a terminal there are colours (`NO_COLOR`
turns them off) and local times, and long lines are wrapped; in a pipe nothing is coloured, cut off
or wrapped, and times are UTC as the records have them. Control characters, text direction overrides
and other invisible characters of stored text are shown as escapes such as `\\x1b`. `--json` prints
ASCII.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | the verdict is bad, what you named does not exist, or the request was refused |
| 2 | the command line is wrong; for `verify` also: it cannot tell |
| 73 | configuration |
| 75 | something that is needed is not available: no ledger, a full disk, no permission |
| 130 | interrupted |
| 141 | the reader of the output is gone, as in `colibri log \\| head -1` |

All commands find the project as the server does: `--project DIR`, or else the nearest ledger or git
repository upwards from `CLAUDE_PROJECT_DIR` or the working directory. They read the
same `COLIBRI_…` variables as the server.
"""

CODES = {
    "ERR_NOT_FOUND": "there is no such task, or no such thought in the session",
    "ERR_VERSION_CONFLICT": "the task has changed; `current_version` is what it is at now",
    "ERR_CYCLE": "the task would wait for itself; `cycle` is the way back to it",
    "ERR_INVALID_TRANSITION": "no such move; `next_states` are the legal ones",
    "ERR_BLOCKED": "dependencies have not ended; `blockers` are those",
    "ERR_WRITEBACK_REQUIRED": "DONE and CANCELLED need a thought about the current `attempt`",
    "ERR_GATE": "the project's rule for DONE is not satisfied; `reason` says why, `found` and"
    " `last_edit` which records tell",
    "ERR_CLAIMED": "another session holds the task, or another process has continued yours; or you"
    " lost your claim (`lost`) and must claim it again",
    "ERR_KEY_REUSED": "the key was first used with other arguments; `differ` names them",
    "ERR_SESSION_NOT_FOUND": "there is no such session, or the call needs one and you have none",
    "ERR_SESSION_EXISTS": "a session with this id already exists",
    "ERR_ALREADY_FINALIZED": "the session is sealed; `root` is its root",
    "ERR_NOT_FINALIZED": "the session is not sealed yet",
    "ERR_NO_RECORDS": "the session has no thoughts to seal",
}
WORKING = ("ERR_SESSION_NOT_FOUND", "ERR_ALREADY_FINALIZED", "ERR_CLAIMED")  # in a session
REFUSALS: dict[str, tuple[str, ...]] = {
    "task_create": (*WORKING, "ERR_KEY_REUSED", "ERR_NOT_FOUND"),
    "task_get": ("ERR_NOT_FOUND",),
    "task_update": (
        *WORKING,
        "ERR_NOT_FOUND",
        "ERR_VERSION_CONFLICT",
        "ERR_CYCLE",
        "ERR_INVALID_TRANSITION",
        "ERR_BLOCKED",
        "ERR_WRITEBACK_REQUIRED",
        "ERR_GATE",
    ),
    "task_next_actions": WORKING,
    "thought_record": (*WORKING, "ERR_NOT_FOUND", "ERR_KEY_REUSED"),
    "audit_verify_chain": ("ERR_SESSION_NOT_FOUND", "ERR_NOT_FOUND"),
    "audit_session_start": (
        *("ERR_SESSION_NOT_FOUND", "ERR_ALREADY_FINALIZED", "ERR_SESSION_EXISTS", "ERR_NOT_FOUND"),
    ),
    "merkle_finalize": (*WORKING, "ERR_NO_RECORDS"),
    "merkle_root": ("ERR_SESSION_NOT_FOUND", "ERR_NOT_FINALIZED", "ERR_NOT_FOUND"),
}

# Explanations for fields of answers whose names are not enough.
FIELDS = {
    ("task_get", "needs"): "by state: what is missing before the task may move to it",
    ("task_next_actions", "tasks[].needs"): "by state: what is missing before it may move to it",
    ("task_list", "next_offset"): "the offset of the next page; null: this is the last",
    (
        "thought_record_list",
        "next_offset",
    ): "the offset of the next page; null: this is the last. A page ends before `limit` where its"
    " text would be more than 1 MiB",
    ("thought_record", "index"): "its place in the session, from 0",
    ("thought_record", "hash"): "the leaf of its record",
    ("thought_record", "prev_hash"): "the hash of the thought before it in the session; of the"
    " first one zeros",
    ("merkle_root", "proof"): "only with `proof_for`",
    ("task_create", "repeated"): "whether an earlier call with the same `key` made it",
    ("thought_record", "repeated"): "whether an earlier call with the same `key` made it",
    ("task_create", "holder"): "the session that holds it",
    ("task_next_actions", "tasks[].description"): "only with `claim`",
    ("task_next_actions", "held_by_others"): "of those that could be worked on; not in"
    " `total_count`",
    ("audit_session_start", "note"): "what to do if you work in several sessions at once",
    ("audit_session_start", "brief"): "where the work stands, in at most 4,800 characters; text of"
    " others in it is quoted",
    ("server_health", "status"): "that it answers; how it is `condition` says",
    ("server_health", "phase"): "`phase1`: the database is not open yet, or cannot be opened, and"
    " only the probes answer; `phase2`: everything is there",
    ("server_health", "stages"): "what every call goes through, in order",
    ("server_health", "db.status"): "`opening`, then `open` or `open, read-only`; else why not",
    ("server_health", "condition.state"): "in `SAFE_MODE` only reading tools answer, in `DIAGNOSE`"
    " only the probes",
}

WHY: JSON = {"type": "decision", "content": "because"}
SEALED, UNKNOWN, MOVED = ({"session_id": name} for name in ("morning", "evening", "moved"))
MINE, LATE = {"session_id": "mine"}, {"session_id": "late"}
MISTAKES: dict[str, dict[str, JSON]] = {
    "task_create": {
        "no title": {"priority": "high"},
        "an empty key": {"title": "Hang the bell", "key": ""},
        "a name for people": {"title": "Hang the bell", "agent_id": "human:ada"},
        "an unknown session": {"title": "Hang the bell", **UNKNOWN},
        "a sealed session": {"title": "Hang the bell", **SEALED},
        "a session that another process resumed": {"title": "Hang the bell", **MOVED},
        "a key that was used otherwise": {"title": "Ring the bell", "key": "bell"},
        "an unknown dependency": {"title": "Hang the bell", "depends_on": ["T-0099"]},
    },
    "task_get": {"an unknown task": {"task_id": "T-0099"}},
    "task_update": {
        "nothing to change": {"task_id": "T-0001"},
        "an unknown state": {"task_id": "T-0001", "status": "READY"},
        "an unknown state in a list": {"task_id": "T-0001", "status": ["GATHER", "READY"]},
        "a thought without its type": {
            "task_id": "T-0001",
            "status": "GATHER",
            "thought": {"content": "begin"},
        },
        "a release with a move": {"task_id": "T-0001", "status": "GATHER", "claim": False},
        "an unknown session": {"task_id": "T-0001", "status": "GATHER", **UNKNOWN},
        "a sealed session": {"task_id": "T-0001", "status": "GATHER", **SEALED},
        "a session that another process resumed": {
            "task_id": "T-0001",
            "status": "GATHER",
            **MOVED,
        },
        "what another session holds": {"task_id": "T-0004", "status": "ANALYZE"},
        "a claim that you lost": {"task_id": "T-0006", "status": "ANALYZE", **LATE},
        "an unknown task": {"task_id": "T-0099", "status": "GATHER"},
        "an old version": {"task_id": "T-0003", "assignee": "ada", "expected_version": 1},
        "a circle of dependencies": {"task_id": "T-0001", "depends_on": ["T-0002"]},
        "a state skipped": {"task_id": "T-0001", "status": "APPLY"},
        "a step that is not the next": {"task_id": "T-0001", "status": ["GATHER", "APPLY"]},
        "a new attempt and its end in one call": {
            "task_id": "T-0003",
            "status": ["GATHER", "CANCELLED"],
            "thought": WHY,
            **MINE,
        },
        "an unfinished dependency": {"task_id": "T-0002", "status": "APPLY"},
        "DONE without evidence": {"task_id": "T-0003", "status": "DONE"},
        "DONE before the tests ran": {
            "task_id": "T-0003",
            "status": "DONE",
            "thought": WHY,
            **MINE,
        },
    },
    "task_list": {
        "a misspelt argument, and none per page": {"asignee": "ada", "limit": 0},
        "a holder that is no id": {"holder": "the other agent"},
        "a control character in a search": {"search": "bell\x07"},
    },
    "task_next_actions": {
        "a word instead of true": {"claim": "yes"},
        "no session to claim for": {"claim": True},
        "a sealed session": {"claim": True, **SEALED},
        "a session that another process resumed": {"claim": True, **MOVED},
    },
    "thought_record": {
        "a key of two lines": {**WHY, "key": "one\ntwo"},
        "no session": WHY,
        "a sealed session": {**WHY, **SEALED},
        "a session that another process resumed": {**WHY, **MOVED},
        "an unknown task": {**WHY, "task_id": "T-0099", **MINE},
        "a key that was used otherwise": {**WHY, "key": "tree", "session_id": "theirs"},
    },
    "thought_record_list": {
        "a list instead of words": {"search": ["bell", "door"]},
        "the best of no search": {"order": "best"},
    },
    "audit_verify_chain": {
        "a session and a task": {**MINE, "task_id": "T-0001"},
        "an unknown session": UNKNOWN,
        "an unknown task": {"task_id": "T-0099"},
    },
    "audit_session_start": {
        "no intent": UNKNOWN,
        "an id with a space": {"intent": "build", "session_id": "this evening"},
        "words instead of true and false": {**MINE, "resume": "yes", "brief": "short"},
        "nothing to resume": {"resume": True},
        "an unknown session": {**UNKNOWN, "resume": True},
        "a sealed session": {**SEALED, "resume": True},
        "an id that is taken": {**MINE, "intent": "build"},
        "an unknown task": {"intent": "build", "task_id": "T-0099"},
    },
    "merkle_finalize": {
        "an unknown session": UNKNOWN,
        "a sealed session": SEALED,
        "a session that another process resumed": MOVED,
        "a session without thoughts": MINE,
    },
    "merkle_root": {
        "an unknown session": UNKNOWN,
        "a session that is not sealed": MINE,
        "a thought that it does not have": {**SEALED, "proof_for": "R-1"},
    },
    "skill_list": {"a number instead of words": {"search": 7}},
}
# One of each kind of answer, shown in full.
IN_FULL = (
    ("task_create", "no title"),
    ("task_update", "a state skipped"),
    ("thought_record", "a sealed session"),
)
MISTAKES_INTRODUCTION = """\
## Mistakes, and what comes back

T-0001 is in INIT; T-0002 is in PLAN and depends on it; T-0003 is in VERIFY; T-0004 is held by the
session `theirs`, which made a thought with the key `tree`; T-0005 was made with the key `bell`;
T-0006 was held by `late` until another session took it over, then released it. `morning` is sealed,
`moved` was resumed by another process, `mine` has no thoughts. `colibri.toml` wants `pytest` before
DONE. The caller has several sessions, so it must name one.

One answer of each kind in full; the tables have the code, the message and the other members.
`details` of INVALID_PARAMS is left out there: it has each argument's part of the message.
"""


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    named = [Path(argument) for argument in arguments if argument != "--check"]
    stale = False
    for file in named or [DOCS / name for name in RENDER]:
        made = RENDER[file.name]()
        if not check:
            file.write_text(made, encoding="utf-8")
        elif not file.is_file() or file.read_text(encoding="utf-8") != made:
            print(f"{file.name} is stale: run scripts/reference", file=sys.stderr)
            stale = True
    return int(stale)


def render_tools() -> str:
    """The text of docs/tools.md."""
    parts = [INTRODUCTION, *(section(tool) for tool in CATALOGUE), MISTAKES_INTRODUCTION]
    with tempfile.TemporaryDirectory() as project:
        (Path(project) / "colibri.toml").write_text(GATE, encoding="utf-8")
        with server(project) as ask:
            prepare(ask)
            with server(project, COLIBRI_CLAIM_MINUTES="0.000001") as other:
                meddle(other)
            parts += [in_full(ask, *one) for one in IN_FULL]
            parts += [mistakes_table(ask, tool) for tool in MISTAKES]
    return "\n".join(parts)


def render_cli() -> str:
    """The text of docs/cli.md."""
    sections = [
        f"## colibri {name}\n\n```text\n{cli.parser_of(name).help_in(80)}```\n"
        for name in cli.COMMANDS
    ]
    return "\n".join((CLI_INTRODUCTION.format(cli.overview(80)), *sections))


RENDER = {"tools.md": render_tools, "cli.md": render_cli}


# Declarations.


def section(tool: Tool) -> str:
    modes = ", ".join(mode for mode, granted in MODE_GRANTS.items() if tool.capability in granted)
    change = "changes state" if tool.lane == "write" else "only reads"
    lines = [
        f"## {tool.name}\n",
        f"**{tool.title}.** {tool.description}\n",
        f"It {change}. Modes: {modes}.\n",
        *arguments_table(tool.input),
        *answer_table(tool),
        *refusals_table(REFUSALS.get(tool.name, ())),
    ]
    return "\n".join(lines)


def arguments_table(struct: type[msgspec.Struct]) -> list[str]:
    properties = schema.input_schema(struct)["properties"]
    if not properties:
        return ["No arguments.\n"]
    aliases = {name: alias for alias, name in getattr(struct, "ALIASES", {}).items()}
    rows = ["| argument | type | default | description |", "|---|---|---|---|"]
    for field in msgspec.structs.fields(struct):
        shape = properties[field.encode_name]
        rule = text.rule_of(field.type)
        cells = (
            f"`{field.encode_name}`",
            "; ".join([kind(shape), *limits(shape), *([rule.allowed] if rule else [])]),
            default(field, shape),
            described(shape, aliases.get(field.encode_name)),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return [*rows, ""]


def answer_table(tool: Tool) -> list[str]:
    """The fields of a successful answer; for a struct of an earlier tool, only a reference."""
    assert tool.output is not None
    first = next(one.name for one in CATALOGUE if one.output is tool.output)
    if first != tool.name:
        return [f"It answers with what `{first}` does.\n"]
    rows = ["| answer | type |", "|---|---|"]
    fields = dict(answer_fields(schema.input_schema(tool.output), "", {}))
    meanings = {name: words for (of, name), words in FIELDS.items() if of == tool.name}
    if stale := meanings.keys() - fields.keys():
        raise AssertionError(f"{tool.name} has no {stale} any more")
    for name, type in fields.items():
        meaning = f": {meanings[name]}" if name in meanings else ""
        rows.append(f"| `{name}` | {type}{meaning} |")
    return [*rows, ""]


def answer_fields(shape: JSON, prefix: str, seen: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The fields of an object, nested ones too; a shape shown before is only named."""
    for name, value in shape["properties"].items():
        absent = "" if name in shape["required"] else ", may be missing"
        path = f"{prefix}{name}"
        inner = next((one for one in within(value) if "properties" in one), None)
        told = seen.get(json.dumps(inner)) if inner else None
        yield path, kind(value) + (f" as in `{told}`" if told else "") + absent
        if inner and not told:
            path += "[]" if value.get("type") == "array" else ""
            seen[json.dumps(inner)] = path
            yield from answer_fields(inner, f"{path}.", seen)


def within(shape: JSON) -> Iterator[JSON]:
    """A shape, its alternatives and its items: any of them may be an object with fields."""
    yield shape
    yield from shape.get("anyOf", ())
    if "items" in shape:
        yield shape["items"]


def kind(shape: JSON) -> str:
    """A schema's type in words."""
    if "anyOf" in shape:
        return " or ".join(kind(option) for option in shape["anyOf"])
    if "enum" in shape:
        return " · ".join(f"`{value}`" for value in shape["enum"])
    if shape["type"] == "array":
        return f"array of {kind(shape['items'])}"
    if isinstance(shape.get("additionalProperties"), dict):
        return f"object, each value {kind(shape['additionalProperties'])}"
    return str(shape["type"])


def limits(shape: JSON) -> Iterator[str]:
    """A schema's bounds in words."""
    for option in shape.get("anyOf", ()):
        yield from limits(option)
    for low, high, unit in (
        ("minLength", "maxLength", " characters"),
        ("minimum", "maximum", ""),
        ("minItems", "maxItems", " items"),
    ):
        if low in shape and high in shape:
            yield f"{shape[low]} to {shape[high]}{unit}"
        elif low in shape:
            yield f"at least {shape[low]}{unit}"
        elif high in shape:
            yield f"at most {shape[high]}{unit}"
    if "examples" in shape:
        yield f"such as `{shape['examples'][0]}`"
    if "items" in shape:
        yield from (f"each {limit}" for limit in limits(shape["items"]))


def default(field: msgspec.structs.FieldInfo, shape: JSON) -> str:
    if field.required:
        return "required"
    if field.default is msgspec.UNSET:
        return "left as it is"
    return f"`{json.dumps(shape.get('default'))}`"


def described(shape: JSON, alias: str | None) -> str:
    words = str(shape.get("description", ""))
    return f"{words} (also `{alias}`)" if alias else words


def refusals_table(codes: tuple[str, ...]) -> list[str]:
    if not codes:
        return []
    return [
        "| refusal | why |",
        "|---|---|",
        *(f"| `{code}` | {CODES[code]} |" for code in codes),
        "",
    ]


# Answers of a server.


@contextmanager
def server(project: str, **more: str) -> Iterator[Ask]:
    """A real server, as a function that calls a tool and returns the CallToolResult."""
    ours = ("COLIBRI_", "AMS_", "CLAUDE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    process = subprocess.Popen(
        [sys.executable, "-m", "colibri", "serve", "--project", project],
        env={**kept, "COLIBRI_MODE": "TEST", "COLIBRI_LOG_LEVEL": "error", **more},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    outgoing, incoming = process.stdin, process.stdout

    def ask(tool: str, **arguments: Any) -> JSON:
        params = {"name": tool, "arguments": arguments}
        line = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        outgoing.write(json.dumps(line).encode() + b"\n")
        outgoing.flush()
        result: JSON = json.loads(incoming.readline())["result"]
        return result

    try:
        yield ask
    finally:
        process.communicate()


GATE = '[gate.done]\ncommand = "pytest*"\n'


def prepare(ask: Ask) -> None:
    """Create the tasks and sessions that the mistakes need."""
    ask("task_create", title="Draw the plan")
    ask("task_create", title="Build the house", depends_on=["T-0001"])
    ask("task_create", title="Paint the door")
    ask("task_create", title="Plant a tree")
    ask("task_create", title="Hang the bell", key="bell")
    ask("task_create", title="Dig a well")
    way = ("GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")
    ask("task_update", task_id="T-0002", status=way[:3])
    ask("task_update", task_id="T-0003", status=way)
    ask("audit_session_start", intent="build", session_id="morning")
    ask("thought_record", **WHY)
    ask("merkle_finalize", session_id="morning")
    ask("audit_session_start", intent="plant", session_id="theirs", agent_id="bob")
    ask("task_update", task_id="T-0004", status="GATHER")
    ask("thought_record", type="plan", content="an oak", key="tree")
    for id in ("moved", "late", "mine"):
        ask("audit_session_start", intent="build", session_id=id, agent_id="ada")
    ask("task_update", task_id="T-0006", status="GATHER", **LATE)


def meddle(other: Ask) -> None:
    """What another process does, for which every claim is dead at once."""
    other("audit_session_start", **MOVED, resume=True)
    other("audit_session_start", intent="dig", session_id="night", agent_id="eve")
    other("task_update", task_id="T-0006", claim=True, session_id="night")
    other("task_update", task_id="T-0006", claim=False, session_id="night")


def refused(ask: Ask, tool: str, title: str) -> JSON:
    """The answer to a mistake, without what changes at every run: times, and hashes over them."""
    result = ask(tool, **MISTAKES[tool][title])
    if not result["isError"]:
        raise AssertionError(f"{tool}, {title}: no mistake any more")
    text = json.dumps(result["structuredContent"], ensure_ascii=False)
    text = re.sub(r"20\d\d-\d\d-\d\dT[0-9:.]+Z", "TIME", text)
    answer: JSON = json.loads(re.sub(r"[0-9a-f]{64}", "HASH", text))
    return answer


def in_full(ask: Ask, tool: str, title: str) -> str:
    answer = json.dumps(refused(ask, tool, title), indent=2, ensure_ascii=False)
    call = json.dumps(MISTAKES[tool][title], ensure_ascii=False)
    return f"`{tool}` with `{call}`, {title}:\n\n```json\n{answer}\n```\n"


def mistakes_table(ask: Ask, tool: str) -> str:
    rows = ["| mistake | arguments | code | message and other members |", "|---|---|---|---|"]
    for title, arguments in MISTAKES[tool].items():
        told = answer_cells(refused(ask, tool, title))
        cells = (cell.replace("|", r"\|") for cell in (title, _inline(arguments), *told))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join((f"### {tool}\n", *rows, ""))


def answer_cells(answer: JSON) -> tuple[str, str]:
    """The code, and the message with the other members, which for INVALID_PARAMS say the same."""
    error = answer["error"] if "error" in answer else answer["data"]["error"]
    code, message = error.pop("code"), error.pop("message")
    rest = {} if code == "INVALID_PARAMS" else error.get("details", error)
    return f"`{code}`", f"{message} {_inline(rest)}" if rest else message


def _inline(value: JSON) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
