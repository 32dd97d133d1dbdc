"""A corpus of secrets of real shapes.

Written from the formats that vendors publish, not from our tables. SHAPES: name -> (text, the part
that must be removed, its kind). A spec describes a token: `ghp_<A30>` is ghp_ and 30 letters or
digits. Nothing here is a secret: the same seed makes the same noise, and no complete token is in
the repository.
"""

import base64
import hmac
import json
import string
import uuid
import zlib
from pathlib import Path
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
    if len(letters) > 60:  # include every kind of character; never end in punctuation
        made[0], made[-1] = "k", "Z"
    return "".join(made)


def _checksum(text: str) -> str:
    """The checksum that GitHub and npm use: CRC-32 in base 62."""
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


def made(spec: str, random: Random) -> str:
    """A token for a spec: <A30>, <uuid>, <crc> for the checksum of the text before it."""
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


_DATA = Path(__file__).parents[1] / "data"
_TOKENS = (_DATA / "tokens.txt").read_text(encoding="utf-8")
# Frames: the kind, the text around {}, and what goes there.
_FRAMES = (_DATA / "framed_secrets.txt").read_text(encoding="utf-8")
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
    """Private keys of every kind and size, truncated, in base64, and in PuTTY's format."""
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
    """The pieces of a secret that remain: eight characters in a row, or all of it."""
    runs = "".join(c if c in _LETTERS["A"] else " " for c in secret).split()
    marks = ("PRIVATE", "Private", "Lines", "ENCRYPTED", "Comment")
    pieces = {
        run[at : at + 8]
        for run in runs
        if len(run) >= 8 and not run.startswith(marks)
        for at in range(len(run) - 7)
    }
    return sorted(piece for piece in pieces or {secret} if piece in clean and piece not in _TOKENS)
