"""Settings files of MCP clients, as the clients and their users really write them."""

from typing import NamedTuple


class Where(NamedTuple):
    """A client, how it is asked for, and its file below the home or the project of a user."""

    client: str
    options: tuple[str, ...]
    file: str


CLAUDE_CODE = Where("claude-code", (), "project/.mcp.json")
CLAUDE_USER = Where("claude-code", ("--user",), "home/.claude.json")
CURSOR = Where("cursor", (), "project/.cursor/mcp.json")
CURSOR_USER = Where("cursor", ("--user",), "home/.cursor/mcp.json")
VSCODE = Where("vscode", (), "project/.vscode/mcp.json")
CODEX = Where("codex", (), "home/.codex/config.toml")
GEMINI = Where("gemini", (), "project/.gemini/settings.json")
GEMINI_USER = Where("gemini", ("--user",), "home/.gemini/settings.json")


def crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


# Each gets something added, and nothing taken away.
ADDED: dict[str, tuple[Where, str]] = {
    "other servers": (
        CLAUDE_CODE,
        """\
{
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://example.invalid/mcp",
      "headers": {"Authorization": "${TOKEN}"}
    }
  }
}
""",
    ),
    "a file full of other things, no servers, no final newline": (
        CLAUDE_USER,
        """\
{
  "numStartups": 184,
  "tipsHistory": {"a": 1.5e3, "b": -0},
  "big": 123456789012345678901234567890,
  "projects": {
    "/p": {"history": [{"display": "say \\"hi\\" // no comment \\u00e9"}]}
  },
  "oauthAccount": null
}""",
    ),
    "no servers yet": (GEMINI, '{\n  "mcpServers": {}\n}\n'),
    "comments, one of them after the last server": (
        CURSOR,
        """\
// mine
{
    /* all of
       them */
    "mcpServers": {
        // "old": {},
        "docs": { "url": "https://example.invalid" } // keep
    }
}
""",
    ),
    "comments, trailing commas and tabs": (
        VSCODE,
        """\
{
\t// for the team
\t"inputs": [
\t\t{ "id": "key", "type": "promptString", "password": true, },
\t],
\t"servers": {
\t\t"fetch": {
\t\t\t"command": "uvx",
\t\t\t"args": ["mcp-server-fetch",],
\t\t}, // x
\t},
}
""",
    ),
    "CRLF": (VSCODE, crlf('{\n\t"servers": {\n\t\t"a": {\n\t\t\t"command": "a"\n\t\t}\n\t}\n}\n')),
    "a byte order mark": (CURSOR_USER, '\ufeff{\n  "mcpServers": {\n    "a": {"url": "u"}\n  }\n}'),
    "all on one line": (CURSOR, '{"mcpServers":{"a":{"command":"a","args":[]}}}'),
    "a brace at the end of a line": (CURSOR, '{ "mcpServers": { "a": {},\n  "b": {} } }\n'),
    "only comments": (GEMINI_USER, "// nothing set yet\n"),
    "a comment in the braces": (GEMINI, "{\n  // theme: later\n}\n"),
    "the same names elsewhere": (
        GEMINI,
        '{\n  "colibri": 1,\n  "ui": {"mcpServers": {"colibri": {}}}\n}\n',
    ),
    "TOML with comments": (
        CODEX,
        """\
# Codex
model = "o"  # mine

[mcp_servers.docs]
command = "docs"
args = [
  "-y", # yes
]

[projects."/p"]
trust_level = "trusted"
""",
    ),
    "TOML without a final newline": (CODEX, "[tui]\nnotifications = true"),
    "TOML with CRLF": (CODEX, crlf('[mcp_servers.a]\ncommand = "a"\n')),
    "TOML with a byte order mark": (CODEX, '\ufeffmodel = "o"\n'),
}

_NEW_JSON = """\
{
  "mcpServers": {
    "colibri": {
      "command": "COLIBRI",
      "args": ["serve"]
    }
  }
}
"""

# Each is changed where it must be: before, and after with COLIBRI for the command.
CHANGED: dict[str, tuple[Where, str, str]] = {
    "older arguments; its env and its place stay": (
        CLAUDE_CODE,
        """\
{
  "mcpServers": {
    "colibri": {
      "command": "/old/colibri",
      "args": [
        "serve",
        "--project",
        "/p"
      ],
      "env": {"COLIBRI_MODE": "READONLY"}
    },
    "z": {}
  }
}
""",
        """\
{
  "mcpServers": {
    "colibri": {
      "command": "COLIBRI",
      "args": ["serve"],
      "env": {"COLIBRI_MODE": "READONLY"}
    },
    "z": {}
  }
}
""",
    ),
    "an entry without arguments": (
        GEMINI,
        '{"mcpServers": {"colibri": {"command": "colibri", "trust": true}}}',
        '{"mcpServers": {"colibri": {"command": "COLIBRI", "trust": true, "args": ["serve"]}}}',
    ),
    "an entry that is null": (
        GEMINI,
        '{\n  "mcpServers": {\n    "colibri": null\n  }\n}\n',
        _NEW_JSON,
    ),
    "an entry twice: the last one counts": (
        GEMINI,
        '{"mcpServers": {"colibri": {"command": "a"}, "colibri": {"command": "b"}}}',
        '{"mcpServers": {"colibri": {"command": "a"},'
        ' "colibri": {"command": "COLIBRI", "args": ["serve"]}}}',
    ),
    "servers that are null": (
        CLAUDE_CODE,
        '{\n  "mcpServers": null,\n  "a": [1, 2]\n}\n',
        _NEW_JSON.removesuffix("\n}\n") + ',\n  "a": [1, 2]\n}\n',
    ),
    "a file that is null": (CLAUDE_CODE, "null\n", _NEW_JSON),
    "blanks alone": (GEMINI, "\n \n", _NEW_JSON),
    "an empty object": (CLAUDE_CODE, "{ }\n", _NEW_JSON),
    "an empty JSON file": (GEMINI, "", _NEW_JSON),
    "an empty TOML file": (
        CODEX,
        "",
        '[mcp_servers.colibri]\ncommand = "COLIBRI"\nargs = ["serve"]\n',
    ),
    "older TOML; comments and other keys stay": (
        CODEX,
        """\
[ mcp_servers . "colibri" ] # ours
startup_timeout_sec = 20
command = 'old # one' # was
args = [
  "serve", # [not a header]
  "--project", "/p",
] # end

[tui]
theme = "x"
""",
        """\
[ mcp_servers . "colibri" ] # ours
startup_timeout_sec = 20
command = "COLIBRI" # was
args = ["serve"] # end

[tui]
theme = "x"
""",
    ),
    "older TOML without arguments": (
        CODEX,
        crlf('[mcp_servers.colibri]\ncommand = "colibri"\n'),
        crlf('[mcp_servers.colibri]\nargs = ["serve"]\ncommand = "COLIBRI"\n'),
    ),
}

# What is wrong with each, and where.
BROKEN: dict[str, tuple[Where, str, str]] = {
    "a comment where the client has none": (
        CLAUDE_CODE,
        '{\n  // mine\n  "mcpServers": {}\n}\n',
        "line 2, column 3: a comment, which this client does not accept",
    ),
    "a trailing comma where the client has none": (
        GEMINI,
        '{\n  "a": [1,],\n}',
        "line 2, column 10: a comma that this client does not accept",
    ),
    "no comma": (VSCODE, '{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: expecting ',' delimiter"),
    "half a file": (
        CLAUDE_CODE,
        '{\n  "mcpServers": {\n',
        "line 3, column 1: expecting property name enclosed in double quotes",
    ),
    "no colon": (CLAUDE_CODE, '{"a" 1}', "line 1, column 6: expecting ':' delimiter"),
    "no value": (CLAUDE_CODE, '{"a": }', "line 1, column 7: expecting value"),
    "a comment without end": (
        GEMINI,
        "{} /* x",
        "line 1, column 4: a comment does not end",
    ),
    "an open string": (CLAUDE_CODE, '{"a', "line 1, column 2: unterminated string"),
    "not UTF-8": (CLAUDE_CODE, "{\n  \udcff}", "line 2, column 3: it is not UTF-8"),
    "servers in a list": (
        CLAUDE_CODE,
        '{\n  "mcpServers": []\n}',
        "line 2, column 17: mcpServers is not an object",
    ),
    "servers that are a word": (
        VSCODE,
        '{"servers": "none"}',
        "line 1, column 13: servers is not an object",
    ),
    "a list": (CLAUDE_CODE, "[]", "line 1, column 1: the file is not an object"),
    "nested without end": (GEMINI, "[" * 3000, "line 1, column 1: it is nested too deep"),
    "TOML without a value": (CODEX, "a = 1\nmodel = \n", "Invalid value (at line 2, column 9)"),
    "TOML that ends too soon": (CODEX, 'a = 1\nb = ["x",\n', "Invalid value (at end of document)"),
    "TOML with a key twice": (
        CODEX,
        "a = 1\na = 2",
        "Cannot overwrite a value",
    ),
}

# TOML that is sound, but in a form that is not edited.
UNUSUAL = {
    "an inline table": 'mcp_servers = { a = { command = "a" } }\n',
    "an entry inside a table": "[mcp_servers]\ncolibri = { command = 'old' }\n",
    "dotted keys": "mcp_servers.colibri.command = 'old'\n",
    "a list of tables": "[[mcp_servers]]\ncommand = 'a'\n",
    "a number": "mcp_servers = 3\n",
    "a key that only looks like one": '[mcp_servers.colibri]\nnote = """\ncommand = """\n',
}
