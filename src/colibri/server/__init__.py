"""The server: threads, signals, MCP. Only the names listed here are public API."""

from colibri.server.audit import (
    AuditSink,
    ToolEnterEvent,
    ToolExitEvent,
    create_noop_audit_sink,
)
from colibri.server.context import (
    ColibriServerContext,
    ColibriToolConfig,
    create_server,
    main,
    register_colibri_tool,
    start,
    stop,
)

__all__ = [
    "AuditSink",
    "ColibriServerContext",
    "ColibriToolConfig",
    "ToolEnterEvent",
    "ToolExitEvent",
    "create_noop_audit_sink",
    "create_server",
    "main",
    "register_colibri_tool",
    "start",
    "stop",
]
