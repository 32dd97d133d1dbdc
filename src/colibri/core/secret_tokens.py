"""Secrets recognised by how they begin: whose they are, the beginning, and what follows.

A pattern is bounded: it matches at most REACH bytes, wherever it starts. A longer secret continues
with characters of `tail`, which are skipped one by one; so every text takes linear time.
"""

from binascii import b2a_base64
from typing import NamedTuple

REACH = 1024  # no pattern matches more bytes than this


class Shape(NamedTuple):
    """One way to recognise a secret; replaces the pattern's group `secret`, or the whole match."""

    kind: str
    hint: bytes  # every such secret contains it
    pattern: bytes
    tail: bytes = b""  # the character class that continues it
    folds: bool = False  # written in lower case, matches any case
    judge: str = ""  # a further condition: see secret_values.JUDGES


def begins(literal: bytes) -> bytes:
    """A pattern for the literal without a letter or digit before it; this form is fast."""
    quoted = literal.replace(b".", rb"\.")
    return quoted + b"(?<![A-Za-z0-9]" + quoted + b")"


WORD, HEX, ALNUM, BASE64 = rb"[\w-]", rb"[a-f0-9]", rb"[A-Za-z0-9]", rb"[A-Za-z0-9+/=]"
DOTTED = rb"\.?[\w-]"  # a final dot belongs to the sentence
# Whose token it is, how it begins, what follows, and how much at least.
TOKENS: tuple[tuple[str, bytes, bytes, int], ...] = (
    ("adafruit-key", b"aio_", ALNUM, 28),
    ("age-key", b"AGE-SECRET-KEY-1", rb"[A-Z0-9]", 50),
    ("anthropic-key", b"sk-ant-", WORD, 32),
    ("artifactory-key", b"AKCp cmVmdGtuOj", ALNUM, 50),
    ("atlassian-token", b"ATATT3 ATCTT3 ATSTT3", rb"[.=]?[\w-]", 100),
    ("atlassian-token", b"ATBB", ALNUM, 28),
    ("aws-key", b"ABSK", BASE64, 100),
    ("axiom-token", b"xaat- xapt-", rb"[a-f0-9-]", 36),
    ("brevo-key", b"xkeysib- xsmtpsib-", rb"[A-Za-z0-9-]", 64),
    ("buildkite-token", b"bkua_ bkat_ bkct_", ALNUM, 40),
    ("cerebras-key", b"csk-", ALNUM, 40),
    ("circleci-token", b"CCIPAT_ CCIPRJ_", rb"\w", 50),
    ("clojars-token", b"CLOJARS_", HEX, 60),
    ("cloudflare-token", b"cfut_ cfat_ cfk_", WORD, 40),
    ("cloudflare-token", b"v1.0-", rb"[a-f0-9-]", 150),
    ("contentful-token", b"CFPAT-", WORD, 40),
    ("databricks-token", b"dapi", HEX, 32),
    ("dbt-token", b"dbtc_ dbtu_", rb"[\w=-]", 36),
    ("deno-token", b"ddp_ ddo_ ddw_", ALNUM, 36),
    ("digitalocean-token", b"dop_v1_ doo_v1_ dor_v1_", HEX, 60),
    ("docker-token", b"dckr_pat_ dckr_oat_", WORD, 20),
    ("doppler-token", b"dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", DOTTED, 40),
    ("dropbox-token", b"sl.", DOTTED, 130),
    ("duffel-token", b"duffel_live_ duffel_test_", rb"[\w=-]", 40),
    ("e2b-key", b"e2b_", HEX, 40),
    ("easypost-key", b"EZAK EZTK", ALNUM, 54),
    ("elevenlabs-key", b"sk_", HEX, 48),
    ("figma-token", b"figd_ figo_ figor_", WORD, 36),
    ("firecrawl-key", b"fc-", HEX, 32),
    ("fly-token", b"fo1_ fm1r_ fm1a_ fm2_", rb"[\w+/=,-]", 40),
    ("frameio-token", b"fio-u-", WORD, 60),
    ("gcp-key", b"GOCSPX-", WORD, 24),
    ("gcp-key", b"ya29.", DOTTED, 30),
    ("gcp-key", b"AQ.Ab", WORD, 40),
    ("github-token", b"ghp_ gho_ ghu_ ghr_", rb"\w", 36),
    ("github-token", b"ghs_", DOTTED, 36),
    ("github-token", b"github_pat_", rb"\w", 50),
    ("gitlab-token", b"glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt-", DOTTED, 20),
    ("gitlab-token", b"glagent- glsoat- gloas- glffct- glwt-", DOTTED, 20),
    ("gitlab-token", b"GR1348941", WORD, 20),
    ("grafana-token", b"glsa_ glc_", rb"[\w+/=]", 32),
    ("grafana-token", b"eyJrIjoi", ALNUM, 64),
    ("groq-key", b"gsk_", ALNUM, 40),
    ("heroku-key", b"HRKU-", WORD, 36),
    ("honeycomb-key", b"hcaik_ hcxik_ hcalk_ hcamk_", ALNUM, 40),
    ("huggingface-token", b"hf_ api_org_", ALNUM, 30),
    ("infracost-key", b"ico-", ALNUM, 32),
    ("jina-key", b"jina_", WORD, 50),
    ("langfuse-key", b"sk-lf-", rb"[a-f0-9-]", 36),
    ("langsmith-key", b"lsv2_pt_ lsv2_sk_", rb"\w", 40),
    ("linear-key", b"lin_api_ lin_oauth_", ALNUM, 32),
    ("mailgun-key", b"key-", HEX, 32),
    ("mem0-key", b"m0-", ALNUM, 40),
    ("mongodb-key", b"mdb_sa_sk_", WORD, 30),
    ("n8n-key", b"n8n_api_", DOTTED, 40),
    ("neon-key", b"napi_", ALNUM, 40),
    ("netlify-token", b"nfp_ nfc_ nfo_ nfb_ nfu_", ALNUM, 36),
    ("newrelic-key", b"NRAK- NRRA-", ALNUM, 27),
    ("newrelic-key", b"NRII- NRJS-", WORD, 19),
    ("notion-token", b"ntn_ secret_", ALNUM, 40),
    ("npm-token", b"npm_", ALNUM, 36),
    ("nuget-key", b"oy2", rb"[a-z0-9]", 43),
    ("nvidia-key", b"nvapi-", WORD, 60),
    ("onepassword-token", b"ops_eyJ", rb"[\w=]", 100),
    ("openai-key", b"sk-proj- sk-svcacct- sk-admin- sk-None-", WORD, 40),
    ("openai-key", b"sk-", ALNUM, 32),
    ("openrouter-key", b"sk-or-v1-", HEX, 32),
    ("perplexity-key", b"pplx-", ALNUM, 40),
    ("pinecone-key", b"pcsk_", rb"\w", 60),
    ("planetscale-token", b"pscale_tkn_ pscale_pw_ pscale_oauth_", DOTTED, 32),
    ("posthog-key", b"phx_", ALNUM, 40),
    ("postman-key", b"PMAK-", rb"[a-f0-9-]", 50),
    ("prefect-key", b"pnu_ pnb_", ALNUM, 36),
    ("pulumi-token", b"pul-", HEX, 40),
    ("pypi-token", b"pypi-Ag", WORD, 50),
    ("readme-key", b"rdme_", rb"[a-z0-9]", 70),
    ("render-key", b"rnd_", ALNUM, 28),
    ("replicate-token", b"r8_", ALNUM, 37),
    ("rubygems-key", b"rubygems_", HEX, 48),
    ("sentry-token", b"sntrys_ sntryu_ sntrya_ sntryi_", rb"[\w+/=]", 40),
    ("shippo-token", b"shippo_live_ shippo_test_", HEX, 40),
    ("shopify-token", b"shpat_ shpca_ shppa_ shpss_ shpua_", rb"[A-Fa-f0-9]", 32),
    ("slack-token", b"xapp- xwfp-", WORD, 40),
    ("sonar-token", b"squ_ sqp_ sqa_", HEX, 40),
    ("sourcegraph-token", b"sgp_ sgd_ slk_", rb"[a-f0-9_]", 40),
    ("square-token", b"sq0atp- sq0csp-", WORD, 22),
    ("stripe-key", b"sk_live_ sk_test_ rk_live_ rk_test_", ALNUM, 16),
    ("stripe-key", b"whsec_", rb"[A-Za-z0-9+/=]", 24),
    ("stytch-key", b"secret-live- secret-test-", rb"[\w=-]", 36),
    ("supabase-token", b"sbp_", rb"[a-f0-9_]", 40),
    ("supabase-token", b"sb_secret_", WORD, 24),
    ("tailscale-key", b"tskey-", WORD, 24),
    ("tavily-key", b"tvly-", WORD, 28),
    ("together-key", b"tgp_v1_", WORD, 40),
    ("trello-token", b"ATTA", rb"[a-fA-F0-9]", 60),
    ("typeform-token", b"tfp_", WORD, 40),
    ("vault-token", b"hvs. hvb. hvr.", WORD, 24),
    ("vercel-token", b"vercel_blob_rw_ vcp_ vci_ vca_ vcr_ vck_", rb"\w", 24),
    ("wakatime-key", b"waka_", rb"[a-f0-9-]", 36),
    ("xai-key", b"xai-", ALNUM, 60),
)
# The same with a longer pattern for what follows; then its tail.
SHAPED_TOKENS: tuple[tuple[str, bytes, bytes, bytes], ...] = (
    ("airtable-token", b"pat", rb"[A-Za-z0-9]{14}\.[a-f0-9]{60}", HEX),
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
    ("mapbox-token", b"sk.eyJ", rb"[\w-]{40,512}+\.[\w-]{20}", WORD),
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
        ("slack-token", start, rb"(?=[a-zA-Z-]{0,40}[0-9])[\w-]{16}", WORD)
        for start in b"xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs-".split()
    ),
    ("resend-key", b"re_", rb"[A-Za-z0-9]{6,10}_[A-Za-z0-9]{22}", ALNUM),
    ("sendgrid-key", b"SG.", rb"[\w-]{16,32}+\.[\w-]{32}", WORD),
    (
        "terraform-token",
        b"atlasv1.",
        rb"(?<=[A-Za-z0-9]{14}\.atlasv1\.)(?P<secret>[\w=-]{60})",
        rb"[\w=-]",
    ),
    ("twilio-key", b"SK", rb"[a-f0-9]{32}(?!\w)", b""),
)
# The first line of a private key in base64, as in a kubeconfig.
_KEYS_IN_BASE64 = tuple(
    b2a_base64(b"-----BEGIN %bPRIVATE KEY-----" % kind)[:36]
    for kind in (b"", b"RSA ", b"EC ", b"DSA ", b"OPENSSH ", b"ENCRYPTED ")
)
TOKEN_SHAPES: tuple[Shape, ...] = (
    *(
        Shape(kind, start, begins(start) + b"(?:%b){%d}" % (follows, least), follows, judge="token")
        for kind, starts, follows, least in TOKENS
        for start in starts.split()
    ),
    *(
        Shape(kind, start, begins(start) + follows, tail, judge="token")
        for kind, start, follows, tail in SHAPED_TOKENS
    ),
    *(
        Shape("private-key", start, begins(start) + BASE64 + b"{40}", BASE64)
        for start in _KEYS_IN_BASE64
    ),
)
