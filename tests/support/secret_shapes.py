"""A corpus of our own: real shapes of secrets.

Written from the formats that their makers publish, not from our tables. SHAPES: name -> (text, the
part that must go, its kind). A spec says how a token looks: `ghp_<A30>` is ghp_ and 30 letters or
digits. Nothing here is a secret: the same seed makes the same noise, and no token stands in the
repository as a whole.
"""

import base64
import hmac
import json
import string
import uuid
import zlib
from random import Random

_LETTERS = {
    "A": string.ascii_letters + string.digits,
    "L": string.ascii_letters,
    "l": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "B": string.ascii_uppercase + "234567",
    "d": string.digits,
    "h": "0123456789abcdef",
    "w": string.ascii_letters + string.digits + "-_",
    "b": string.ascii_letters + string.digits + "+/",
}
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def _noise(random: Random, letters: str, count: int) -> str:
    made = random.choices(letters, k=count)
    if len(letters) > 60:  # of a long one each sort of letter is there; none ends in a mark
        made[0], made[-1] = "k", "Z"
    return "".join(made)


def _checksum(text: str) -> str:
    """As GitHub and npm have it: CRC-32 in base 62."""
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


def made(spec: str, random: Random) -> str:
    """A token of a spec: <A30>, <uuid>, <crc> for the checksum of what stands before it."""
    token = ""
    for part in spec.replace(">", "<").split("<")[::1]:
        is_field = part and (
            part in ("uuid", "crc") or (part[0] in _LETTERS and part[1:].isdigit())
        )
        if not is_field or spec.find(f"<{part}>") < 0:
            token += part
        elif part == "uuid":
            token += str(uuid.UUID(int=random.getrandbits(128), version=4))
        elif part == "crc":
            token += _checksum(token.rpartition("_")[2])
        else:
            token += _noise(random, _LETTERS[part[0]], int(part[1:]))
    return token


_TOKENS = """
adafruit-key aio_<A28>
age-key AGE-SECRET-KEY-1<U58>
airtable-token pat<A14>.<h64>
alibaba-key LTAI5t<A18>
anthropic-key sk-ant-api03-<w93>AA sk-ant-admin01-<w93>AA sk-ant-oat01-<w93>AA sk-ant-sid01-<w86>
artifactory-key AKCp<A69> cmVmdGtuOj<A54>
atlassian-token ATATT3xFfGF0<w160>=<U8> ATCTT3xFfGN0<w160>=<U8> ATBB<A32>
aws-key AKIA<B16> ASIA<B16> ABIA<B16> ACCA<B16> ABSK<b130>
axiom-token xaat-<uuid> xapt-<uuid>
azure-key <A3>8Q~<w34> <w3>7Q~<A31>.<A2>
brevo-key xkeysib-<h64>-<A16> xsmtpsib-<h64>-<A16>
buildkite-token bkua_<h40>
cerebras-key csk-<l48>
circleci-token CCIPAT_<A22>_<h40> CCIPRJ_<A22>_<h40>
clojars-token CLOJARS_<h60>
cloudflare-token v1.0-<h24>-<h146> cfut_<A40><h8> cfat_<A40><h8>
contentful-token CFPAT-<w43>
crates-token cio<A32>
databricks-token dapi<h32> dapi<h32>-2
dbt-token dbtc_<A40> dbtu_<A40>
deno-token ddp_<A36> ddo_<A36>
digitalocean-token dop_v1_<h64> doo_v1_<h64> dor_v1_<h64>
docker-token dckr_pat_<w27> dckr_oat_<w32>
doppler-token dp.pt.<A43> dp.st.prd.<A43> dp.ct.<A43> dp.sa.<A43> dp.scim.<A43> dp.audit.<A43>
dropbox-token sl.<w140> sl.u.<w1200>
duffel-token duffel_live_<w43> duffel_test_<w43>
dynatrace-token dt0c01.<U24>.<U64> dt0s16.<U8>.<U64>
e2b-key e2b_<h40>
easypost-key EZAK<A54> EZTK<A54>
elevenlabs-key sk_<h48>
figma-token figd_<w40> figo_<w40> figor_<w40>
firecrawl-key fc-<h32>
flutterwave-key FLWSECK_TEST-<h32>-X FLWSECK-<h32>-X
fly-token fo1_<w43> fm2_<b200> fm1r_<b180>
frameio-token fio-u-<w64>
gcp-key AIza<w35> GOCSPX-<w28> ya29.a0<w160> ya29.c.<w200> 1//0<w60> AQ.Ab8R<w46>
github-token ghp_<A30><crc> gho_<A30><crc> ghu_<A30><crc> ghs_<A30><crc> ghr_<A30><crc>
github-token github_pat_<A22>_<A59> ghs_<w80>.<w60>.<w43>
gitlab-token glpat-<w20> glpat-<w27>.01.<l9> gldt-<w20> glrt-<w20> glrt-t1_<w20> glrtr-<w20>
gitlab-token glcbt-64_<w20> glptt-<h40> glft-<w20> glimt-<w25> glagent-<w50> glsoat-<w20>
gitlab-token gloas-<h64> glffct-<w20> glwt-<w24> GR1348941<w20>
grafana-token glsa_<A32>_<h8> glc_<b60> eyJrIjoi<A80>
groq-key gsk_<A52>
heroku-key HRKU-AA<w58> HRKU-<uuid>
honeycomb-key hcaik_<l58> hcxik_<l58>
hubspot-token pat-na1-<uuid> pat-eu1-<uuid>
huggingface-token hf_<L34> api_org_<L34>
infracost-key ico-<A32>
jina-key jina_<A60>
langfuse-key sk-lf-<uuid>
langsmith-key lsv2_pt_<h32>_<h10> lsv2_sk_<h32>_<h10>
linear-key lin_api_<A40> lin_oauth_<h64>
mailgun-key key-<h32>
mapbox-token sk.eyJ<A80>.<w22>
mem0-key m0-<A40>
mongodb-key mdb_sa_sk_<w40>
neon-key napi_<l64>
netlify-token nfp_<A36> nfc_<A36> nfo_<A36> nfu_<A36>
newrelic-key NRAK-<U27> NRII-<w32> NRJS-<h19> NRRA-<h42>
notion-token ntn_<d11><A35> secret_<A43>
npm-token npm_<A30><crc>
nuget-key oy2<l43>
nvidia-key nvapi-<w64>
onepassword-key A3-<U6>-<U11>-<U5>-<U5>-<U5> A3-<U6>-<U6>-<U5>-<U5>-<U5>-<U5>
onepassword-token ops_eyJ<A300>
openai-key sk-<A20>T3BlbkFJ<A20> sk-proj-<w74>T3BlbkFJ<w74> sk-svcacct-<w74>T3BlbkFJ<w74>
openai-key sk-admin-<w58>T3BlbkFJ<w58> sk-<h32> sk-None-<A48>
openrouter-key sk-or-v1-<h64>
openshift-token sha256~<w43>
perplexity-key pplx-<A48>
pinecone-key pcsk_<A6>_<A63>
plaid-token access-sandbox-<uuid> access-production-<uuid>
planetscale-token pscale_tkn_<w43> pscale_pw_<w43> pscale_oauth_<w43>
posthog-key phx_<A43>
postman-key PMAK-<h24>-<h34>
prefect-key pnu_<A36> pnb_<A36>
pulumi-token pul-<h40>
pypi-token pypi-AgEIcHlwaS5vcmc<w160> pypi-AgENdGVzdC5weXBpLm9yZw<w150>
readme-key rdme_<l70>
render-key rnd_<A28>
replicate-token r8_<A37>
resend-key re_<A8>_<A24>
rubygems-key rubygems_<h48>
sendgrid-key SG.<w22>.<w43>
sentry-token sntrys_eyJ<A120>_<A43> sntryu_<h64>
shippo-token shippo_live_<h40> shippo_test_<h40>
shopify-token shpat_<h32> shpca_<h32> shppa_<h32> shpss_<h32>
slack-token xoxb-<d12>-<d13>-<A24> xoxp-<d12>-<d12>-<d13>-<h32> xoxa-2-<d12>-<d12>-<d12>-<h32>
slack-token xoxe.xoxp-1-<A160> xoxe-1-<A140> xoxs-<d12>-<d12>-<d12>-<h10> xoxc-<d12>-<d12>-<h64>
slack-token xoxd-<A30>4<A90> xapp-1-<U11>-<d13>-<h64> xoxr-<d12>-<A24> xoxo-<d12>-<h24>
sonar-token squ_<h40> sqp_<h40> sqa_<h40>
sourcegraph-token sgp_<h16>_<h40> sgp_<h40> sgd_<h64> slk_<h64>
square-token sq0atp-<w22> sq0csp-<w43>
stripe-key sk_live_<A24> sk_test_<A99> rk_live_<A24> rk_test_<A99> whsec_<A32>
stytch-key secret-live-<w36>= secret-test-<w36>=
supabase-token sbp_<h40> sb_secret_<w22>_<A8>
tailscale-key tskey-auth-<A11>CNTRL-<A32> tskey-api-<A11>CNTRL-<A32> tskey-client-<A11>-<A32>
tavily-key tvly-<A32> tvly-dev-<A32>
terraform-token <A14>.atlasv1.<w67>
together-key tgp_v1_<w43>
trello-token ATTA<h64><h8>
twilio-key SK<h32>
typeform-token tfp_<w44>_<w15>
vault-token hvs.<w90> hvb.<w140> hvr.<w90> hvs.CAES<w90>
vercel-token vercel_blob_rw_<A16>_<A30> vcp_<A56>
wakatime-key waka_<uuid>
xai-key xai-<A80>
"""
# Frames: the kind, the text around {}, and what stands there.
_FRAMES = r"""
authorization|Authorization: Bearer {}|<A40>
authorization|Authorization: Bearer {}|<L40>
authorization|authorization: bearer {}|<h40>
authorization|curl -H "Authorization: Bearer {}" https://api.example|<w43>
authorization|headers = {{"Authorization": "Bearer {}"}}|<L32>
authorization|Proxy-Authorization: Basic {}|YWRhOmh1bnRlcjI=
authorization|Authorization: Basic {}|<A32>
authorization|Authorization: Token {}|<h40>
authorization|Authorization: ApiKey {}|<A44>
authorization|Authorization: SSWS {}|00<w40>
authorization|Authorization: Bot {}|<A26>.<w6>.<w38>
authorization|Authorization: {}|<A40>
authorization|sent Bearer {} along|<L24>
authorization|X-API-Key: {}|<A32>
authorization|x-api-key: {}|<L32>
authorization|X-Auth-Token: {}|<h8>-<A24>
aws-key|aws_secret_access_key = {}|<b40>
aws-key|"SecretAccessKey": "{}"|<b40>
aws-key|AWS_SECRET_ACCESS_KEY={}|<b40>
aws-key|AWS_SESSION_TOKEN={}|IQoJb3JpZ2luX2Vj<b300>
aws-key|aws_session_token = {}|FwoGZXIvYXdz<b400>
azure-key|DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=x|<b86>==
azure-key|Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey={}|<b43>=
azure-key|https://h.blob.example/c?sv=2022-11-02&sr=c&sig={}|<A43>%3D
discord-webhook|https://discord.com/api/webhooks/112233445566778899/{}|<w68>
npm-token|//registry.example/:_authToken={}|<uuid>
npm-token|//registry.example/:_auth={}|<A40>=
slack-webhook|https://hooks.slack.com/services/{}|T<U10>/B<U10>/<A24>
slack-webhook|https://hooks.slack.com/workflows/{}|T<U10>/A<U10>/<d18>/<A24>
slack-webhook|https://hooks.slack.com/triggers/{}|T<U10>/<d13>/<h32>
telegram-token|https://api.telegram.example/bot1234567890:{}/getMe|AA<w33>
password|Server=db;Database=x;Uid=ada;Pwd={};|<A12>
password|Server=tcp:db,1433;User ID=ada;Password={};Encrypt=True|hunter!<A4>
password|curl -u ada:{} https://api.example|<A12>
password|curl --user 'ada:{}' https://api.example|<A12>
password|curl -s --proxy-user ada:{} https://api.example|<A12>
password|machine api.example login ada password {}|hunter2
password|ALTER USER ada WITH PASSWORD '{}';|<A12>
password|CREATE ROLE ada ENCRYPTED PASSWORD '{}';|<A12>
password|CREATE USER ada IDENTIFIED BY '{}';|hunter2
named-secret|ENV API_TOKEN {}|<A20>
named-secret|setenv DB_PASSWORD {}|hunter2
named-secret|setx API_TOKEN {}|<A20>
named-secret|set -gx SIGNING_KEY {}|<A32>
authorization|"auth": "{}"|YWRhOm<A22>==
url-password|postgres://ada:{}@db.example/x|hunter2
url-password|postgresql+asyncpg://ada:{}@db:5432/x|<A16>
url-password|mysql://ada:{}@db/x|%24ecret%21
url-password|mysql://ada:{}@db/x|$ecret1
url-password|mongodb+srv://ada:{}@cluster.example/x|p@ss@word
url-password|redis://:{}@localhost:6379/0|<A24>
url-password|amqp://ada:{}@mq//vhost|%<h2>%<h2><A6>
url-password|https://oauth2:{}@git.example/x.git|<A20>
url-password|https://ada:{}@h|$5,000!
url-password|ftp://ada:{}@h/pub|correct-horse-battery
url-password|smtp://ada%40example.org:{}@mail:587|<A16>
url-password|"url": "https:\/\/ada:{}@db"|<A12>
named-secret|export DB_PASSWORD={}|hunter2
named-secret|DB_PASSWORD={}|hunter2
named-secret|DB_PASSWORD={}|correcthorse
named-secret|API_TOKEN={}|<L30>
named-secret|API_TOKEN={}|<A30>
named-secret|API_TOKEN={}|abcdefghijklmnopqrstuvwxyzabcd
named-secret|PGPASSWORD={} psql|hunter2
named-secret|MYSQL_PWD={}|s3cr3t!x
named-secret|MYSQL_ROOT_PASSWORD: {}|<A16>
named-secret|DB_PASS={}|hunter2
named-secret|JWT_SECRET={}|<L32>
named-secret|JWT_SECRET="{}"|<A48>
named-secret|SECRET_KEY='{}'|django-insecure-<l30>
named-secret|SECRET_KEY_BASE={}|<A80>
named-secret|APP_KEY={}|base64:<b43>=
named-secret|ENCRYPTION_KEY={}|<b43>=
named-secret|ACCESS_TOKEN={}|<w60>
named-secret|CLIENT_SECRET={}|<w40>
named-secret|WEBHOOK_SECRET={}|<A24>
named-secret|password: {}|hunter2
named-secret|password: "{}"|hunter2
named-secret|password = {}|s3cr3t-<A6>
named-secret|api_key: {}|<A32>
named-secret|apiKey: '{}',|<A32>
named-secret|"apiKey": "{}"|<L32>
named-secret|"client_secret": "{}"|<A24>
named-secret|"clientSecret":"{}"|<w40>
named-secret|client_secret={}|<A24>
named-secret|?access_token={}&x=1|<A40>
named-secret|?api_key={}|<A32>
named-secret|"refresh_token": "{}"|<w60>
named-secret|"password": "{}"|Tr0ub4dor&3
named-secret|passphrase = "{}"|<A20>
named-secret|token = "{}"|<A36>
named-secret|token := "{}"|<L32>
named-secret|'auth_token' => '{}',|<A32>
named-secret|<password>{}</password>|hunter2
named-secret|<add key="x" password="{}"/>|<A12>
named-secret|mysqldump --password={} x|hunter2
named-secret|tool --password {} x|hunter2
named-secret|tool --api-key {}|<A32>
named-secret|tool --token {}|<A32>
named-secret|PrivateKey = {}|<b43>=
named-secret|storage_key: {}|<b64>==
named-secret|private_key = "{}"|<A44>
"""
_PEMS = (
    "PRIVATE KEY",
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
    "DSA PRIVATE KEY",
    "OPENSSH PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "PGP PRIVATE KEY BLOCK",
    "SSH2 ENCRYPTED PRIVATE KEY",
)


def pem(kind: str, random: Random, lines: int, width: int, head: str = "") -> str:
    data = base64.b64encode(random.randbytes(lines * width * 3 // 4 - 10)).decode()
    body = "\n".join(data[at : at + width] for at in range(0, len(data), width))
    four, gap = ("----", " ") if kind.startswith("SSH2") else ("-----", "")
    begin, end = (f"{four}{gap}{word} {kind}{gap}{four}" for word in ("BEG" + "IN", "E" + "ND"))
    return f"{begin}\n{head}{body}\n{end}"


def _keys(random: Random) -> dict[str, tuple[str, str, str]]:
    """Private keys of every kind and size, cut off, in base64, and of PuTTY."""
    made = {}
    heads = {
        "": "",
        " with headers": "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n",
        " with a comment": "Comment: made by nobody\n\n",
    }
    for kind in _PEMS:
        for name, head in heads.items():
            for lines, width in ((1, 64), (3, 64), (26, 64), (14, 70), (8, 76)):
                key = pem(kind, random, lines, width, head)
                made[f"{kind} of {lines} lines{name}, {width}"] = (key, key, "private-key")
    rsa = pem("RSA PRIVATE KEY", random, 26, 64)
    made["cut off"] = (rsa[:600], rsa[:600], "private-key")
    headed = pem("RSA PRIVATE KEY", random, 26, 64, heads[" with headers"])
    made["cut off, with headers"] = (headed[:600], headed[:600], "private-key")
    made["in base64"] = _in_base64(rsa)
    made["in base64, EC"] = _in_base64(pem("EC PRIVATE KEY", random, 3, 64))
    putty = "\n".join(_noise(random, _LETTERS["b"], 64) for _ in range(14))
    putty = f"Private-Lines: 14\n{putty}\nPrivate-MAC: {random.randbytes(20).hex()}"
    made["PuTTY"] = (f"PuTTY-User-Key-File-3: ssh-rsa\n{putty}", putty, "private-key")
    return made


def _in_base64(key: str) -> tuple[str, str, str]:
    encoded = base64.b64encode(key.encode()).decode()
    return f"client-key-data: {encoded}", encoded, "private-key"


def _jwts(random: Random) -> dict[str, tuple[str, str, str]]:
    made = {}
    for alg, digest in (("HS256", "sha256"), ("HS384", "sha384"), ("HS512", "sha512")):
        for size in (2, 40):
            claims = {"sub": "1234567890", "iat": 1516239022, "scope": ["read"] * size}
            head, body = (
                base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
                for part in ({"alg": alg, "typ": "JWT"}, claims)
            )
            mac = hmac.new(random.randbytes(32), f"{head}.{body}".encode(), digest).digest()
            token = f"{head}.{body}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
            made[f"{alg} {size}"] = (token, token, "jwt")
    return made


def _shapes() -> dict[str, tuple[str, str, str]]:
    random = Random(7)
    shapes = {}
    for line in _TOKENS.strip().splitlines():
        kind, *specs = line.split()
        for spec in specs:
            token = made(spec, random)
            secret = token.partition(".atlasv1.")[2] or token  # its first part is an id
            shapes[f"{kind} {spec}"] = (token, secret, kind)
    for line in _FRAMES.strip().splitlines():
        kind, frame, spec = line.split("|")
        secret = made(spec, random)
        shapes[f"{kind} {frame} {spec}"] = (frame.format(secret), secret, kind)
    return shapes | _keys(random) | _jwts(random)


SHAPES = _shapes()


def left(clean: str, secret: str) -> list[str]:
    """The pieces of a secret that are still there: eight characters in a row, or all of it."""
    runs = "".join(c if c in _LETTERS["A"] else " " for c in secret).split()
    marks = ("PRIVATE", "Private", "Lines", "ENCRYPTED", "Comment")
    pieces = {
        run[at : at + 8]
        for run in runs
        if len(run) >= 8 and not run.startswith(marks)
        for at in range(len(run) - 7)
    }
    return sorted(piece for piece in pieces or {secret} if piece in clean and piece not in _TOKENS)
