"""A report as the deed that is recorded of it: digests, redacted texts, what is on disk.

By default no prompt, content or output is kept: commands and paths, without secrets, and digests.
"""

import json

from colibri.core import canonical, redaction
from colibri.core.visible import visible
from colibri.hook import files
from colibri.store.deeds import MAX_COMMAND, START, Deed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from colibri.hook.report import Report

_NAME, _PATH, _TEXT = 128, 1024, 64 * 1024  # characters that are kept
_READ = 4  # times as much is looked through for secrets: one that is cut would not be found


def make(
    report: "Report",
    project: str,
    cwd: str,
    *,
    keeps_text: bool,
    in_time: "Callable[[], bool]",
) -> Deed:
    """The deed of a report, but for what the hook answers and the settings of its host."""
    tree = files.tree_of(cwd, project)
    paths = [tree.inside(path, cwd) if tree else None for path in report.paths]
    is_over = report.event in ("tool.end", "tool.failed")
    edits = report.event == "tool.begin" and report.class_ == "edit"  # then what it begins with
    found = [
        _file(number, f"{tree.root}/{path}" if tree and path else None, in_time)
        for number, path in enumerate(paths if is_over or edits else ())
    ]
    return Deed(
        host=report.host,
        host_version=_short(report.version),
        host_session=_short(report.session),
        host_agent=_short(report.agent),
        event=report.event,
        use=_short(report.use),
        tool=_short(report.tool),
        class_=report.class_,
        exit=report.exit,
        duration_ms=report.duration_ms,
        input=digest(report.input),
        output=digest(report.output),
        files=found,
        git=_git(tree),
        settings=None,
        unjudged=None,
        command=_clean(report.command, MAX_COMMAND, lines=True),
        paths=[recorded_path(path) for path in paths],
        tree=recorded_path(tree.name) if tree and paths else None,
        text=_text(report) if keeps_text else None,
        answer=_answer(report),
    )


def recorded_path(path: str | None) -> str | None:
    """A path as deeds have it: without secrets, everything in it visible, and not too long."""
    return _clean(path, _PATH)


def digest(value: object) -> "Mapping[str, object] | None":
    """SHA-256 and size: of a text its UTF-8 bytes, of anything else its canonical ones."""
    if value is None:
        return None
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else _bytes(value)
    return {"sha256": canonical.sha256(data).hex(), "size": len(data)}


def _bytes(value: object) -> bytes:
    """What records may not hold, such as a fraction, is written as Python writes it."""
    try:
        return canonical.encode(value)
    except ValueError:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _file(number: int, path: str | None, in_time: "Callable[[], bool]") -> dict[str, object]:
    sha256, size = files.digest(path, in_time) if path else (None, None)
    return {"n": number, "sha256": sha256, "size": size}


def _git(tree: "files.Tree | None") -> "Mapping[str, object] | None":
    found = files.git_of(tree.root) if tree else None
    return {**found, "branch": _clean(_as_text(found["branch"]), _NAME)} if found else None


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _short(text: str | None) -> str | None:
    return _clean(text, _NAME)


def _clean(text: str | None, most: int, *, lines: bool = False) -> str | None:
    """A text without secrets and with everything in it visible, of so many characters at most."""
    if text is None:
        return None
    return visible(redaction.scrub(text[: most * _READ]), lines=lines)[:most]


def _text(report: "Report") -> str | None:
    """Texts: the prompt, a tool's input or output, the agent's last words."""
    value = report.said or (report.input if report.output is None else report.output)
    if value is not None and not isinstance(value, str):
        value = _bytes(value).decode()
    return _clean(value, _TEXT, lines=True)


def _answer(report: "Report") -> str | None:
    """The hash of the answer to a call that began a session, by which the host is bound to it."""
    if report.class_ != "mcp" or not (report.tool or "").endswith(START):
        return None
    parts = report.output if isinstance(report.output, list) else [report.output]
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part
        try:
            return canonical.sha256(canonical.encode(json.loads(str(text)))).hex()
        except ValueError:
            continue
    return None
