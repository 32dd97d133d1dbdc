"""Colibri: a local MCP server that makes the work of AI agents accountable."""

VERSION = "0.1.0"
