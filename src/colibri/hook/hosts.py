"""The hosts that run `colibri hook`: what each calls its events, its fields and its tools.

Most speak Claude Code's dialect and differ in a few names. The tables were read off payloads of the
real programs (tests/hook/fixtures), those of Cursor, VS Code and Windsurf off their documentation.

OpenCode runs no command on its events, so the plugin that `colibri setup opencode --hooks` installs
does, with {"host": "opencode", "version", "directory", "parent", "event", "input", "output"} on
stdin: the hook's name and its two arguments as they are. `parent` is the id of the session that
started this one as a subagent, or null.
"""

from colibri.core.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Payload = Mapping[str, object]


class Host(Frozen):
    """One host. A field is a path of keys joined by dots; of several, the first that is there."""

    __slots__ = ("classes", "events", "fields", "mcp", "name", "unregistered", "version")
    name: str
    events: dict[str, str]  # what it calls an event -> what a deed calls it
    unregistered: frozenset[str]  # events whose hook, if it fails, changes what the host does
    fields: dict[str, tuple[str, ...]]
    classes: dict[str, tuple[str, ...]]  # class -> names of tools
    mcp: tuple[str, str]  # how it names tools of MCP servers: they begin with this, or hold that
    version: str  # the environment variable with its version, if it has one


_CLAUDE_EVENTS = {
    "SessionStart": "session.start",
    "SessionEnd": "session.end",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "tool.begin",
    "PostToolUse": "tool.end",
    "PostToolUseFailure": "tool.failed",
    "Stop": "stop",
    "SubagentStart": "subagent.start",
    "SubagentStop": "subagent.end",
}
_CLAUDE_FIELDS = {
    "event": ("hook_event_name",),
    "session": ("session_id",),
    "agent": ("agent_id",),
    "use": ("tool_use_id",),
    "tool": ("tool_name",),
    "input": ("tool_input",),
    "output": ("tool_response", "error"),
    "duration": ("duration_ms",),
    "prompt": ("prompt",),
    "said": ("last_assistant_message",),
    "cwd": ("cwd",),
}

CLAUDE_CODE = Host(
    name="claude-code",
    events={**_CLAUDE_EVENTS, "PermissionDenied": "tool.denied", "PostCompact": "compact"},
    unregistered=frozenset(),
    fields=_CLAUDE_FIELDS,
    classes={
        "edit": ("Write", "Edit", "MultiEdit", "NotebookEdit"),
        "run": ("Bash", "PowerShell"),
        "read": ("Read", "Glob", "Grep", "LS", "NotebookRead"),
        "fetch": ("WebFetch", "WebSearch"),
    },
    mcp=("mcp__", ""),
    version="AI_AGENT",
)
CODEX = Host(
    name="codex",
    events={
        name: event
        for name, event in (*_CLAUDE_EVENTS.items(), ("PostCompact", "compact"))
        if name != "PostToolUseFailure"
    },
    unregistered=frozenset(),
    fields=_CLAUDE_FIELDS,
    classes={
        "edit": ("apply_patch", "Edit", "Write"),
        "run": ("Bash", "shell", "exec_command", "local_shell"),
        "read": ("view_image", "read_file", "list_dir", "grep_files"),
        "fetch": ("web_search",),
    },
    mcp=("mcp__", ""),
    version="",
)
GEMINI = Host(
    name="gemini",
    events={
        "SessionStart": "session.start",
        "SessionEnd": "session.end",
        "BeforeAgent": "prompt",
        "BeforeTool": "tool.begin",
        "AfterTool": "tool.end",
        "AfterAgent": "stop",
    },
    unregistered=frozenset(),
    fields={**_CLAUDE_FIELDS, "use": (), "said": ("prompt_response",)},
    classes={
        "edit": ("write_file", "replace", "edit"),
        "run": ("run_shell_command",),
        "read": (
            *("read_file", "read_many_files", "list_directory"),
            *("glob", "grep_search", "search_file_content"),
        ),
        "fetch": ("web_fetch", "google_web_search"),
    },
    mcp=("mcp_", ""),
    version="",
)
_COPILOT_CLASSES = {
    "edit": ("edit", "create", "apply_patch", "str_replace_editor"),
    "run": ("bash", "powershell"),
    "read": ("view", "glob", "grep", "rg"),
    "fetch": ("web_fetch", "web_search"),
}
COPILOT = Host(
    name="copilot",
    events={
        "sessionStart": "session.start",
        "sessionEnd": "session.end",
        "userPromptSubmitted": "prompt",
        "preToolUse": "tool.begin",
        "postToolUse": "tool.end",
        "postToolUseFailure": "tool.failed",
        "agentStop": "stop",
        "subagentStart": "subagent.start",
        "subagentStop": "subagent.end",
    },
    unregistered=frozenset({"preToolUse"}),  # a program that is missing denies every tool
    fields={
        "event": (),
        "session": ("sessionId",),
        "agent": ("agentId", "agent_id"),
        "parent": ("parentAgentId", "parent_agent_id"),
        "use": (),
        "tool": ("toolName",),
        "input": ("toolArgs",),
        "output": ("toolResult.textResultForLlm", "error"),
        "duration": (),
        "prompt": ("prompt",),
        "said": ("response",),
        "cwd": ("cwd",),
        "moment": ("timestamp",),
    },
    classes=_COPILOT_CLASSES,
    mcp=("", "-"),
    version="COPILOT_CLI_BINARY_VERSION",
)
# Copilot also runs the hooks of .claude/settings.json, with Claude Code's names for its tools.
COPILOT_AS_CLAUDE = Host(
    name="copilot",
    events=_CLAUDE_EVENTS,
    unregistered=frozenset({"PreToolUse"}),
    fields={
        **_CLAUDE_FIELDS,
        "parent": ("parent_agent_id",),
        "use": (),
        "output": ("tool_result.text_result_for_llm", "error"),
        "moment": ("timestamp",),
    },
    classes=_COPILOT_CLASSES,
    mcp=("", "-"),
    version="COPILOT_CLI_BINARY_VERSION",
)
COPILOT_TOOLS = {
    "Bash": "bash",
    "Edit": "edit",
    "Write": "create",
    "Read": "view",
    "Glob": "glob",
    "Grep": "grep",
    "Agent": "task",
}
QWEN = Host(
    name="qwen",
    events=_CLAUDE_EVENTS,
    unregistered=frozenset(),
    fields={**_CLAUDE_FIELDS, "use": ("tool_call_id",)},  # its tool_use_id is known to no one else
    classes={
        "edit": ("write_file", "edit", "notebook_edit"),
        "run": ("run_shell_command",),
        "read": (
            *("read_file", "read_many_files", "list_directory"),
            *("glob", "grep_search", "search_file_content"),
        ),
        "fetch": ("web_fetch", "web_search"),
    },
    mcp=("mcp__", ""),
    version="QWEN_CODE_STARTUP_VERSION",
)
CLINE = Host(
    name="cline",
    events={
        "TaskStart": "session.start",
        "TaskResume": "session.start",
        "TaskCancel": "session.end",
        "TaskComplete": "stop",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "tool.begin",
        "PostToolUse": "tool.end",
    },
    unregistered=frozenset({"PreToolUse", "UserPromptSubmit"}),  # it waits for what they answer
    fields={
        "event": (),
        "session": ("sessionContext.rootSessionId", "taskId"),
        "agent": ("agent_id",),
        "parent": ("parent_agent_id",),
        "use": ("tool_call.id", "tool_result.id"),
        "tool": (
            *("tool_call.name", "tool_result.name"),
            *("preToolUse.toolName", "postToolUse.toolName"),
        ),
        "input": (
            *("tool_call.input", "tool_result.input"),
            *("preToolUse.parameters", "postToolUse.parameters"),
        ),
        "output": ("tool_result.output", "postToolUse.result"),
        "duration": ("postToolUse.executionTimeMs",),
        "prompt": ("userPromptSubmit.prompt",),
        "said": ("turn.outputText",),
        "cwd": ("workspaceInfo.rootPath", "workspaceRoots"),
        "version": ("clineVersion",),
    },
    classes={
        "edit": ("editor", "apply_patch", "write_to_file", "replace_in_file"),
        "run": ("run_commands", "execute_command"),
        "read": (
            *("read_files", "read_file", "search_codebase", "search_files"),
            *("list_files", "list_code_definition_names"),
        ),
        "fetch": ("fetch_web_content", "web_fetch", "web_search"),
        "mcp": ("use_mcp_tool", "access_mcp_resource"),
    },
    mcp=("", "__"),
    version="",
)
OPENCODE = Host(
    name="opencode",
    events={
        "session.created": "session.start",
        "session.deleted": "session.end",
        "session.idle": "stop",
        "session.compacted": "compact",
        "chat.message": "prompt",
        "tool.execute.before": "tool.begin",
        "tool.execute.after": "tool.end",
    },
    unregistered=frozenset(),
    fields={
        "event": ("input.event.type", "event"),
        "session": ("input.sessionID", "input.event.properties.sessionID"),
        "parent": ("parent", "input.event.properties.info.parentID"),
        "use": ("input.callID",),
        "tool": ("input.tool",),
        "input": ("input.args", "output.args"),
        "output": ("output",),
        "duration": (),
        "prompt": ("output.parts",),
        "said": (),
        "cwd": ("directory", "input.event.properties.info.directory"),
        "version": ("version", "input.event.properties.info.version"),
    },
    classes={
        "edit": ("edit", "write", "patch", "multiedit", "apply_patch"),
        "run": ("bash",),
        "read": ("read", "glob", "grep", "list"),
        "fetch": ("webfetch", "websearch"),
        "other": ("plan_enter", "plan_exit"),
    },
    mcp=("", "_"),
    version="",
)
CURSOR = Host(
    name="cursor",
    events={
        "sessionStart": "session.start",
        "sessionEnd": "session.end",
        "beforeSubmitPrompt": "prompt",
        "preToolUse": "tool.begin",
        "postToolUse": "tool.end",
        "postToolUseFailure": "tool.failed",
        "stop": "stop",
        "subagentStart": "subagent.start",
        "subagentStop": "subagent.end",
        "preCompact": "compact",
    },
    unregistered=frozenset(),
    fields={
        **_CLAUDE_FIELDS,
        "session": ("conversation_id", "session_id"),
        "agent": ("subagent_id",),
        "output": ("tool_output", "error_message"),
        "duration": ("duration",),
        "cwd": ("cwd", "workspace_roots"),
        "version": ("cursor_version",),
    },
    classes={
        "edit": ("Write", "Edit", "StrReplace", "Delete", "EditNotebook"),
        "run": ("Shell",),
        "read": ("Read", "Glob", "Grep", "LS"),
        "fetch": ("WebFetch", "WebSearch"),
        "mcp": ("MCP",),
    },
    mcp=("MCP:", ""),
    version="",
)
VSCODE = Host(
    name="vscode",
    events={name: event for name, event in _CLAUDE_EVENTS.items() if name != "PostToolUseFailure"},
    unregistered=frozenset(),
    fields={**_CLAUDE_FIELDS, "event": ("hookEventName",), "session": ("sessionId",)},
    classes={
        "edit": (
            *("create_file", "insert_edit_into_file", "replace_string_in_file"),
            *("multi_replace_string_in_file", "edit_notebook_file", "apply_patch", "editFiles"),
        ),
        "run": ("run_in_terminal", "runTerminalCommand"),
        "read": ("read_file", "list_dir", "file_search", "grep_search", "semantic_search"),
        "fetch": ("fetch_webpage",),
    },
    mcp=("mcp_", ""),
    version="",
)
WINDSURF = Host(
    name="windsurf",
    events={
        "pre_user_prompt": "prompt",
        **{
            f"{when}_{what}": event
            for what in ("run_command", "write_code", "read_code", "mcp_tool_use")
            for when, event in (("pre", "tool.begin"), ("post", "tool.end"))
        },
        "post_cascade_response": "stop",
    },
    unregistered=frozenset(),
    fields={
        "event": ("agent_action_name",),
        "session": ("trajectory_id",),
        "use": (),
        "tool": ("agent_action_name",),
        "input": ("tool_info",),
        "output": (),
        "duration": (),
        "prompt": ("tool_info.user_prompt",),
        "said": ("tool_info.response",),
        "cwd": ("tool_info.cwd",),
    },
    classes={
        "edit": ("write_code",),
        "run": ("run_command",),
        "read": ("read_code",),
        "mcp": ("mcp_tool_use",),
    },
    mcp=("mcp_", ""),
    version="",
)

HOSTS = {
    host.name: host
    for host in (
        *(CLAUDE_CODE, CODEX, GEMINI, COPILOT, QWEN, CLINE, OPENCODE),
        *(CURSOR, VSCODE, WINDSURF),
    )
}
EVENTS = {name: host.events for name, host in HOSTS.items()}
# Those that were seen to report each tool call that ends also when it begins, with its id.
TELL_BEGINS = frozenset({"claude-code", "codex", "qwen", "opencode"})

# What only one host sends, in this order; then variables that hold the id of its own session, and
# where it keeps transcripts. CLAUDE_PROJECT_DIR says nothing: four hosts set it.
_KEYS: tuple[tuple[str, Host], ...] = (
    ("cursor_version", CURSOR),
    ("agent_action_name", WINDSURF),
    ("clineVersion", CLINE),
    ("hookEventName", VSCODE),
    ("sessionId", COPILOT),
    ("tool_result", COPILOT_AS_CLAUDE),
)
_SESSIONS = (
    ("CLAUDE_CODE_SESSION_ID", CLAUDE_CODE),
    ("GEMINI_SESSION_ID", GEMINI),
    ("QWEN_CODE_SESSION_ID", QWEN),
)
_TRANSCRIPTS = (
    ("/.copilot/", COPILOT_AS_CLAUDE),
    ("/rollout-", CODEX),
    ("/.gemini/", GEMINI),
    ("/.qwen/", QWEN),
    ("/.claude/", CLAUDE_CODE),
)


def registered(name: str) -> tuple[str, ...]:
    """The events of a host on which the hook only looks on, for whoever installs it."""
    host = HOSTS[name]
    return tuple(event for event in host.events if event not in host.unregistered)


def recognise(payload: "Payload", environ: "Mapping[str, str]") -> Host | None:
    """Whose payload this is; a program that runs inside another inherits that one's variables."""
    if payload.get("host") == OPENCODE.name:
        return OPENCODE
    for key, host in _KEYS:
        if key in payload:
            return host
    session, transcript = payload.get("session_id"), payload.get("transcript_path")
    for variable, host in _SESSIONS:
        if session and environ.get(variable) == session:
            return host
    if isinstance(transcript, str):
        for part, host in _TRANSCRIPTS:
            if part in transcript:
                return host
    return _by_shape(payload, environ)


def _by_shape(payload: "Payload", environ: "Mapping[str, str]") -> Host | None:
    """The same for a payload of Claude Code's dialect that names no transcript we know."""
    name = payload.get("hook_event_name")
    if not isinstance(name, str):
        return None
    if name in GEMINI.events and name not in CLAUDE_CODE.events:
        return GEMINI
    if "timestamp" in payload:
        return COPILOT_AS_CLAUDE if "transcript_path" not in payload else None
    if "turn_id" in payload or {"model", "permission_mode"} <= payload.keys():
        return CODEX
    return CLAUDE_CODE if environ.get("CLAUDECODE") else None
