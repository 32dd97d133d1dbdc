"""The story of `colibri demo`: an agent fixes how dates are read, and the rules hold it back.

$NAME in an argument stands for the id that an earlier step was given under that name.
"""

from typing import Any, NamedTuple


class Step(NamedTuple):
    """A call; `refusal` is the code that it must be refused with."""

    tool: str
    arguments: dict[str, Any]
    name: str = ""
    refusal: str = ""


class Chapter(NamedTuple):
    title: str
    steps: tuple[Step, ...]


def _task(name: str, title: str, *depends_on: str) -> Step:
    arguments = {"title": title, "priority": "high", "project": "invoices"}
    return Step("task_create", arguments | {"depends_on": list(depends_on)}, name)


def _take(name: str) -> Step:
    return Step("task_next_actions", {"claim": True}, name)


def _move(task: str, *steps: str, why: tuple[str, str] | None = None, refusal: str = "") -> Step:
    """`why` is a thought that comes with the move: its type and its text."""
    arguments: dict[str, Any] = {"task_id": task, "status": list(steps)}
    if why is not None:
        arguments["thought"] = dict(zip(("type", "content"), why, strict=True))
    return Step("task_update", arguments, refusal=refusal)


def _think(type: str, content: str, task: str = "") -> Step:
    arguments = {"type": type, "content": content, "session_id": "$session"}
    return Step("thought_record", arguments | ({"task_id": task} if task else {}))


TO_APPLY = ("GATHER", "ANALYZE", "PLAN", "APPLY")
INTENT = "Invoices dated 03/04/2026 are booked on 4 March instead of 3 April"

# What really happened, and what someone might wish had happened.
TRUTH = "but test_us_invoices fails now"
LIE = "and test_us_invoices passes too"

STORY = (
    Chapter(
        "The plan: three tasks, each waiting for the one before it",
        (
            Step("audit_session_start", {"intent": INTENT, "agent_id": "demo-agent"}, "session"),
            _task("test", "Write a test that fails on day-first dates"),
            _task("fix", "Read dates in the order of the invoice's country", "$test"),
            _task("rebook", "Book the invoices of the last two weeks again", "$fix"),
            _think(
                "plan",
                "parse_date() takes the month first in every file. First a test that shows it,"
                " then the fix, then the bookings.",
            ),
        ),
    ),
    Chapter(
        "In a hurry: the fix is refused while its test is missing",
        (_move("$fix", *TO_APPLY, refusal="ERR_BLOCKED"),),
    ),
    Chapter(
        "The test: a task in three calls",
        (
            _take("test"),
            _move(
                "$test",
                *TO_APPLY,
                why=("plan", "One invoice from Italy, one from the United States, both 03/04."),
            ),
            _move(
                "$test",
                *("VERIFY", "DONE"),
                why=(
                    "reflection",
                    "test_day_first_dates fails on the main branch, as it should: it gets"
                    " 2026-03-04 and expects 2026-04-03.",
                ),
            ),
        ),
    ),
    Chapter(
        "The fix: a first attempt that does not hold",
        (
            _take("fix"),
            _move(
                "$fix",
                *TO_APPLY,
                why=(
                    "decision",
                    "Take the order from the invoice's country. Where there is none, refuse a date"
                    " that could be read both ways, rather than guess.",
                ),
            ),
            _move(
                "$fix",
                "VERIFY",
                why=(
                    "analysis",
                    f"The new test passes, {TRUTH}: those invoices carry no country, and the guess"
                    " was right for them. Back to the start.",
                ),
            ),
        ),
    ),
    Chapter(
        "A second attempt: no DONE without a word about why",
        (
            _move("$fix", *TO_APPLY),
            _move("$fix", "VERIFY", "DONE", refusal="ERR_WRITEBACK_REQUIRED"),
            _move(
                "$fix",
                *("VERIFY", "DONE"),
                why=(
                    "reflection",
                    "Without a country the supplier's one counts. All tests pass; three invoices"
                    " can still be read both ways and are listed.",
                ),
            ),
        ),
    ),
    Chapter(
        "What is left to do, and the seal",
        (
            Step("task_next_actions", {}),
            _think(
                "plan",
                "Only bookings of the last two weeks are wrong: the importer is that new. Book them"
                " again once the fix is released, and not before.",
                "$rebook",
            ),
            Step("merkle_finalize", {"session_id": "$session"}, "seal"),
            Step("audit_verify_chain", {}),
        ),
    ),
)


def fill(value: Any, names: dict[str, str]) -> Any:
    """The arguments, with names replaced by the ids they stand for."""
    if isinstance(value, dict):
        return {key: fill(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [fill(one, names) for one in value]
    return names[value[1:]] if isinstance(value, str) and value.startswith("$") else value


def told(step: Step, data: dict[str, Any]) -> str:
    """What came of a step, in one line."""
    thought = step.arguments.get("thought")
    return _TOLD[step.tool].format(
        moves=" -> ".join(step.arguments.get("status", ())),
        why=f", {thought['type']}: {thought['content']}" if thought else "",
        again=f", attempt {data['attempt']}" if data.get("attempt", 1) > 1 else "",
        after=f", after {', '.join(data['depends_on'])}" if data.get("depends_on") else "",
        next=", ".join(f"{task['task_id']} {task['title']}" for task in data.get("tasks", ())),
        **data,
    )


_TOLD = {
    "audit_session_start": "{session_id} is open",
    "task_create": "{task_id} {title}{after}",
    "task_update": "{task_id} {moves}{again}{why}",
    "thought_record": "{thought_id} {type}: {content}",
    "task_next_actions": "{next}",
    "merkle_finalize": "{record_count} thoughts under one root: {root}",
    "audit_verify_chain": "{record_count} records, every hash and every rule checked",
}
