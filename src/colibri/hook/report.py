"""What a host reports, in our words: one payload -> one Report, or None if it says nothing new.

Nothing here trusts the payload: a field of another type counts as missing. An exit code is taken
only where the host tells it, never concluded from what a command printed.
"""

import re

from colibri.core.frozen import Frozen
from colibri.hook import hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from colibri.hook.hosts import Host, Payload

REMINDER = "Colibri: "  # how our own words begin where a host sends them back as a prompt
MOST_PATHS = 64
LONGEST = 4096  # characters of a path that can lead to a file: PATH_MAX
_TOOL_EVENTS = frozenset({"tool.begin", "tool.end", "tool.failed", "tool.denied"})
_MAX_NUMBER = 2**53 - 1


class Report(Frozen):
    """What happened; `input` and `output` are as the host gives them."""

    __slots__ = (
        "again",
        "agent",
        "class_",
        "command",
        "cwd",
        "duration_ms",
        "event",
        "exit",
        "host",
        "input",
        "moment",
        "output",
        "paths",
        "said",
        "session",
        "tool",
        "use",
        "version",
    )
    host: str
    version: str | None
    session: str | None
    agent: str | None
    event: str
    use: str | None
    tool: str | None
    class_: str | None
    exit: int | None
    duration_ms: int | None
    input: object
    output: object
    command: str | None
    paths: tuple[str, ...]
    cwd: str | None
    said: str | None  # the agent's last words
    again: bool  # a stop that a hook has refused once already
    moment: str | None  # when it was, where that tells one event from the next


def read(payload: "Payload", environ: "Mapping[str, str]") -> Report | None:
    """None for what is no event of ours, or is another event told once more."""
    host = hosts.recognise(payload, environ)
    if host is None or (event := _event(host, payload)) is None:
        return None
    session, agent = _who(host, payload)
    if not _counts(host, event, agent, payload):
        return None
    event = _of_subagent(event) if agent else event
    is_tool = event in _TOOL_EVENTS
    tool = _tool(host, payload) if is_tool else None
    class_ = _class(host, tool) if is_tool else None
    given = _pick(payload, host.fields["input"]) if is_tool else None
    given = _prompt(host, payload) if event == "prompt" else given
    is_over = is_tool and event != "tool.begin"
    output = _output(host, class_, _pick(payload, host.fields["output"])) if is_over else None
    event = "tool.failed" if event == "tool.end" and _failed(payload, host) else event
    return Report(
        host=host.name,
        version=_version(host, payload, environ),
        session=session,
        agent=agent,
        event=event,
        use=_text(payload, host.fields["use"]) if is_tool else None,
        tool=tool,
        class_=class_,
        exit=_exit(host, event, payload) if class_ == "run" and is_over else None,
        duration_ms=_number(_pick(payload, host.fields["duration"])) if is_over else None,
        input=given,
        output=output,
        command=_command(given) if class_ == "run" else None,
        paths=tuple(dict.fromkeys(_paths(given)))[:MOST_PATHS] if _has_files(class_) else (),
        cwd=_cwd(host, payload),
        said=_text(payload, host.fields["said"]) if event in ("stop", "subagent.end") else None,
        again=payload.get("stop_hook_active") is True,
        moment=_moment(_pick(payload, host.fields.get("moment", ()))),
    )


# Fields.


def _pick(payload: "Payload", paths: tuple[str, ...]) -> object:
    """The value of the first path that leads to one."""
    for path in paths:
        value: object = payload
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def _text(payload: "Payload", paths: tuple[str, ...]) -> str | None:
    value = _pick(payload, paths)
    return value if isinstance(value, str) and value else None


def _number(value: object) -> int | None:
    """A duration; some hosts give fractions of a millisecond."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MAX_NUMBER else None


def _event(host: "Host", payload: "Payload") -> str | None:
    if host is hosts.COPILOT:
        return _copilot_event(payload)
    if host is hosts.CLINE:
        return _cline_event(payload)
    return host.events.get(_text(payload, host.fields["event"]) or "")


def _copilot_event(payload: "Payload") -> str | None:
    """Copilot's own dialect does not name the event: the fields tell."""
    if "hookName" in payload:
        return None  # permissionRequest: a question, and no deed
    if "toolName" in payload:
        if "toolResult" in payload:
            return "tool.end"
        return "tool.failed" if "error" in payload else "tool.begin"
    if "agentName" in payload:
        return "subagent.end" if "stopReason" in payload else "subagent.start"
    for field, event in (
        ("stopReason", "stop"),
        ("source", "session.start"),
        ("reason", "session.end"),
        ("prompt", "prompt"),
    ):
        if field in payload:
            return event
    return None


def _cline_event(payload: "Payload") -> str | None:
    """Cline has a member of the event's name, in other letters."""
    for name, event in hosts.CLINE.events.items():
        if name[0].lower() + name[1:] in payload:
            return event
    return "session.end" if payload.get("hookName") == "session_shutdown" else None


def _who(host: "Host", payload: "Payload") -> tuple[str | None, str | None]:
    """The host's session and, of a subagent, its id."""
    fields = host.fields
    session = _text(payload, fields["session"])
    agent, parent = (
        _text(payload, fields.get("agent", ())),
        _text(payload, fields.get("parent", ())),
    )
    if host is hosts.CLINE:
        return session, agent if parent else None
    if host is hosts.OPENCODE and parent:
        return parent, session
    if host.name == hosts.COPILOT.name and agent and session == agent:
        return parent, agent  # its subagents have sessions of their own
    return session, agent


def _of_subagent(event: str) -> str:
    """A session that begins or ends in a subagent is its own start or end."""
    return {
        "session.start": "subagent.start",
        "session.end": "subagent.end",
        "stop": "subagent.end",
    }.get(event, event)


def _counts(host: "Host", event: str, agent: str | None, payload: "Payload") -> bool:
    """Whether this is what it seems to be, and is not told by another event as well."""
    if event == "prompt":
        prompt = _prompt(host, payload)
        return bool(prompt) and not agent and not _is_notice(str(prompt))
    if event == "stop" and agent and host.name == hosts.COPILOT.name:
        return False  # it sends subagentStop as well
    if event == "subagent.end" and host is hosts.CLAUDE_CODE:
        return payload.get("agent_type") != ""  # compaction ends an agent that never began
    return True


def _is_notice(prompt: str) -> bool:
    """Whether the host or this hook said it, and not the user."""
    return prompt.startswith(("<task-notification>", REMINDER))


def _prompt(host: "Host", payload: "Payload") -> str | None:
    value = _pick(payload, host.fields["prompt"])
    if isinstance(value, list):  # OpenCode: the parts of a message
        parts = [part for part in value if isinstance(part, dict) and part.get("type") == "text"]
        value = "\n".join(str(part.get("text", "")) for part in parts)
    return value if isinstance(value, str) and value else None


def _tool(host: "Host", payload: "Payload") -> str | None:
    name = _text(payload, host.fields["tool"])
    if host is hosts.COPILOT_AS_CLAUDE and name:
        return hosts.COPILOT_TOOLS.get(name, name)
    if host is hosts.WINDSURF and name:
        return name.partition("_")[2]
    return name


def _class(host: "Host", tool: str | None) -> str:
    if tool is None:
        return "other"
    for name, tools in host.classes.items():
        if tool in tools:
            return name
    begins, holds = host.mcp
    is_mcp = tool.startswith(begins) if begins else holds in tool
    return "mcp" if is_mcp else "other"


def _version(host: "Host", payload: "Payload", environ: "Mapping[str, str]") -> str | None:
    if host is hosts.CLAUDE_CODE:
        name, _, rest = environ.get(host.version, "").partition("_")  # claude-code_2-1-325_…
        return rest.partition("_")[0].replace("-", ".") or None if name == host.name else None
    return _text(payload, host.fields.get("version", ())) or environ.get(host.version) or None


def _cwd(host: "Host", payload: "Payload") -> str | None:
    value = _pick(payload, host.fields["cwd"])
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) and 0 < len(value) <= LONGEST else None


def _moment(value: object) -> str | None:
    """A time in milliseconds, as Copilot's two dialects give it."""
    if isinstance(value, int) and 0 <= value <= _MAX_NUMBER:
        import time  # Copilot's own dialect alone

        second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(value // 1000))
        return f"{second}.{value % 1000:03}Z"
    return value if isinstance(value, str) and value else None


# What a tool was given and what came of it.


def _has_files(class_: str | None) -> bool:
    return class_ in ("edit", "read")


def _command(given: object) -> str | None:
    if not isinstance(given, dict):
        return None
    for key in ("command", "commands", "command_line", "cmd"):
        value = given.get(key)
        if isinstance(value, list):
            value = ("\n" if key == "commands" else " ").join(map(str, value))
        if isinstance(value, str) and value:
            return value
    return None


_PATHS = ("file_path", "notebook_path", "path", "filePath", "dir_path", "absolute_path")
_LISTS = ("files", "paths", "replacements")
_PATCHES = ("command", "patch", "patchText", "input")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)


def _paths(given: object) -> "Iterator[str]":
    """The files that a tool was to read or change: named by its input, or by a patch in it."""
    if not isinstance(given, dict):
        given = {"patch": given}
    yield from _texts(given, _PATHS)
    for one in (one for key in _LISTS if isinstance(many := given.get(key), list) for one in many):
        yield from _texts(one if isinstance(one, dict) else {"path": one}, _PATHS)
    for text in _texts(given, _PATCHES):
        yield from _PATCHED.findall(text)


def _texts(given: dict[str, object], keys: tuple[str, ...]) -> "Iterator[str]":
    return (text for key in keys if isinstance(text := given.get(key), str) and text)


_WRAPPED = "<untrusted_context>\n", "\n</untrusted_context>"  # Gemini, around what tools say


def _output(host: "Host", class_: str | None, output: object) -> object:
    """What the tool answered; of an MCP tool that answers one text, that text."""
    if host is hosts.OPENCODE and isinstance(output, dict) and "output" in output:
        return output["output"]
    if host in (hosts.GEMINI, hosts.QWEN) and isinstance(output, dict):
        output = output.get("llmContent", output)
    if class_ != "mcp":
        return output
    parts = output.get("content") if isinstance(output, dict) else output
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict):
        text = parts[0].get("text")
        if isinstance(text, str):
            return text.removeprefix(_WRAPPED[0]).removesuffix(_WRAPPED[1])
    return output


def _failed(payload: "Payload", host: "Host") -> bool:
    """Whether a tool failed, on hosts that have one event for both."""
    output = _pick(payload, host.fields["output"])
    if host is hosts.GEMINI:
        return isinstance(output, dict) and bool(output.get("error"))
    if host is hosts.CLINE:
        is_error = isinstance(output, dict) and output.get("isError") is True
        return is_error or _pick(payload, ("postToolUse.success",)) is False
    return host is hosts.OPENCODE and isinstance(output, dict) and output.get("isError") is True


# The exit code of a command.


def _exit(host: "Host", event: str, payload: "Payload") -> int | None:
    judge = _EXITS.get(host.name)
    code = judge(event, payload) if judge else None
    return code if code is not None and abs(code) <= _MAX_NUMBER else None


def _claude_exit(event: str, payload: "Payload") -> int | None:
    """A failure says the code; without one it is 0, unless the command was cut short or goes on.

    Nor is it 0 where the host has its own reading of another code, as of grep's 1.
    """
    if event == "tool.failed":
        return _code("claude-code", payload.get("error"))
    told, given = payload.get("tool_response"), payload.get("tool_input")
    if not isinstance(told, dict) or told.get("interrupted") is not False:
        return None
    goes_on = isinstance(given, dict) and given.get("run_in_background")
    is_open = any(told.get(key) for key in told if "background" in key.lower())
    return None if goes_on or is_open or told.get("returnCodeInterpretation") else 0


# What a host writes around the exit code of a command.
_CODES = {
    "claude-code": r"Exit code (\d{1,10})(?:\n|\Z)",
    "gemini": r"(?:[A-Z]\w+: [^\n]*\n)*?Exit Code: ([1-9]\d{0,9})\n",
    "qwen": r"(?s:.*)\nExit Code: (\d{1,10})\nSignal: [^\n]*\nProcess Group PGID: [^\n]*\Z",
    "copilot": r"(?s:.*)<shellId: \w+ completed with exit code (\d{1,10})>\s*\Z",
    "cline": r"Command exited with code (\d{1,10})\Z",
}


def _code(host: str, text: object) -> int | None:
    found = re.match(_CODES[host], text) if isinstance(text, str) else None
    return int(found[1]) if found else None


def _gemini_exit(_event: str, payload: "Payload") -> int | None:
    """Gemini adds the code behind the output, which is shown by itself too, if it is not 0."""
    text = _pick(payload, ("tool_response.llmContent",))
    shown = _pick(payload, ("tool_response.returnDisplay",))
    if not isinstance(text, str) or not isinstance(shown, str):
        return None
    for output in (shown, "(empty)"):
        _, found, rest = text.partition(f"Output: {output}\n")
        if found:
            return _code("gemini", rest)
    return None


def _qwen_exit(_event: str, payload: "Payload") -> int | None:
    """The last lines of what Qwen makes of a command, whatever that printed before."""
    text = _pick(payload, ("tool_response.llmContent", "error"))
    return _code("qwen", text)


def _copilot_exit(_event: str, payload: "Payload") -> int | None:
    text = _pick(payload, ("toolResult.textResultForLlm", "tool_result.text_result_for_llm"))
    return _code("copilot", text)


def _cline_exit(_event: str, payload: "Payload") -> int | None:
    """Of one command; Cline runs several in one call and tells the codes that are not 0."""
    output = _pick(payload, ("tool_result.output",))
    if not isinstance(output, list) or len(output) != 1 or not isinstance(output[0], dict):
        return None
    return _code("cline", output[0].get("error"))


def _opencode_exit(_event: str, payload: "Payload") -> int | None:
    code = _pick(payload, ("output.metadata.exit",))
    return code if isinstance(code, int) and not isinstance(code, bool) else None


_EXITS = {
    "claude-code": _claude_exit,
    "gemini": _gemini_exit,
    "qwen": _qwen_exit,
    "copilot": _copilot_exit,
    "cline": _cline_exit,
    "opencode": _opencode_exit,
}
