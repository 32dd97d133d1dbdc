"""The gate for edits: what an agent is told that is about to edit and holds no task for it.

It denies only on a clear no: rules that can be read, a host that takes a denial without ending the
session, a session that is known, and no task of it in the state that the rule names or a later one.
Whatever is unclear passes.
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


def is_asked(report: "Report", project: str) -> bool:
    """Whether an edit begins in a project with rules, and its host takes a denial."""
    edits = report.event == "tool.begin" and report.class_ == "edit" and report.host in _FORMS
    return edits and os.path.lexists(os.path.join(project, FILE))


def denial(db: "Connection", report: "Report", session: str | None, project: str) -> str | None:
    """Why an edit that begins is denied, with the call that opens the gate; None if it is not."""
    if session is None:
        return None
    # Only a project with rules pays for reading them.
    from colibri.core.gates import may_edit, way_to
    from colibri.store import gate_file

    state = gate_file.read(project).edit
    held = db.execute(
        "SELECT task_id, status FROM tasks WHERE holder = ? ORDER BY number", (session,)
    ).fetchall()
    if state is None or may_edit(state, (status for _, status in held)):
        return None
    rule = f"{FILE} allows edits only while you hold a task in {state} or later"
    if not held:
        call = json.dumps({"claim": True, "session_id": session})
        return (
            f"{rule}; you hold none. Call task_next_actions with {call}, then move it to {state}."
        )
    task, status = held[0]
    steps = {"task_id": task, "status": way_to(state, status), "session_id": session}
    return f"{rule}; {task} is in {status}. Call task_update with {json.dumps(steps)}, then edit."


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
