"""What may surround a secret, and texts that look like a secret but must stay.

SURROUNDINGS: name -> a function that puts a text there. ALIKE: the look-alikes.
"""

import base64
import html
import json
import uuid
from collections.abc import Callable
from hashlib import sha1, sha256
from random import Random
from urllib.parse import quote

from tests.support.secret_shapes import pem


def _each_line(before: str) -> Callable[[str], str]:
    return lambda text: "\n".join(before + line for line in text.split("\n"))


def _attribute(text: str) -> str:
    return f'<note text="{html.escape(text).replace(chr(10), "&#10;")}"/>'


SURROUNDINGS: dict[str, Callable[[str], str]] = {
    "alone": lambda text: text,
    "YAML": lambda text: "config:\n  note: |\n" + _each_line("    ")(text) + "\n  next: 1",
    "YAML, deep": _each_line(" " * 24),
    "diff, added": lambda text: "@@ -1,2 +1,9 @@\n" + _each_line("+")(text) + "\n same",
    "diff, removed": lambda text: "@@ -1,9 +1,2 @@\n" + _each_line("-")(text) + "\n same",
    "diff, indented": _each_line("+        "),
    "quotation": lambda text: "He wrote:\n" + _each_line("> ")(text) + "\n\nand I said no",
    "quotation of a quotation": _each_line(">> "),
    "JSON": lambda text: json.dumps({"a": [1, text], "b": 2}),
    "JSON in JSON": lambda text: json.dumps({"body": json.dumps({"a": text})}),
    "JSON in JSON in JSON": lambda text: json.dumps([json.dumps([json.dumps([text])])]),
    "shell": lambda text: f"$ printf '%s' '{text}' > file && cat file",
    "here document": lambda text: f"cat <<EOF > .env\n{text}\nEOF\nchmod 600 .env",
    "log line": _each_line("2026-11-16T21:20:12.123Z INFO [main] "),
    "Markdown": lambda text: f"Use this:\n\n```sh\n{text}\n```\n\nand go on.",
    "Markdown, indented": lambda text: "Use this:\n\n" + _each_line("\t")(text) + "\n\nand go on.",
    "CRLF": lambda text: f"one\n{text}\ntwo".replace("\n", "\r\n"),
    "attribute": _attribute,
    "HTML": lambda text: f"<pre>{html.escape(text, quote=False)}</pre>",
    "URL query": lambda text: f"https://h.example/?q={quote(text, safe='')}&page=2",
    "colour": lambda text: f"\x1b[32m{text}\x1b[0m",
    "program": lambda text: "\n".join(f'    "{line}\\n"' for line in text.split("\n")),
    "other scripts": lambda text: f"naïve 日本語 🐦{chr(10)}{text}\nund so weiter …",
    "comment": lambda text: "/**\n" + _each_line(" * ")(text) + "\n */",
}


_HASH = sha256(b"colibri").hexdigest()
_COMMIT = sha1(b"colibri").hexdigest()
_UUID = str(uuid.UUID(int=2**127 + 12345))
_DATA = base64.b64encode(bytes(range(256)) * 40).decode()
ALIKE: tuple[str, ...] = (
    _HASH, _HASH.upper(), _COMMIT, _COMMIT[:7], _UUID, _DATA, _DATA.replace("+", "-"),
    f"root: {_HASH}, head 17:{_HASH}", f"sha256:{_HASH}", f"image@sha256:{_HASH}",
    f"commit {_COMMIT}\nAuthor: Ada <ada@example.org>", f"token_id={_UUID}", f"key: {_UUID}",
    f'{{"token": "{_HASH}"}}', f"SECRET={_HASH}", f"API_KEY={_UUID}", f"password_hash={_HASH}",
    "sha512-" + base64.b64encode(bytes(range(64))).decode(), f"agent-{_HASH}", f"old_{_COMMIT}",
    base64.b64encode(b'{"alg":"none","and":"so on and so forth"}').decode(),
    "API_TOKEN=${TOKEN}", "API_TOKEN=$TOKEN", "API_TOKEN=$(gh auth token) make", "API_TOKEN=",
    "API_TOKEN=$GITHUB_TOKEN1", 'API_TOKEN="${{ secrets.API_TOKEN }}"', "TOKEN=$1 ./run",
    "API_TOKEN: ${{ secrets.API_TOKEN1 }}", "API_KEY={{ key1 }}", "SECRET=<x>", "API_KEY=...",
    "PASSWORD=*****1", "PASSWORD=xxxxxxxxxxxx", "password: <your password>", "DB_PASSWORD=",
    "DB_PASSWORD=\nDB_USER=ada123456", "DB_PASSWORD=''", 'DB_PASSWORD=""', "PASSWORD=%s",
    "PASSWORD=%PASSWORD1%", "API_TOKEN=your-token-here", "API_KEY=YOUR_API_KEY_HERE",
    "PASSWORD=changeme", "SECRET_KEY=change-me", "TOKEN=null", "TOKEN=None", "USE_TOKEN=true",
    "REQUIRE_PASSWORD=false", "PASSWORD=/run/secrets/db_password1", "PASSWORD_FILE=/run/pw1",
    "MAX_TOKENS=4096", "max_tokens: 128000", "TOKEN_LIMIT=200000", "NEXT_TOKEN=12", "tokens=1e6",
    "token = get_token()", "token = get_token(user1)", "password=config.password1",
    "secret: str = settings.KEY_1", "token = tokens[0]", "self.token = token2", "token: str",
    "password = input('Password: ')", "const token = await getAccessTokenFromStorage();",
    "if token == expected_token:", "password=os.environ['DB_PASSWORD1']", "token=self._token",
    "token := os.Getenv(\"API_TOKEN1\")", "api_key = process.env.API_KEY1", "PASSWORD=PASSWORD_1",
    '{"password": "required"}', '"token": "string"', '"password": "Password"', "'secret': None",
    '"token": "access_token_from_login"', '"password": {"type": "string", "minLength": 8}',
    '{"key": "PROJ-12345678", "public_key": "abcdefgh1234", "primary_key": "user_id_12"}',
    "The password is stored as a hash, and the token expires after 30 days.",
    "Each token: three tries. Secret: keep it. Password: at least 12 characters, 1 digit.",
    "We moved the secret to the vault; the key rotates every 90 days.", "key=value",
    "send a Bearer token, or Authorization: Bearer <token>", "Authorization: Bearer $TOKEN",
    "Authorization: Bearer ${{ secrets.T1 }}", "bearer authentication-and-authorization",
    "a Bearer authentication scheme", "Authorization: Basic <credentials>", "the bearer of news",
    "WWW-Authenticate: Bearer realm=\"example\"", "authorization: required for every call",
    "authorization-code-flow-with-pkce", "X-API-Key: <your key>", "x-api-key: required",
    "postgres://u:${PASSWORD1}@h", "postgres://u:$PASSWORD@h", "postgres://u:%s@h",
    "postgres://user:password@host/db", "postgres://u:<password>@h", "mysql://u:{password}@h",
    "mysql://u:***@h", "mysql://$user:$password@$host", "http://localhost:8080/@scope/x@1.2.3",
    "https://host:8080/@scope/name@1.2.3 and ssh://git@host:22/x and mailto:a@b.c",
    "https://example.org:443?mail=a@b.c", "git@github.com:ada/x.git", "ssh://git@host/x",
    "https://example.org/a:b/c@d", "npm install @scope/package@1.2.3-beta.4", "user@host:path",
    "sk-learn", "task-sk-learn-pipeline-with-a-long-name", "risk-adjusted-return-on-capital",
    "disk-" + "encryption" * 4, "whisk-", "ask-anthropic-about-it", "sk-ant-...", "ghp_...",
    "ghp_" + "x" * 36, "ghp_" + "*" * 36, "AKIA" + "X" * 16, "xoxb-your-bot-token-goes-here",
    "github_pat_ begins a fine-grained token", "glpat-<20 characters>", "npm_config_registry",
    "npm_package_scripts_prebuild_with_a_rather_long_name", "hf_hub_download_with_progress_bars",
    "pypi-publish-action-with-trusted-publishing", "key-value-store", "re_compile_all_patterns",
    "secret_key_rotation_policy_for_the_whole_company", "access-production-readiness-checklist",
    "Private-Lines: 14", "v1.0-beta.2", "v1.0-0123456789ab", "pat-na1-", "sl.example.org",
    "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "numpy==1.26.4 --hash=sha256:" + _HASH, "colibri-0.1.0.tar.gz", "libssl.so.1.1", "a.b.c.d",
    "node_modules/.pnpm/@babel+core@7.24.0/node_modules/@babel/core", "v20.11.1+build.7",
    "/home/ada/project/src/colibri/server/pipeline.py:120", "C:\\Users\\ada\\AppData\\Local\\x1",
    "com.example.project.authentication.TokenAuthenticationFilterFactory1", "T-0001 R-12 S-0123",
    "look for -----BEGIN " + "PRIVATE KEY----- in the diff",
    "between -----BEGIN " + "PRIVATE KEY----- and -----END " + "PRIVATE KEY----- it stands",
    "-----BEGIN " + "PRIVATE KEY-----\n...\n-----END " + "PRIVATE KEY-----",
    "-----BEGIN " + "PRIVATE KEY-----\n<your key>\n-----END " + "PRIVATE KEY-----",
    "-----BEGIN " + "PRIVATE KEY----- src/colibri/server/pipeline/private_key_reader",
    pem("PUBLIC KEY", Random(1), 7, 64), pem("CERTIFICATE", Random(2), 26, 64),
    pem("PGP PUBLIC KEY BLOCK", Random(3), 26, 64), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI ada",
    "client-certificate-data: " + base64.b64encode(b"-----BEGIN CERTIFICATE-----" * 9).decode(),
    "ENV API_TOKEN ${TOKEN}", "ENV API_TOKEN <your token>", "set -x API_TOKEN (cat token.txt)",
    "setx API_TOKEN %TOKEN1%", "set -e TOKEN", "with password 'changeme'", "identified by 'your'",
    '"auth": "authentication"', '"auth": "basic"', "curl --user-agent Mozilla:5.0 https://h",
    "the machine that you login to asks for a password again", "curl --user ada https://h",
    "curl -u ada https://h", "curl -u \"$USER:$PASSWORD\" https://h", "mysql -p",
    "--password-stdin",
    "tool --token-file token1.txt", "--password <password>", "the --token option takes a path",
    "passkey: webauthn2", "compass: north1234", "keyboard=qwerty123", "monkey: banana12", "",
)  # fmt: skip
