"""SSH signatures on checkpoints, made and checked by ssh-keygen with the keys people have.

A signature is what `ssh-keygen -Y sign -n colibri-checkpoint@v1` prints over the checkpoint's text:
an armored SSHSIG, which names the key and the namespace that it was made for. A file of allowed
signers says whose keys count: git's own gpg.ssh.allowedSignersFile, as the user configured it, else
colibri/allowed_signers in the user's configuration directory.

    good             the key is one of the allowed signers, for this namespace
    unknown key      the signature fits the text, but no allowed signer has its key
    bad              it is not a signature of this text
    other namespace  it was made for something else, such as a commit
    unchecked        there is no ssh-keygen that could tell
"""

import base64
import binascii
import os
import re
import shutil
import struct
import tempfile
from hashlib import sha256
from typing import NamedTuple

from colibri.cli import process
from colibri.cli.complaint import Complaint
from colibri.cli.user_settings import of_user
from colibri.config import bare_environment, home_of
from colibri.core.witness import Signature

NAMESPACE = "colibri-checkpoint@v1"
SECONDS = 10.0
MAX_OUTPUT = 1 << 16
MAX_SIGNATURE = 1 << 14  # bytes, armored
USUAL_KEYS = ("id_ed25519", "id_ecdsa", "id_ed25519_sk", "id_ecdsa_sk", "id_rsa")
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_LITERAL = re.compile(r"(?:key::)?((?:ssh|ecdsa|sk)-[a-z0-9@.-]{1,60} [A-Za-z0-9+/=]{16,8000})")


class Blob(NamedTuple):
    """What a signature says of itself."""

    key: bytes
    namespace: str

    @property
    def fingerprint(self) -> str:
        digest = base64.b64encode(sha256(self.key).digest()).decode()
        return f"SHA256:{digest.rstrip('=')}"


def sign(text: str, key: str, work_tree: str) -> str:
    """The armored signature of a checkpoint's text; a Complaint if there is none."""
    with tempfile.TemporaryDirectory(prefix="colibri-sign-") as folder:
        options = ["-Y", "sign", "-n", NAMESPACE, "-f", key]
        if literal := _LITERAL.fullmatch(key):  # a public key, whose other half an agent has
            options = [*options[:-1], _put(folder, "key.pub", f"{literal[1]}\n"), "-U"]
        done = _keygen(options, text, work_tree)
    if done is None:
        raise Complaint(
            "there is no ssh-keygen", "install OpenSSH 8.2 or newer, or leave out --sign"
        )
    signature = done.output.decode(errors="replace")
    if done.code or not signature.startswith(_BEGIN):
        said = done.errors.decode(errors="replace").strip().rpartition("\n")[2]
        hint = "name another key with --sign KEY; if it has a passphrase, add it with ssh-add first"
        raise Complaint(f"cannot sign with {key}: {said or 'ssh-keygen failed'}", hint)
    return signature


def key(named: str, work_tree: str) -> str:
    """The key to sign with: the one named, that of git's own signatures, or a usual file."""
    if named:
        literal = _LITERAL.fullmatch(named)
        if not literal and not os.path.isfile(os.path.expanduser(named)):
            raise Complaint(f"there is no key {named}", "name the file of an SSH key")
        return os.path.abspath(os.path.expanduser(named)) if not literal else named
    settings = of_user(work_tree)
    if settings.get("gpg.format") == "ssh" and (set_key := settings.get("user.signingkey")):
        return os.path.expanduser(set_key)
    folder = os.path.expanduser("~/.ssh")
    for name in USUAL_KEYS:
        if os.path.isfile(path := os.path.join(folder, name)):
            return path
    hint = "name a key with --sign KEY, or make one: ssh-keygen -t ed25519"
    raise Complaint(f"there is no SSH key in {folder}", hint)


def allowed_signers(work_tree: str) -> str:
    """The file that says whose keys count."""
    file = of_user(work_tree).get("gpg.ssh.allowedsignersfile")
    if file:
        return os.path.expanduser(file)
    return os.path.join(home_of("XDG_CONFIG_HOME", "~/.config"), "colibri", "allowed_signers")


def judge(text: str, signature: str, signers: str, work_tree: str) -> Signature:
    """Whose signature it is, and whether it counts."""
    try:
        blob = read(signature)
    except ValueError:
        return Signature("bad")
    if blob.namespace != NAMESPACE:
        return Signature("other namespace", blob.namespace)
    with tempfile.TemporaryDirectory(prefix="colibri-sign-") as folder:
        file = _put(folder, "signature", signature)
        checked = _keygen(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", file], text, work_tree)
        if checked is None:
            return Signature("unchecked", blob.fingerprint)
        if checked.code:
            return Signature("bad", blob.fingerprint)
        who = _keygen(["-Y", "find-principals", "-f", signers, "-s", file], "", work_tree)
        names = who.output.decode(errors="replace").splitlines() if who and not who.code else []
        for name in names:
            by = ["-I", name, "-n", NAMESPACE, "-s", file]
            done = _keygen(["-Y", "verify", "-f", signers, *by], text, work_tree)
            if done and not done.code:
                return Signature("good", name)
    return Signature("unknown key", blob.fingerprint)


def read(signature: str) -> Blob:
    """The key and the namespace that a signature names; ValueError if it is none."""
    body = signature.strip()
    if len(body) > MAX_SIGNATURE or not (body.startswith(_BEGIN) and body.endswith(_END)):
        raise ValueError("no armored SSH signature")
    try:
        raw = base64.b64decode("".join(body[len(_BEGIN) : -len(_END)].split()), validate=True)
        if raw[:6] != b"SSHSIG":
            raise ValueError("no SSH signature")
        (size,) = struct.unpack_from(">I", raw, 10)
        (length,) = struct.unpack_from(">I", raw, 14 + size)
        return Blob(raw[14 : 14 + size], raw[18 + size : 18 + size + length].decode())
    except (binascii.Error, struct.error, UnicodeDecodeError) as broken:
        raise ValueError("no SSH signature") from broken


def _put(folder: str, name: str, text: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _keygen(arguments: list[str], text: str, work_tree: str) -> process.Done | None:
    """What ssh-keygen says, where nobody can be asked for a passphrase; None without one."""
    given = bare_environment()
    path = process.outside(given.get("PATH", ""), work_tree)
    program = shutil.which("ssh-keygen", path=path)
    if program is None:
        return None
    env = {"PATH": path, "LC_ALL": "C", "SSH_ASKPASS": "false"}
    env |= {name: given[name] for name in ("HOME", "SSH_AUTH_SOCK") if name in given}
    try:
        return process.run(
            [program, *arguments],
            os.sep,
            env,
            stdin=text.encode(),
            seconds=SECONDS,
            most=MAX_OUTPUT,
        )
    except process.Stopped as stopped:
        return process.Done(1, b"", str(stopped).encode())
