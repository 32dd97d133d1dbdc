"""Made-up secrets of every shape, assembled here so that none is in the repository.

CORPUS: what it is -> (the text, the part that must be removed, its kind).
"""

import base64

_MIX = "aZ3bY7cX1dW9eV5fU2gT8hS4iR6jQ0kP"
_HEX = "0123456789abcdef"
_BEGIN, _END = "-----BEG" + "IN ", "-----E" + "ND "


def mixed(length: int) -> str:
    """Letters and digits."""
    return (_MIX * (length // len(_MIX) + 1))[:length]


def hexadecimal(length: int) -> str:
    return (_HEX * (length // 16 + 1))[:length]


def pem(kind: str, *, line_end: str = "\n", lines: int = 8) -> str:
    """A made-up private key."""
    body = line_end.join(base64.b64encode(bytes(range(i, i + 48))).decode() for i in range(lines))
    return f"{_BEGIN}{kind}-----{line_end}{body}{line_end}c2hvcnQ={line_end}{_END}{kind}-----"


def jwt() -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","admin":true}', bytes(range(32)))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _corpus() -> dict[str, tuple[str, str, str]]:
    github = "gh" + "p_" + mixed(36)
    aws_secret = mixed(20) + "/+" + mixed(18)
    password = "hunter" + "2!pass"
    azure = mixed(86) + "=="
    bearer = mixed(40)
    basic = base64.b64encode(b"ada:" + password.encode()).decode()
    rows = {
        "GitHub, classic": ("use {} for it", github, "github-token"),
        "GitHub, fine-grained": ("{}", "github" + "_pat_" + mixed(22) + "_" + mixed(59), ""),
        "GitHub, in a URL": ("https://x:{}@host/repo.git", github, "github-token"),
        "GitHub, after an escaped line break": ("log: \\n{}\\n", github, "github-token"),
        "GitHub, percent-encoded": ("?q=token%3D{}", github, "github-token"),
        "GitLab": ("({})", "gl" + "pat-" + mixed(20), "gitlab-token"),
        "Slack": ("{}", "xo" + "xb-1234567890-" + mixed(24), "slack-token"),
        "Slack, webhook": ("https://hooks.slack.com/services/{}", f"T1/B2/{mixed(24)}", ""),
        "npm": ("'{}'", "np" + "m_" + mixed(36), "npm-token"),
        "npm, in its configuration": ("//host/:_auth" + "Token={}", mixed(36), "npm-token"),
        "PyPI": ("{}", "py" + "pi-Ag" + mixed(120), "pypi-token"),
        "Stripe": ("key={}", "sk" + "_live_" + mixed(24), "stripe-key"),
        "OpenAI": ("{}", "s" + "k-" + mixed(48), "openai-key"),
        "OpenAI, project": ("{}", "s" + "k-proj-" + mixed(60) + "_" + mixed(20), "openai-key"),
        "Anthropic": ("{}", "s" + "k-ant-api03-" + mixed(93), "anthropic-key"),
        "AWS, id": ("id {}.", "AK" + "IA" + "Q2W3E4R5T6Y7U2I3", "aws-key"),
        "AWS, secret": ("aws_secret_" + "access_key = {}", aws_secret, "aws-key"),
        "AWS, secret in JSON": ('{{"SecretAccess' + 'Key": "{}"}}', aws_secret, "aws-key"),
        "AWS, session": ("AWS_SESSION" + "_TOKEN={}", mixed(300), "aws-key"),
        "GCP": ("{}", "AI" + "za" + mixed(35), "gcp-key"),
        "GCP, access": ("{}", "ya" + "29." + mixed(60), "gcp-key"),
        "GCP, service account": ('"private_key": "{}\\n"', pem("PRIVATE KEY", line_end="\\n"), ""),
        "Azure, storage": ("AccountName=a;Account" + "Key={};x=y", azure, "azure-key"),
        "Azure, client": ("{}", mixed(3) + "8Q" + "~" + mixed(34), "azure-key"),
        "Azure, signature": ("https://h/b?sv=1&si" + "g={}", mixed(43) + "%3D", "azure-key"),
        "SendGrid": ("{}", "S" + "G." + mixed(22) + "." + mixed(43), "sendgrid-key"),
        "Hugging Face": ("{}", "h" + "f_" + mixed(34), "huggingface-token"),
        "Vault": ("{}", "hv" + "s." + mixed(30), "vault-token"),
        "Telegram": ("bot12345678:{}", "A" + "A" + mixed(33), "telegram-token"),
        "JWT": ("session={};", jwt(), "jwt"),
        "Bearer": ("Authorization: Bear" + "er {}", bearer, "authorization"),
        "Bearer, in a command": ('-H "authorization: bear' + 'er {}"', bearer, "authorization"),
        "Basic": ("Authorization: Bas" + "ic {}", basic, "authorization"),
        "API key in a header": ("X-API-K" + "ey: {}", mixed(32), "authorization"),
        "URL": ("postgres://ada:{}@db.example/x", password, "url-password"),
        "URL without a user": ("redis://:{}@localhost:6379", password, "url-password"),
        "connection string": ("Server=x;Uid=ada;Pass" + "word={};", password, "password"),
        "environment": ("export DB_PASS" + "WORD={}", password, "named-secret"),
        "environment, quoted": ("API_TOK" + 'EN="{}"', mixed(20), "named-secret"),
        "JSON": ('{{"client_sec' + 'ret": "{}"}}', mixed(20), "named-secret"),
        "program": ("api_k" + "ey = '{}'", mixed(20), "named-secret"),
        "age": ("{}", "AGE-SECRET" + "-KEY-1" + "Q2W3E4R5T6" * 6, "age-key"),
        "private key": ("see\n{}\nthere", pem("RSA PRIVATE KEY"), "private-key"),
        "private key, encrypted": ("{}", pem("ENCRYPTED PRIVATE KEY"), "private-key"),
        "private key of SSH": ("{}", pem("OPENSSH PRIVATE KEY"), "private-key"),
        "private key of PGP": ("{}", pem("PGP PRIVATE KEY BLOCK"), "private-key"),
        "private key on one line": ("{}", pem("EC PRIVATE KEY", line_end=" "), "private-key"),
    }
    kinds = {
        "GitHub, fine-grained": "github-token",
        "Slack, webhook": "slack-webhook",
        "GCP, service account": "private-key",
    }
    return {
        name: (frame.format(secret), secret, kind or kinds[name])
        for name, (frame, secret, kind) in rows.items()
    }


CORPUS = _corpus()
GITHUB = CORPUS["GitHub, classic"][1]
