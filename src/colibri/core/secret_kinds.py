"""The shapes of secrets: whose they are, how they begin, what follows. Owns no search.

TOKENS begin in a way of their own. FRAMES tell by what stands around it that a secret stands there.
A pattern is bounded: it matches at most REACH bytes, wherever it starts. What goes on after it is
`tail`, characters that are passed over one by one; so no text takes more than linear time.
"""

from binascii import b2a_base64
from typing import NamedTuple

REACH = 1024  # no pattern matches more bytes than this
_VALUE = 160  # bytes of a value that has to be judged


class Shape(NamedTuple):
    """One way to know a secret. Replaced is the pattern's group `secret`, or all of it."""

    kind: str
    hint: bytes  # a text without it holds no such secret
    pattern: bytes
    tail: bytes = b""  # the class of what belongs to it as long as it goes on
    folds: bool = False  # it is in lower case and stands for any case
    judge: str = ""  # what else is asked of it: see secret_values.JUDGES


def _begins(literal: bytes) -> bytes:
    """A pattern for the literal with no letter or digit before it; so written it is fast."""
    quoted = literal.replace(b".", rb"\.")
    return quoted + b"(?<![A-Za-z0-9]" + quoted + b")"


_WORD, _HEX, _ALNUM, _BASE64 = rb"[\w-]", rb"[a-f0-9]", rb"[A-Za-z0-9]", rb"[A-Za-z0-9+/=]"
_DOTTED = rb"\.?[\w-]"  # no dot at its end: that is the sentence's
# Whose token it is, how it begins, what follows, and at least how much of it.
TOKENS: tuple[tuple[str, bytes, bytes, int], ...] = (
    ("adafruit-key", b"aio_", _ALNUM, 28),
    ("age-key", b"AGE-SECRET-KEY-1", rb"[A-Z0-9]", 50),
    ("anthropic-key", b"sk-ant-", _WORD, 32),
    ("artifactory-key", b"AKCp cmVmdGtuOj", _ALNUM, 50),
    ("atlassian-token", b"ATATT3 ATCTT3 ATSTT3", rb"[.=]?[\w-]", 100),
    ("atlassian-token", b"ATBB", _ALNUM, 28),
    ("aws-key", b"ABSK", _BASE64, 100),
    ("axiom-token", b"xaat- xapt-", rb"[a-f0-9-]", 36),
    ("brevo-key", b"xkeysib- xsmtpsib-", rb"[A-Za-z0-9-]", 64),
    ("buildkite-token", b"bkua_ bkat_ bkct_", _ALNUM, 40),
    ("cerebras-key", b"csk-", _ALNUM, 40),
    ("circleci-token", b"CCIPAT_ CCIPRJ_", rb"\w", 50),
    ("clojars-token", b"CLOJARS_", _HEX, 60),
    ("cloudflare-token", b"cfut_ cfat_ cfk_", _WORD, 40),
    ("cloudflare-token", b"v1.0-", rb"[a-f0-9-]", 150),
    ("contentful-token", b"CFPAT-", _WORD, 40),
    ("databricks-token", b"dapi", _HEX, 32),
    ("dbt-token", b"dbtc_ dbtu_", rb"[\w=-]", 36),
    ("deno-token", b"ddp_ ddo_ ddw_", _ALNUM, 36),
    ("digitalocean-token", b"dop_v1_ doo_v1_ dor_v1_", _HEX, 60),
    ("docker-token", b"dckr_pat_ dckr_oat_", _WORD, 20),
    ("doppler-token", b"dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", _DOTTED, 40),
    ("dropbox-token", b"sl.", _DOTTED, 130),
    ("duffel-token", b"duffel_live_ duffel_test_", rb"[\w=-]", 40),
    ("e2b-key", b"e2b_", _HEX, 40),
    ("easypost-key", b"EZAK EZTK", _ALNUM, 54),
    ("elevenlabs-key", b"sk_", _HEX, 48),
    ("figma-token", b"figd_ figo_ figor_", _WORD, 36),
    ("firecrawl-key", b"fc-", _HEX, 32),
    ("fly-token", b"fo1_ fm1r_ fm1a_ fm2_", rb"[\w+/=,-]", 40),
    ("frameio-token", b"fio-u-", _WORD, 60),
    ("gcp-key", b"GOCSPX-", _WORD, 24),
    ("gcp-key", b"ya29.", _DOTTED, 30),
    ("gcp-key", b"AQ.Ab", _WORD, 40),
    ("github-token", b"ghp_ gho_ ghu_ ghr_", rb"\w", 36),
    ("github-token", b"ghs_", _DOTTED, 36),
    ("github-token", b"github_pat_", rb"\w", 50),
    ("gitlab-token", b"glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt-", _DOTTED, 20),
    ("gitlab-token", b"glagent- glsoat- gloas- glffct- glwt-", _DOTTED, 20),
    ("gitlab-token", b"GR1348941", _WORD, 20),
    ("grafana-token", b"glsa_ glc_", rb"[\w+/=]", 32),
    ("grafana-token", b"eyJrIjoi", _ALNUM, 64),
    ("groq-key", b"gsk_", _ALNUM, 40),
    ("heroku-key", b"HRKU-", _WORD, 36),
    ("honeycomb-key", b"hcaik_ hcxik_ hcalk_ hcamk_", _ALNUM, 40),
    ("huggingface-token", b"hf_ api_org_", _ALNUM, 30),
    ("infracost-key", b"ico-", _ALNUM, 32),
    ("jina-key", b"jina_", _WORD, 50),
    ("langfuse-key", b"sk-lf-", rb"[a-f0-9-]", 36),
    ("langsmith-key", b"lsv2_pt_ lsv2_sk_", rb"\w", 40),
    ("linear-key", b"lin_api_ lin_oauth_", _ALNUM, 32),
    ("mailgun-key", b"key-", _HEX, 32),
    ("mem0-key", b"m0-", _ALNUM, 40),
    ("mongodb-key", b"mdb_sa_sk_", _WORD, 30),
    ("n8n-key", b"n8n_api_", _DOTTED, 40),
    ("neon-key", b"napi_", _ALNUM, 40),
    ("netlify-token", b"nfp_ nfc_ nfo_ nfb_ nfu_", _ALNUM, 36),
    ("newrelic-key", b"NRAK- NRRA-", _ALNUM, 27),
    ("newrelic-key", b"NRII- NRJS-", _WORD, 19),
    ("notion-token", b"ntn_ secret_", _ALNUM, 40),
    ("npm-token", b"npm_", _ALNUM, 36),
    ("nuget-key", b"oy2", rb"[a-z0-9]", 43),
    ("nvidia-key", b"nvapi-", _WORD, 60),
    ("onepassword-token", b"ops_eyJ", rb"[\w=]", 100),
    ("openai-key", b"sk-proj- sk-svcacct- sk-admin- sk-None-", _WORD, 40),
    ("openai-key", b"sk-", _ALNUM, 32),
    ("openrouter-key", b"sk-or-v1-", _HEX, 32),
    ("perplexity-key", b"pplx-", _ALNUM, 40),
    ("pinecone-key", b"pcsk_", rb"\w", 60),
    ("planetscale-token", b"pscale_tkn_ pscale_pw_ pscale_oauth_", _DOTTED, 32),
    ("posthog-key", b"phx_", _ALNUM, 40),
    ("postman-key", b"PMAK-", rb"[a-f0-9-]", 50),
    ("prefect-key", b"pnu_ pnb_", _ALNUM, 36),
    ("pulumi-token", b"pul-", _HEX, 40),
    ("pypi-token", b"pypi-Ag", _WORD, 50),
    ("readme-key", b"rdme_", rb"[a-z0-9]", 70),
    ("render-key", b"rnd_", _ALNUM, 28),
    ("replicate-token", b"r8_", _ALNUM, 37),
    ("rubygems-key", b"rubygems_", _HEX, 48),
    ("sentry-token", b"sntrys_ sntryu_ sntrya_ sntryi_", rb"[\w+/=]", 40),
    ("shippo-token", b"shippo_live_ shippo_test_", _HEX, 40),
    ("shopify-token", b"shpat_ shpca_ shppa_ shpss_ shpua_", rb"[A-Fa-f0-9]", 32),
    ("slack-token", b"xapp- xwfp-", _WORD, 40),
    ("sonar-token", b"squ_ sqp_ sqa_", _HEX, 40),
    ("sourcegraph-token", b"sgp_ sgd_ slk_", rb"[a-f0-9_]", 40),
    ("square-token", b"sq0atp- sq0csp-", _WORD, 22),
    ("stripe-key", b"sk_live_ sk_test_ rk_live_ rk_test_", _ALNUM, 16),
    ("stripe-key", b"whsec_", rb"[A-Za-z0-9+/=]", 24),
    ("stytch-key", b"secret-live- secret-test-", rb"[\w=-]", 36),
    ("supabase-token", b"sbp_", rb"[a-f0-9_]", 40),
    ("supabase-token", b"sb_secret_", _WORD, 24),
    ("tailscale-key", b"tskey-", _WORD, 24),
    ("tavily-key", b"tvly-", _WORD, 28),
    ("together-key", b"tgp_v1_", _WORD, 40),
    ("trello-token", b"ATTA", rb"[a-fA-F0-9]", 60),
    ("typeform-token", b"tfp_", _WORD, 40),
    ("vault-token", b"hvs. hvb. hvr.", _WORD, 24),
    ("vercel-token", b"vercel_blob_rw_ vcp_ vci_ vca_ vcr_ vck_", rb"\w", 24),
    ("wakatime-key", b"waka_", rb"[a-f0-9-]", 36),
    ("xai-key", b"xai-", _ALNUM, 60),
)
# The same with more to say of what follows; then its tail.
SHAPED_TOKENS: tuple[tuple[str, bytes, bytes, bytes], ...] = (
    ("airtable-token", b"pat", rb"[A-Za-z0-9]{14}\.[a-f0-9]{60}", _HEX),
    *(
        ("aws-key", start, rb"[A-Z2-7]{16}(?!\w)", b"")
        for start in (b"AKIA", b"ASIA", b"ABIA", b"ACCA")
    ),
    ("alibaba-key", b"LTAI", rb"[A-Za-z0-9]{16,26}+(?![\w-])", b""),
    ("crates-token", b"cio", rb"[A-Za-z0-9]{32}(?!\w)", b""),
    ("dynatrace-token", b"dt0c01.", rb"[A-Z0-9]{24}\.[A-Z0-9]{60}", rb"[A-Z0-9]"),
    ("dynatrace-token", b"dt0s16.", rb"[A-Z0-9]{8}\.[A-Z0-9]{60}", rb"[A-Z0-9]"),
    ("flutterwave-key", b"FLWSECK", rb"(?:_TEST|_LIVE)?-[A-Za-z0-9-]{12}", rb"[A-Za-z0-9-]"),
    ("gcp-key", b"AIza", rb"[\w-]{35}(?![\w-])", b""),
    *(
        ("hubspot-token", start, rb"[0-9]-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}", b"")
        for start in (b"pat-na", b"pat-eu", b"pat-ap")
    ),
    ("jwt", b"eyJ", rb"[\w-]{17,512}+\.(?:[\w-]{8}|\.[\w-]{8})", rb"\.?[\w-]"),
    ("mapbox-token", b"sk.eyJ", rb"[\w-]{40,512}+\.[\w-]{20}", _WORD),
    (
        "onepassword-key",
        b"A3-",
        rb"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
        b"",
    ),
    *(
        ("plaid-token", start, rb"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}", b"")
        for start in (b"access-sandbox-", b"access-development-", b"access-production-")
    ),
    *(
        ("slack-token", start, rb"(?=[a-zA-Z-]{0,40}[0-9])[\w-]{16}", _WORD)
        for start in b"xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs-".split()
    ),
    ("resend-key", b"re_", rb"[A-Za-z0-9]{6,10}_[A-Za-z0-9]{22}", _ALNUM),
    ("sendgrid-key", b"SG.", rb"[\w-]{16,32}+\.[\w-]{32}", _WORD),
    ("terraform-token", b"atlasv1.", rb"(?<=[A-Za-z0-9]{14}\.atlasv1\.)(?P<secret>[\w=-]{60})", rb"[\w=-]"),
    ("twilio-key", b"SK", rb"[a-f0-9]{32}(?!\w)", b""),
)
# What base64 makes of the first line of a private key, as in a kubeconfig.
_KEYS_IN_BASE64 = tuple(
    b2a_base64(b"-----BEGIN %bPRIVATE KEY-----" % kind)[:36]
    for kind in (b"", b"RSA ", b"EC ", b"DSA ", b"OPENSSH ", b"ENCRYPTED ")
)
TOKEN_SHAPES: tuple[Shape, ...] = (
    *(
        Shape(kind, start, _begins(start) + b"(?:%b){%d}" % (follows, least), follows, judge="token")
        for kind, starts, follows, least in TOKENS
        for start in starts.split()
    ),
    *(
        Shape(kind, start, _begins(start) + follows, tail, judge="token")
        for kind, start, follows, tail in SHAPED_TOKENS
    ),
    *(
        Shape("private-key", start, _begins(start) + _BASE64 + b"{40}", _BASE64)
        for start in _KEYS_IN_BASE64
    ),
)

_QUOTE, _BLANK, _EQUALS = rb"""["'`]""", rb"[ \t]", rb"(?:={1,3}>?|:=?|>)"
_IS = b"%b?%b{0,4}%b%b{0,4}%b?" % (_QUOTE, _BLANK, _EQUALS, _BLANK, _QUOTE)
_GAP = rb"[ +]"
_TEXT = rb"[a-z0-9._~+/=-]"
_NO_BREAK = rb"""[^\s"'`<>]"""
_BARE = rb"""[^\s"'`<>;,&|()]"""
_UNSIGNED = rb"""[^\s"'`<>;,&|()=]"""  # so that a=a=a= is soon over


def _secret(characters: bytes, least: int, most: int = _VALUE) -> bytes:
    return b"(?P<secret>%b{%d,%d}+)" % (characters, least, most)


# What names of secrets end in, after something that tells which key.
_KEY_OF = (
    b"api access secret private signing encryption master auth account app deploy license service"
    b" admin shared consumer storage client session webhook jwt hmac"
).split()
_NAMES: tuple[tuple[bytes, bytes], ...] = (
    (b"pass", rb"pass(?:word|wd|phrase|code|(?<=_pass)|(?<=-pass)|(?<=dbpass))"),
    (b"pwd", rb"pwd(?:(?<=_pwd)|(?<=-pwd)|(?<=;pwd)|(?<=; pwd)|(?<=dbpwd))"),
    (b"secret", rb"secret"),
    (b"token", rb"token"),
    (
        b"key",
        b"key(?:"
        + b"|".join(rb"(?<=%b%bkey)" % (of, joint) for of in _KEY_OF for joint in (b"", b"[_-]"))
        + b"|(?<=secret_)key_base|(?<=api )key)",
    ),
    (b"secret", rb"secret_key_base"),
)
_NAMED = (
    b"(?P<close>%b?)(?P<is>%b{0,4}%b%b{0,4}|[ =])" % (_QUOTE, _BLANK, _EQUALS, _BLANK)
    + b"(?:%b%b(?=%b|(?<=\\S{%d}))|(?P<bare>%b{4,%d}+={0,2}))"
    % (_QUOTE, _secret(_NO_BREAK, 4).replace(b"secret", b"quoted"), _QUOTE, _VALUE, _UNSIGNED, _VALUE)
)

FRAMES: tuple[Shape, ...] = (
    Shape(
        "private-key",
        b"private",
        rb"-{4,5} ?BEGIN%b(?:[A-Z0-9]{2,12}%b){0,3}PRIVATE%bKEY(?:%bBLOCK)? ?-{4,5}"
        % (_GAP, _GAP, _GAP, _GAP),
        judge="PEM",
    ),
    Shape("private-key", b"private", rb"Private-Lines: [0-9]{1,4}", judge="PuTTY"),
    Shape(
        "aws-key",
        b"secret",
        rb"secret_?(?:access_?)?key" + _IS + rb"(?P<secret>[a-z0-9/+]{40})(?![\w/+=])",
        folds=True,
    ),
    Shape(
        "aws-key",
        b"token",
        rb"session_?token" + _IS + rb"(?P<secret>[a-z0-9/+=%]{100})",
        rb"[a-z0-9/+=%]",
        folds=True,
    ),
    *(
        Shape("azure-key", b"key", name + _EQUALS + _secret(rb"[\w+/%]", 40), rb"[\w+/=%]")
        for name in (b"AccountKey", b"SharedAccessKey")
    ),
    Shape(
        "azure-key", b"sig=", rb"sig=(?<=[?&;]sig=)" + _secret(rb"[\w%+/]", 40), rb"[\w%+/=]"
    ),
    Shape("azure-key", b"q~", rb"(?<![A-Za-z0-9~.])[\w~.-]{3}[0-9]Q~[\w~.-]{31}", rb"[\w~.-]"),
    Shape("gcp-key", b"1//0", _begins(b"1//0") + rb"[\w-]{30}", _WORD),
    Shape("openshift-token", b"sha256~", rb"sha256~[\w-]{43}(?![\w-])"),
    Shape(
        "npm-token",
        b"auth",
        rb":_auth(?:token)?=" + _secret(rb"""[^\s"']""", 8),
        folds=True,
        judge="value",
    ),
    Shape(
        "slack-webhook",
        b"hooks",
        rb"hooks\.slack\.com/[a-z]{1,16}/(?P<secret>[A-Za-z0-9/]{20})",
        rb"[A-Za-z0-9/]",
    ),
    Shape(
        "discord-webhook",
        b"hooks",
        rb"/api/webhooks/[0-9]{15,20}/(?P<secret>[\w-]{60})",
        _WORD,
    ),
    Shape("telegram-token", b":aa", rb":(?P<secret>AA(?<=[0-9]{8}:AA)[\w-]{33})(?![\w-])"),
    Shape(
        "authorization",
        b"auth",
        rb"authorization%b(?:basic|token|bearer|apikey|api-key|key|ssws|bot)%b{1,4}" % (_IS, _BLANK)
        + _secret(_TEXT, 8),
        _TEXT,
        folds=True,
        judge="value",
    ),
    Shape(
        "authorization",
        b"bearer",
        rb"bearer%b{1,4}" % _BLANK + _secret(_TEXT, 16),
        _TEXT,
        folds=True,
        judge="no words",
    ),
    *(
        Shape(
            "authorization", hint, header + _IS + _secret(_TEXT, 16), _TEXT, True, judge="no words"
        )
        for hint, header in (
            (b"key", rb"x-api-key"),
            (b"token", rb"x-auth-token"),
            (b"auth", rb"authorization"),
        )
    ),
    Shape(
        "url-password",
        b"://",
        rb"""://[^\s/?#:"'<>]{0,128}+:(?![0-9]{1,5}[/?#])(?P<secret>[^\s/"'<>]{1,256})@""",
        judge="value",
    ),
    *(
        Shape(
            "password",
            hint,
            rb"%b=(?:(?<=;%b=)|(?<=; %b=))" % (name, name, name) + _secret(rb"""[^\s;"']""", 4),
            folds=True,
            judge="value",
        )
        for hint, name in ((b"pass", b"password"), (b"pwd", b"pwd"))
    ),
    Shape(
        "password",
        b"curl",
        rb"curl [^\n]{0,200}?-u[ =]?%b?[^\s:\"']{1,64}:" % _QUOTE + _secret(_NO_BREAK, 3),
        folds=True,
        judge="value",
    ),
    *(Shape("named-secret", hint, name + _NAMED, _BARE, True, "named") for hint, name in _NAMES),
)
# Where one of the signs is, the hints of frames are worth looking for.
HINTS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    ((":", "=", ">", "--"), ("pass", "pwd", "secret", "token", "key", "auth")),
    (("//",), ("://", "1//0", "hooks")),
    (("~",), ("q~", "sha256~")),
    (("-",), ("private", "curl")),
    (("=",), ("sig=",)),
    ((":",), (":aa",)),
    (("",), ("bearer",)),
)
