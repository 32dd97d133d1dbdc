"""Where a call comes from, as far as its client says: the client's name and its own ids.

A client gives its hooks the same ids, so that a hook's report of a call can be matched with the
call's records. Claude Code and Codex send them with each call; others put the id of their session
into the server's environment (config.py).
"""

from colibri.core.frozen import Frozen

MAX_LENGTH = 128
MAX_READ = 1024  # of a text; a secret cut in two by a shorter limit would not be found
MAX_KEPT = 64
_seen: dict[str, str] = {}  # results of `recordable`: most texts repeat with every call
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_USES = ("claudecode/toolUseId", "callId")
_SESSIONS = ("threadId", "sessionId")


class Origin(Frozen):
    """A member is None if the client does not say."""

    __slots__ = ("client", "host_session", "use")
    client: str | None
    host_session: str | None
    use: str | None


NOWHERE = Origin(client=None, host_session=None, use=None)


def of_call(client: str | None, meta: object) -> Origin:
    """The origin of a call with this `_meta`; `client` is the name from the handshake."""
    if not isinstance(meta, dict):
        return Origin(client=client, host_session=None, use=None)
    named = name_of(meta.get(CLIENT_INFO))
    host_session, use = _first(meta, _SESSIONS), _first(meta, _USES)
    return Origin(client=named or client, host_session=host_session, use=use)


def name_of(info: object) -> str | None:
    """Name and version of a client, from its clientInfo."""
    if not isinstance(info, dict):
        return None
    parts = [info.get(key) for key in ("name", "version")]
    return " ".join(part for part in parts if isinstance(part, str) and part) or None


def recordable(text: str | None) -> str | None:
    """A client's text in the form that is recorded: short, printable and without secrets."""
    if text is None:
        return None
    text = text[:MAX_READ]
    if text not in _seen:
        from colibri.core import redaction  # off the main thread
        from colibri.core.visible import visible

        if len(_seen) >= MAX_KEPT:
            _seen.clear()
        redacted, _ = redaction.redact(text)
        _seen[text] = visible(str(redacted))[:MAX_LENGTH]
    return _seen[text]


def _first(meta: dict[str, object], names: tuple[str, ...]) -> str | None:
    return next((one for name in names if isinstance(one := meta.get(name), str) and one), None)
