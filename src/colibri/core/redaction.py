"""Secrets of known shapes, replaced by `[redacted:KIND]` before anything is hashed or stored.

A shape is a way in which somebody's keys begin (TOKENS), or a frame that tells what stands in it
(FRAMES): a PEM block, `Authorization: Bearer …`, `://user:password@`, `API_TOKEN=…`. What has no
shape cannot be found: a password in a sentence looks like any other word. Hashes, commit ids, UUIDs
and base64 have no shape either and are left alone.

It takes linear time. A pattern is only tried on a text that holds its hint, and its repetitions are
possessive or bounded, so that no start looks far into what another has looked through in vain. Most
texts hold no hint and cost a few microseconds.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

SHORTEST = 12  # no text shorter than this holds a secret of a known shape
_SHORTEST_TOKEN = 20
_HEAD = 3  # how much of a word tells which tokens it may be


class Finding(NamedTuple):
    """What was replaced and where, such as `content` or `depends_on[2]`."""

    path: str
    kind: str


class Shape(NamedTuple):
    """One way to know a secret. Replaced is the pattern's group `secret`, or all of it."""

    kind: str
    hint: bytes  # a text without it holds no such secret; that of a frame stands for any case
    pattern: bytes
    folds: bool = False  # it is in lower case and stands for any case
    is_named: bool = False  # only its name tells, so its value has to look like a secret as well


def redact(value: Any) -> tuple[Any, list[Finding]]:
    """A JSON value with the secrets in its strings and keys replaced, and what was found."""
    found: dict[Finding, None] = {}
    return _clean(value, "", found), list(found)


def scrub(text: str) -> str:
    """A text with the secrets in it replaced."""
    return _replace(text)[0]


def _clean(value: Any, path: str, found: dict[Finding, None]) -> Any:
    if isinstance(value, str):
        text, kinds = _replace(value)
        for kind in kinds:
            found[Finding(path, kind)] = None
        return text
    if isinstance(value, list):
        return [_clean(item, f"{path}[{index}]", found) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return _clean_object(value, path, found)
    return value


def _clean_object(value: dict[str, Any], path: str, found: dict[Finding, None]) -> dict[str, Any]:
    clean: dict[str, Any] = {}
    for key, item in value.items():
        name, kinds = _replace(key)
        while name in clean:  # two secrets as keys: neither may take the other's place
            name += "+"
        here = f"{path}.{name}" if path else name
        for kind in kinds:
            found[Finding(here, kind)] = None
        clean[name] = _clean(item, here, found)
    return clean


def _replace(text: str) -> tuple[str, list[str]]:
    """A text with its secrets replaced, and their kinds."""
    if len(text) < SHORTEST:
        return text, []
    data = text.encode("utf-8", "surrogatepass")
    kinds = []
    for shape in _candidates(data):
        spans = list(_spans(shape, data))
        if spans:
            data = _spliced(data, spans, b"[redacted:%b]" % shape.kind.encode())
            kinds.append(shape.kind)
    return (data.decode("utf-8", "surrogatepass"), kinds) if kinds else (text, [])


def _candidates(data: bytes) -> list[Shape]:
    """The shapes whose hint occurs; of a token, where a long word begins like it."""
    visible = _ESCAPES.sub(b" ", data) if b"%" in data or b"\\" in data else data
    words = visible.translate(_BLANKS).split()
    heads = {word[:_HEAD] for word in words if len(word) >= _SHORTEST_TOKEN}
    shapes = [shape for head in sorted(heads & _HEADS.keys()) for shape in _HEADS[head]]
    lower = data.lower()
    if _ANY_HINT.search(lower):
        hints = {hint for hint in _HINTS if hint in lower}
        shapes += [shape for shape in FRAMES if shape.hint in hints]
    return shapes


def _spans(shape: Shape, data: bytes) -> Iterator[tuple[int, int]]:
    pattern = _compiled(shape.pattern)
    group = "secret" if "secret" in pattern.groupindex else 0
    for match in pattern.finditer(data.lower() if shape.folds else data):
        start, end = match.span(group)
        if not shape.is_named or _looks_secret(data[start:end]):
            yield start, end


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


def _spliced(data: bytes, spans: list[tuple[int, int]], replacement: bytes) -> bytes:
    pieces: list[bytes] = []
    at = 0
    for start, end in spans:
        pieces += (data[at:start], replacement)
        at = end
    return b"".join((*pieces, data[at:]))


def _looks_secret(value: bytes) -> bool:
    """Letters and digits, but no hash, no UUID, and no expression such as `settings.TOKEN_1`."""
    return bool(_compiled(_MIXED).match(value)) and not _compiled(_NO_SECRET).match(value)


_MIXED = rb"(?=[^0-9]{0,128}[0-9])(?=[^A-Za-z]{0,128}[A-Za-z])"
_NO_SECRET = rb"[0-9a-fA-F-]++\Z|[A-Za-z_]\w{0,64}[.(\[]"

# A token begins where no word goes on, or after the %3D or the \n of an escaped text.
_ESCAPES = re.compile(rb"%[0-9A-Fa-f]{2}|\\[nrt]")
_EDGE = rb"(?:(?<![\w+-]\0)|(?<=%[0-9A-Fa-f][0-9A-Fa-f]\0)|(?<=\\[nrt]\0))"
_BLANKS = bytes(byte if re.match(rb"[\w+-]", bytes([byte])) else 32 for byte in range(256))


def _begins(literal: bytes) -> bytes:
    """A pattern for the literal where a token may begin; with the literal first it is fast."""
    quoted = re.escape(literal)
    return quoted + _EDGE.replace(rb"\0", quoted)


# Whose token it is, how it begins, what follows, and at least how much of it.
TOKENS: tuple[tuple[str, bytes, bytes, int], ...] = (
    ("age-key", b"AGE-SECRET-KEY-1", rb"[A-Z0-9]", 50),
    ("anthropic-key", b"sk-ant-", rb"[\w-]", 32),
    ("atlassian-token", b"ATATT3", rb"[\w=.-]", 100),
    ("databricks-token", b"dapi", rb"[a-f0-9]", 32),
    ("digitalocean-token", b"dop_v1_ doo_v1_ dor_v1_", rb"[a-f0-9]", 60),
    ("docker-token", b"dckr_pat_ dckr_oat_", rb"[\w-]", 20),
    ("figma-token", b"figd_", rb"[\w-]", 36),
    ("gcp-key", b"GOCSPX-", rb"[\w-]", 24),
    ("github-token", b"ghp_ gho_ ghu_ ghr_", rb"\w", 36),
    ("github-token", b"ghs_", rb"[\w.-]", 36),
    ("github-token", b"github_pat_", rb"\w", 50),
    ("gitlab-token", b"glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt-", rb"[\w.-]", 20),
    ("gitlab-token", b"glagent- glsoat- gloas- glffct-", rb"[\w.-]", 20),
    ("grafana-token", b"glsa_ glc_", rb"[\w+/=]", 32),
    ("groq-key", b"gsk_", rb"[A-Za-z0-9]", 40),
    ("heroku-key", b"HRKU-", rb"[\w-]", 36),
    ("huggingface-token", b"hf_", rb"[A-Za-z0-9]", 30),
    ("linear-key", b"lin_api_", rb"[A-Za-z0-9]", 32),
    ("netlify-token", b"nfp_", rb"[A-Za-z0-9]", 36),
    ("newrelic-key", b"NRAK-", rb"[A-Z0-9]", 27),
    ("notion-token", b"ntn_", rb"[A-Za-z0-9]", 40),
    ("npm-token", b"npm_", rb"[A-Za-z0-9]", 36),
    ("openai-key", b"sk-proj- sk-svcacct- sk-admin-", rb"[\w-]", 40),
    ("openai-key", b"sk-", rb"[A-Za-z0-9]", 32),
    ("openrouter-key", b"sk-or-v1-", rb"[a-f0-9]", 32),
    ("perplexity-key", b"pplx-", rb"[A-Za-z0-9]", 40),
    ("planetscale-token", b"pscale_tkn_ pscale_pw_", rb"[\w.-]", 32),
    ("postman-key", b"PMAK-", rb"[a-f0-9-]", 50),
    ("pypi-token", b"pypi-Ag", rb"[\w-]", 50),
    ("replicate-token", b"r8_", rb"[A-Za-z0-9]", 37),
    ("rubygems-key", b"rubygems_", rb"[a-f0-9]", 48),
    ("sentry-token", b"sntrys_ sntryu_", rb"[\w+/=]", 40),
    ("shopify-token", b"shpat_ shpca_ shppa_ shpss_", rb"[A-Fa-f0-9]", 32),
    ("slack-token", b"xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs-", rb"[\w-]", 16),
    ("slack-token", b"xapp-", rb"[\w-]", 40),
    ("stripe-key", b"sk_live_ sk_test_ rk_live_ rk_test_", rb"[A-Za-z0-9]", 16),
    ("stripe-key", b"whsec_", rb"[A-Za-z0-9+/=]", 24),
    ("supabase-token", b"sbp_", rb"[a-f0-9]", 40),
    ("tailscale-key", b"tskey-", rb"[\w-]", 24),
    ("xai-key", b"xai-", rb"[A-Za-z0-9]", 60),
)
# The same with more to say of what follows.
SHAPED_TOKENS: tuple[tuple[str, bytes, bytes], ...] = (
    ("aws-key", b"AKIA", rb"[A-Z2-7]{16}(?!\w)"),
    ("aws-key", b"ASIA", rb"[A-Z2-7]{16}(?!\w)"),
    ("gcp-key", b"AIza", rb"[\w-]{35}(?![\w-])"),
    ("jwt", b"eyJ", rb"[\w-]{17,}+\.[\w-]*+\.[\w-]{8,}+(?:\.[\w-]{8,}+){0,2}"),
)
TOKEN_SHAPES: tuple[Shape, ...] = (
    *(
        Shape(kind, start, _begins(start) + follows + b"{%d,}+" % least)
        for kind, starts, follows, least in TOKENS
        for start in starts.split()
    ),
    *(Shape(kind, start, _begins(start) + follows) for kind, start, follows in SHAPED_TOKENS),
)
_HEADS: dict[bytes, list[Shape]] = {}
for _shape in TOKEN_SHAPES:
    _HEADS.setdefault(_shape.hint[:_HEAD], []).append(_shape)

_GAP = rb"(?:\s|\\[nr])"
_IS = rb"""[\\"']{0,3}\s{0,4}[:=]\s{0,4}[\\"']{0,3}"""
_VALUE = rb"[a-z0-9._~+/=-]"
_HAS_DIGIT = rb"(?=[a-z._~+/=-]{0,40}[0-9])"
_NO_TEMPLATE = rb"(?![$%{<\[(*])"

# What names of secrets end in. In capitals the value may stand bare, otherwise in quotes: what
# follows `token = ` in a program is an expression.
_NAMES: tuple[tuple[bytes, bytes], ...] = (
    (b"pass", rb"pass(?:word|wd|phrase)"),
    (b"secret", rb"secret"),
    (b"token", rb"token"),
    (
        b"key",
        rb"key(?:(?<=api_key)|(?<=api-key)|(?<=apikey)|(?<=access_key)|(?<=accesskey)"
        rb"|(?<=secret_key)|(?<=secretkey)|(?<=private_key)|(?<=privatekey)|(?<=signing_key))",
    ),
)
_BARE = rb"""=["']?(?P<secret>""" + _NO_TEMPLATE + rb"""[^\s"'`;,&|)\\]{8,}+)"""
_QUOTED = rb"""\\?["']?\s{0,4}[:=]\s{0,4}\\?["'](?P<secret>""" + (
    _NO_TEMPLATE + rb"""[^\s"'\\]{8,}+)(?=\\?["'])"""
)

FRAMES: tuple[Shape, ...] = (
    Shape(
        "private-key",
        b"key",
        rb"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        + (_GAP + rb"{0,8}(?:[A-Za-z-]{2,20}: [^\n\\]{0,200}" + _GAP + rb"{1,8}){0,4}")
        + (rb"(?:[A-Za-z0-9+/]{16,}+={0,2}" + _GAP + rb"*+)++")  # cut off it is as secret
        + (rb"(?:(?:[A-Za-z0-9+/=]{1,15}" + _GAP + rb"{1,8}){0,2}-----END [A-Z0-9 ]{1,60}-----)?"),
    ),
    Shape("gcp-key", b"ya29.", _begins(b"ya29.") + rb"[\w-]{30,}+"),
    Shape("sendgrid-key", b"sg.", _begins(b"SG.") + rb"[\w-]{16,32}+\.[\w-]{32,}+"),
    Shape("vault-token", b"hvs.", _begins(b"hvs.") + rb"[\w-]{24,}+"),
    Shape(
        "aws-key",
        b"secret",
        rb"secret_?(?:access_?)?key" + _IS + rb"(?P<secret>[a-z0-9/+]{40})(?![\w/+=])",
        folds=True,
    ),
    Shape(
        "aws-key",
        b"token",
        rb"session_?token" + _IS + rb"(?P<secret>[a-z0-9/+=]{100,}+)",
        folds=True,
    ),
    Shape("azure-key", b"key", rb"AccountKey=(?P<secret>[\w+/]{40,}+={0,2})"),
    Shape("azure-key", b"key", rb"SharedAccessKey=(?P<secret>[\w+/]{40,}+={0,2})"),
    Shape("azure-key", b"sig=", rb"sig=(?<=[?&;]sig=)(?P<secret>[\w%+/]{40,}+={0,2})"),
    Shape("azure-key", b"q~", rb"(?<![\w~.-])[\w~.-]{3}[0-9]Q~[\w~.-]{31,}+"),
    Shape(
        "npm-token",
        b"auth",
        rb""":_auth(?:Token)?=(?P<secret>""" + _NO_TEMPLATE + rb"""[^\s"']{8,}+)""",
    ),
    Shape(
        "slack-webhook",
        b"hooks",
        rb"hooks\.slack\.com/[a-z]{1,16}/(?P<secret>[A-Za-z0-9/]{20,}+)",
    ),
    Shape("discord-webhook", b"hooks", rb"/api/webhooks/[0-9]{15,20}/(?P<secret>[\w-]{60,}+)"),
    Shape("telegram-token", b":aa", rb":(?P<secret>AA(?<=[0-9]{8}:AA)[\w-]{33})(?![\w-])"),
    Shape(
        "authorization",
        b"auth",
        rb"authorization" + _IS + rb"(?:basic|token)\s{1,4}(?P<secret>" + _VALUE + rb"{8,}+)",
        folds=True,
    ),
    Shape(
        "authorization",
        b"bearer",
        rb"bearer\s{1,4}(?P<secret>" + _HAS_DIGIT + _VALUE + rb"{16,}+)",
        folds=True,
    ),
    *(
        Shape(
            "authorization",
            hint,
            header + _IS + rb"(?P<secret>" + _HAS_DIGIT + _VALUE + rb"{16,}+)",
            folds=True,
        )
        for hint, header in ((b"key", rb"x-api-key"), (b"token", rb"x-auth-token"))
    ),
    Shape(
        "url-password",
        b"://",
        rb"""://[^\s/?#:@"'<>\\]{0,128}+:(?P<secret>"""
        + (_NO_TEMPLATE + rb"""[^\s/@"'<>\\]{1,256}+)@"""),
    ),
    *(
        Shape(
            "password",
            hint,
            rb"%b=(?:(?<=;%b=)|(?<=; %b=))(?P<secret>" % (name, name, name)
            + (_NO_TEMPLATE + rb"""[^\s;"']{4,}+)"""),
            folds=True,
        )
        for hint, name in ((b"pass", b"password"), (b"pwd=", b"pwd"))
    ),
    *(Shape("named-secret", hint, name.upper() + _BARE, is_named=True) for hint, name in _NAMES),
    *(
        Shape("named-secret", hint, name + _QUOTED, folds=True, is_named=True)
        for hint, name in _NAMES
    ),
)
_HINTS = tuple(dict.fromkeys(shape.hint for shape in FRAMES))
_ANY_HINT = re.compile(b"|".join(map(re.escape, _HINTS)))  # far faster than one after the other
