"""cli/witness/signatures.py: SSH signatures on checkpoints, with real keys.

Specification 25.7.
"""

import base64
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from colibri.cli.complaint import Complaint
from colibri.cli.witness import signatures
from colibri.cli.witness.signatures import NAMESPACE
from colibri.core.witness import Signature
from tests.support.committer import Committer

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="it takes ssh-keygen")

TEXT = "colibri/0123456789abcdef0123456789abcdef\n7\nAAAA\n"


class Signer(Committer):
    """A user with keys: one in the usual place, one elsewhere, one with a passphrase."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, story=False)
        (self.home / ".ssh").mkdir()
        self.usual = self.make(self.home / ".ssh" / "id_ed25519")
        self.other = self.make(self.home / "other")
        self.locked = self.make(self.home / "locked", "a passphrase")
        self.signers = self.home / ".config" / "colibri" / "allowed_signers"
        self.signers.parent.mkdir(parents=True)

    def make(self, path: Path, passphrase: str = "") -> Path:
        options = ("-q", "-t", "ed25519", "-N", passphrase, "-f", str(path))
        subprocess.run(["ssh-keygen", *options], check=True, timeout=30)
        return path

    def allow(self, key: Path, options: str = "") -> str:
        """The file that allows a key, and no other."""
        line = key.with_suffix(".pub").read_text()
        self.signers.write_text(f"ann@example.org {options}{line}")
        return str(self.signers)

    def sign(self, key: Path, namespace: str = NAMESPACE) -> str:
        """As anybody can do it by hand."""
        command = ["ssh-keygen", "-Y", "sign", "-n", namespace, "-f", str(key)]
        done = subprocess.run(
            command, input=TEXT.encode(), capture_output=True, timeout=30, check=True
        )
        return done.stdout.decode()

    def judge(self, signature: str, text: str = TEXT, **env: str) -> Signature:
        with self.at_work(self.project, **env):
            top = str(self.project)
            signers = signatures.allowed_signers(top)
            return signatures.judge(text, signature, signers, top)


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return Signer(tmp_path_factory.mktemp("ann"))


def test_an_allowed_signer_is_named(ann: Signer) -> None:
    ann.allow(ann.usual)
    with ann.at_work(ann.project):
        made = signatures.sign(TEXT, str(ann.usual), str(ann.project))
    assert ann.judge(made) == Signature("good", "ann@example.org")
    assert ann.judge(ann.sign(ann.usual)) == Signature("good", "ann@example.org"), "by hand"


def test_each_other_signature_is_named_for_what_it_is(ann: Signer) -> None:
    """An unknown key, a changed text, another purpose, no signature, nobody who could tell."""
    ann.allow(ann.usual)
    good, theirs = ann.sign(ann.usual), ann.sign(ann.other)
    fingerprint = signatures.read(theirs).fingerprint
    shown = subprocess.check_output(["ssh-keygen", "-l", "-f", str(ann.other)], text=True)
    assert fingerprint == shown.split()[1]
    assert ann.judge(theirs) == Signature("unknown key", fingerprint)
    assert ann.judge(good, TEXT.replace("7", "8")).state == "bad"
    assert ann.judge(ann.sign(ann.usual, "git")) == Signature("other namespace", "git")
    assert ann.judge(good, PATH="").state == "unchecked"
    ann.allow(ann.usual, 'namespaces="git" ')
    assert ann.judge(good).state == "unknown key", "the key is allowed, but not for checkpoints"
    ann.signers.unlink()
    assert ann.judge(good).state == "unknown key", "nobody is allowed"


def armored(raw: bytes) -> str:
    text = base64.b64encode(raw).decode()
    return f"-----BEGIN SSH SIGNATURE-----\n{text}\n-----END SSH SIGNATURE-----\n"


def test_what_is_no_signature_is_bad(ann: Signer) -> None:
    good = ann.sign(ann.usual)
    raw = base64.b64decode("".join(good.splitlines()[1:-1]))
    huge = struct.pack(">I", 1 << 31)
    for text in (
        *("", "words", armored(b"words"), armored(raw[:20]), armored(raw[:10] + huge + raw[14:])),
        *(good.replace("BEGIN", "START"), good + "\n" * (1 << 15) + "x", armored(b"x" + raw[1:])),
        good[:60] + "?" + good[61:],
    ):
        assert ann.judge(text).state == "bad", text[:80]


def test_the_key_is_the_one_named_else_gits_else_a_usual_one(ann: Signer) -> None:
    top = str(ann.project)
    settings = ann.home / ".gitconfig"
    before = settings.read_text()
    with ann.at_work(ann.home):
        assert signatures.key("", top) == str(ann.usual)
        assert signatures.key("other", top) == str(ann.other)
        with pytest.raises(Complaint, match="there is no key none"):
            signatures.key("none", top)
        ann.git("config", "gpg.format", "ssh")  # the repository's own count for nothing
        ann.git("config", "user.signingkey", "/evil")
        assert signatures.key("", top) == str(ann.usual)
        settings.write_text(f"{before}[gpg]\n\tformat = ssh\n[user]\n\tsigningkey = ~/other\n")
        assert signatures.key("", top) == str(ann.other)
    settings.write_text(before)
    with ann.at_work(ann.home, HOME=str(ann.folder)), pytest.raises(Complaint, match="no SSH key"):
        signatures.key("", top)


def test_the_allowed_signers_are_those_of_the_users_git(ann: Signer) -> None:
    settings = ann.home / ".gitconfig"
    before = settings.read_text()
    settings.write_text(f'{before}[gpg "ssh"]\n\tallowedSignersFile = ~/signers\n')
    ann.git("config", "gpg.ssh.allowedSignersFile", "/evil")
    with ann.at_work(ann.project):
        assert signatures.allowed_signers(str(ann.project)) == str(ann.home / "signers")
    settings.write_text(before)


def test_a_public_key_is_signed_with_by_the_agent_that_has_its_other_half(ann: Signer) -> None:
    public = ann.other.with_suffix(".pub").read_text().rsplit(" ", 1)[0]
    ann.allow(ann.other)
    socket = str(ann.folder / "agent")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    try:
        env = {"SSH_AUTH_SOCK": socket}
        add = ["ssh-add", "-q", str(ann.other)]
        for _ in range(100):
            if (
                subprocess.run(add, env=env | ann.environment(), stderr=-3, check=False).returncode
                == 0
            ):
                break
        with ann.at_work(ann.project, **env):
            key = signatures.key(f"key::{public}", str(ann.project))
            made = signatures.sign(TEXT, key, str(ann.project))
    finally:
        agent.terminate()
        agent.wait(10)
    assert ann.judge(made) == Signature("good", "ann@example.org")


def test_a_key_that_cannot_sign_is_named(ann: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    top = str(ann.project)
    with ann.at_work(ann.project, SSH_AUTH_SOCK=""):
        with pytest.raises(Complaint, match=r"cannot sign with .*locked") as locked:
            signatures.sign(TEXT, str(ann.locked), top)
        assert "ssh-add" in locked.value.hint
    with ann.at_work(ann.project, PATH=""), pytest.raises(Complaint, match="no ssh-keygen"):
        signatures.sign(TEXT, str(ann.usual), top)
    monkeypatch.setattr(signatures, "SECONDS", 0.0)
    with ann.at_work(ann.project), pytest.raises(Complaint, match="took longer than 0 s"):
        signatures.sign(TEXT, str(ann.usual), top)
