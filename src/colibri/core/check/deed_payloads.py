"""The payloads of deeds and of their texts, typed, with their members in canonical order."""

import re
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from colibri.core.check.payload import Integer, Name, Natural, Payload, Seq
from colibri.core.check.rows import are_hashes, are_times
from colibri.core.ledger import TOOL_EVENTS

_IS_COMMIT = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?").fullmatch


class Digest(Struct, forbid_unknown_fields=True, gc=False):
    """Of some bytes."""

    sha256: str
    size: Natural


class DeedFile(Struct, forbid_unknown_fields=True, gc=False):
    """What was on disk under one of a deed's paths; nulls where nothing could be read."""

    n: Natural
    sha256: str | None
    size: Natural | None


class Git(Struct, forbid_unknown_fields=True, gc=False):
    """Where the work tree was."""

    branch: str | None
    commit: str | None


class Deed(Payload, kw_only=True, omit_defaults=True):
    class_: Literal["edit", "run", "read", "fetch", "mcp", "other"] | None = field(name="class")
    duration_ms: Natural | None
    event: Literal[
        "session.start",
        "session.end",
        "prompt",
        "tool.begin",
        "tool.end",
        "tool.failed",
        "tool.denied",
        "stop",
        "subagent.start",
        "subagent.end",
        "compact",
        "bind",
    ]
    exit: Integer | None
    files: Annotated[list[DeedFile], Meta(max_length=64)]
    git: Git | None
    host: Name
    host_agent: Name | None
    host_session: Name | None
    host_version: Name | None
    input: Digest | None
    late: str | None
    lost: Natural
    output: Digest | None
    settings: str | None
    tool: Name | None
    unjudged: Literal["rules", "session", "ledger", "host"] | UnsetType = UNSET
    use: Name | None

    @property
    def is_unjudged(self) -> bool:
        return self.unjudged is not UNSET

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        hashes = [one.sha256 for one in (self.input, self.output, *self.files) if one is not None]
        commit = None if self.git is None else self.git.commit
        is_of_tool = self.event in TOOL_EVENTS
        return (
            are_hashes([one for one in (*hashes, self.settings) if one is not None])
            and are_times([] if self.late is None else [self.late])
            and (commit is None or _IS_COMMIT(commit) is not None)
            and (self.class_ is not None) == is_of_tool
            and (self.exit is None or is_of_tool)
            and (not self.is_unjudged or (self.event, self.class_) == ("tool.begin", "edit"))
        )


class DeedText(Payload):
    command: Annotated[str, Meta(max_length=4096)] | None
    of: Seq
    paths: Annotated[list[str | None], Meta(max_length=64)]
    text: str | None
    tree: str | None

    def fits(self, seq: int, session: str | None, task: str | None) -> bool:
        return self.of == seq - 1
