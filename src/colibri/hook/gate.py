"""The gate for edits: what an agent is told that is about to edit and holds no task for it.

It denies only on a clear no: rules that can be read, a host that takes a denial without ending the
session, a session that is known, and no task of it in the state that the rule names or a later one.
Whatever is unclear passes, and the deed says why it could not be judged:

    rules    colibri.toml cannot be used
    session  the host works in no session that is known
    host     it takes no denial
    ledger   it could not be read, or not in time
"""

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from colibri.hook.report import Report
    from colibri.store.connection import Connection

FILE = "colibri.toml"
_CLAUDE, _DECISION, _MEMBERS = "hookSpecificOutput", "decision", "permissionDecision"
# The form in which a host takes a denial. Cline would end the session, and OpenCode is not asked.
_FORMS = {
    "claude-code": (_CLAUDE,),
    "codex": (_CLAUDE,),
    "gemini": (_DECISION,),
    "copilot": (_MEMBERS, _CLAUDE),
    "qwen": (_CLAUDE,),
}


class Judged:
    """Why an edit is denied, or why it could not be judged; neither if it is allowed."""

    __slots__ = ("denial", "unjudged")

    def __init__(self, *, denial: str | None = None, unjudged: str | None = None) -> None:
        self.denial = denial
        self.unjudged = unjudged


def is_asked(report: "Report", project: str) -> bool:
    """Whether an edit begins in a project that may have a rule for it."""
    edits = report.event == "tool.begin" and report.class_ == "edit"
    return edits and os.path.lexists(os.path.join(project, FILE))


def judge(db: "Connection", report: "Report", session: str | None, project: str) -> Judged:
    """Whether an edit may begin; a denial has the call that opens the gate."""
    # Only a project with rules pays for reading them.
    from colibri.core.gates import may_edit, way_to

    state, why = _rule(project)
    if state is None:
        return Judged(unjudged=why)
    if report.host not in _FORMS:
        return Judged(unjudged="host")
    if session is None:
        return Judged(unjudged="session")
    held = db.execute(
        "SELECT task_id, status FROM tasks WHERE holder = ? ORDER BY number", (session,)
    ).fetchall()
    if may_edit(state, (status for _, status in held)):
        return Judged()
    rule = f"{FILE} allows edits only while you hold a task in {state} or later"
    if not held:
        call = json.dumps({"claim": True, "session_id": session})
        return Judged(
            denial=f"{rule}; you hold none. Call task_next_actions with {call}, then move it to"
            f" {state}."
        )
    task, status = held[0]
    steps = {"task_id": task, "status": way_to(state, status), "session_id": session}
    call = json.dumps(steps)
    return Judged(denial=f"{rule}; {task} is in {status}. Call task_update with {call}, then edit.")


def unread(project: str) -> str | None:
    """Why an edit is not judged while the ledger cannot be read; None without a rule."""
    state, why = _rule(project)
    return why if state is None else "ledger"


def _rule(project: str) -> tuple[str | None, str | None]:
    """The state that the rule for edits names; else whether there is none, or it cannot be read."""
    from colibri.store import gate_file

    rules = gate_file.read(project)
    return rules.edit, None if rules.problem is None else "rules"


def said(host: str, text: str) -> str:
    """A denial in the form of a host."""
    reasons = {"permissionDecision": "deny", "permissionDecisionReason": text}
    members: dict[str, object] = {}
    for form in _FORMS[host]:
        if form == _CLAUDE:
            members[_CLAUDE] = {"hookEventName": "PreToolUse", **reasons}
        else:
            members |= {"decision": "deny", "reason": text} if form == _DECISION else reasons
    return json.dumps(members, ensure_ascii=False)
