"""`colibri witness`: the ledger's checkpoint in git, where nobody can rewrite it unseen."""

import argparse
import os
import re
import signal
from functools import partial
from typing import Any

from colibri.cli import complaint, files, git, project, remotes, terminal
from colibri.cli.complaint import Complaint, Misuse
from colibri.cli.git import GitError, Repository
from colibri.cli.remotes import Remote
from colibri.cli.show import times
from colibri.cli.user_settings import of_user
from colibri.cli.witness import collect, keep, message, roots, seen, setup, signatures
from colibri.cli.witness.found import SHORT, Found
from colibri.cli.witness.keep import Kept
from colibri.config import Config, load
from colibri.core.modes import Mode
from colibri.core.witness import Signature
from colibri.store import ledger, log_tree

HELP = "keep the ledger's checkpoint in git"

DESCRIPTION = """\
Commit a checkpoint of the ledger, the root of the tree over all its records, to a ref of its own in
the project's git repository, and with --push to a remote. From then on colibri verify detects
whether records up to there were changed, removed or rewritten, even by somebody who can write the
ledger. Nothing else in the repository changes: no branch, no index, no file, and no hook runs.

witness list shows the checkpoints that the repository holds. witness trailer FILE adds a line with
the checkpoint to a commit message; a hook runs it. colibri setup git adds such hooks.
"""

EPILOG = """\
examples:
  colibri witness                        commit the checkpoint, here
  colibri witness --push                 and push it to origin
  colibri witness --sign --push          with a signature by your SSH key
  colibri witness --push --branch audit  on a branch, which a host can protect
  colibri witness list
  colibri witness list --fetch           as the remote has them now

If nothing was recorded since the last time, no commit is made. A checkpoint counts as pushed only
after it was read back from the remote. docs/witnesses.md explains what each witness can show.

KEY is the file of an SSH key; without it, git's user.signingkey if gpg.format is ssh, else a key in
~/.ssh. Signatures count if the signer is listed in git's gpg.ssh.allowedSignersFile, else in
~/.config/colibri/allowed_signers. All three are read from your own settings, never from the
repository's.

A checkpoint that a remote had and no longer has is named: somebody deleted or replaced it there.
--push puts back what the remote takes, and reports it.

--json prints log, size, root, commit, ref, new (whether a commit was made), signed, pushed (the
remote that has it, or null) and lost [{commit, size, is_back}] (what the remote had before and did
not have any more). witness list --json prints log, signers (the file) and witnesses [{kind, size,
root, commit, ref, at, remote, formerly (why a remote that had it is not known to have it now),
signature {state, by} or null, problem}].

Exit codes: 0 kept, or nothing new, 1 not kept or not pushed, 73 configuration, 75 resource.
"""

HOOK_SECONDS = 20.0  # a hook never takes longer
_BRANCH = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|[./](?=[A-Za-z0-9_-])){0,99}")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = ("list", "trailer")
    what = "list what git holds, or add a trailer to a commit message (default: keep a checkpoint)"
    parser.add_argument("action", metavar="ACTION", nargs="?", choices=actions, help=what)
    parser.add_argument("file", metavar="FILE", nargs="?", help="with trailer: the message")
    parser.add_argument("--sign", metavar="KEY", nargs="?", const="", help="sign it with this key")
    push = "push it to this remote (default: origin, or the only one)"
    parser.add_argument("--push", metavar="REMOTE", nargs="?", const="", help=push)
    parser.add_argument(
        "--branch", metavar="NAME", type=_branch, help="keep it on this branch instead of a ref"
    )
    fetch = "with list: ask this remote first"
    parser.add_argument("--fetch", metavar="REMOTE", nargs="?", const="", help=fetch)
    terminal.limit_option(parser, "with list: checkpoints shown", 20)
    hook = "for git hooks: silent unless it fails, exit code 0, 20 s at most"
    parser.add_argument("--hook", action="store_true", help=hook)
    project.options(parser)


def _branch(text: str) -> str:
    if not _BRANCH.fullmatch(text) or text.endswith(".lock"):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be the name of a branch")
    return text


def run(options: argparse.Namespace) -> int:
    _refuse(options)
    if options.hook:
        return _run_as_hook(options)
    try:
        return _run(options)
    except remotes.Unreachable as problem:
        hint = "the checkpoint is committed here: try again when the remote can be reached"
        raise Complaint(str(problem), hint) from problem
    except GitError as problem:
        raise Complaint(str(problem), "colibri doctor checks git and the repository") from problem


def _refuse(options: argparse.Namespace) -> None:
    keeps = options.action is None
    given = {"--sign": options.sign, "--push": options.push, "--branch": options.branch}
    for name, value in given.items():
        if value is not None and not keeps:
            raise Misuse(f"{name} does not go with {options.action}")
    if options.fetch is not None and options.action != "list":
        raise Misuse("--fetch goes with list")
    if (options.file is None) == (options.action == "trailer"):
        raise Misuse("trailer takes one file, the others none")


def _run(options: argparse.Namespace) -> int:
    config = load(options.project)
    if config.mode == Mode.TEST:
        raise Complaint("in TEST mode nothing is witnessed", "unset COLIBRI_MODE")
    repository = setup.require(config.project)
    if options.action == "list":
        return _list(options, repository)
    if options.action == "trailer":
        return _add_trailer(options, repository)
    return _keep(options, repository)


# Keeping.


def _keep(options: argparse.Namespace, repository: Repository) -> int:
    if options.branch:
        _refuse_checked_out(repository, options.branch)
    remote = None if options.push is None else _remote(repository, options.push)
    key = None if options.sign is None else signatures.key(options.sign, repository.work_tree)
    reading = partial(project.reading, options)
    with project.opened(options) as (config, reader):
        uncopied = roots.keep(config, reader)
    where, kept = keep.keep(repository, options.branch, key, reading)
    if remote is not None:
        made = kept.new

        def again() -> Kept:
            return keep.keep(repository, options.branch, key, reading)[1]

        kept = keep.push(repository, where, remote, kept, reading=reading, again=again)
        kept = kept._replace(new=kept.new or made)
    if options.json:
        _emit(kept, where.ref, remote, signed=key is not None)
    elif not options.hook:
        _tell(kept, where.ref, remote)
    for one in kept.lost:
        assert remote is not None
        complaint.say(one.told(remote))
    return complaint.show(uncopied, "colibri witness") if uncopied else 0


def _emit(kept: Kept, ref: str, remote: Remote | None, *, signed: bool) -> None:
    log, size, root = kept.checkpoint
    told = {"log": log, "size": size, "root": root.hex(), "commit": kept.commit, "ref": ref}
    pushed = remote and remote.name
    lost = [one._asdict() for one in kept.lost]
    terminal.emit({**told, "new": kept.new, "signed": signed, "pushed": pushed, "lost": lost})


def _tell(kept: Kept, ref: str, remote: Remote | None) -> None:
    size = f"{kept.checkpoint.size:,}"
    what = "checkpoint of record" if kept.new else "nothing new since the checkpoint of record"
    terminal.field("witness", (f"{what} {size}", "bold" if kept.new else ""))
    terminal.field("commit", f"{kept.commit[:SHORT]} on {ref}", whole=True)
    if remote is not None:
        terminal.field("kept at", (str(remote), "good"))
    else:
        terminal.note("hint: it is only here so far; colibri witness --push keeps it at a remote")


def _remote(repository: Repository, named: str) -> Remote:
    known = remotes.names(repository)
    name = named or ("origin" if "origin" in known or len(known) != 1 else known[0])
    found = remotes.find(repository, name) if name in known else None
    if found is None:
        hint = f"known are {', '.join(known)}" if known else "git remote add origin URL adds one"
        raise Complaint(f"the repository has no remote {name}", hint)
    return found


def _refuse_checked_out(repository: Repository, branch: str) -> None:
    for work_tree in git.checked_out(repository, branch):
        raise Complaint(f"the branch {branch} is checked out in {work_tree}", "name another branch")


# Listing.


def _list(options: argparse.Namespace, repository: Repository) -> int:
    with project.reading(options) as (_, db):
        log = ledger.log_id(db)
    if options.fetch is not None:
        _fetch(repository, _remote(repository, options.fetch), log)
    found = collect.found(repository, log)
    shown = found[: options.limit or None]
    judged = collect.judge_signatures(repository, shown)
    if options.json:
        signers = signatures.allowed_signers(repository.work_tree)
        rows = [_json(one, judged.get(one.commit)) for one in shown]
        terminal.emit({"log": log, "signers": signers, "witnesses": rows})
        return 0
    if not found:
        terminal.say("the repository holds no checkpoint of this ledger: colibri witness makes one")
        return 0
    rows_of_text = [_row(one, judged.get(one.commit)) for one in shown]
    terminal.table(["RECORD", "WHEN", "COMMIT", "KIND", "AT", "NOTE"], rows_of_text)
    if more := len(found) - len(shown):
        terminal.note(f"hint: {more:,} older ones are not shown: --limit 0 shows all")
    return 0


def _fetch(repository: Repository, remote: Remote, log: str) -> None:
    for where in seen.places(repository, log, remote):
        there, lost = seen.fetch(repository, where, remote)
        for one in lost:
            complaint.say(one.told(remote))
        if there is None and not lost:
            terminal.note(f"{remote} has no checkpoint of this ledger on {where.ref}")


def _json(one: Found, signature: Signature | None) -> dict[str, Any]:
    known = one.checkpoint
    return {
        "kind": one.kind,
        "size": known and known.size,
        "root": known and known.root.hex(),
        "commit": one.commit or None,
        "ref": one.ref or None,
        "at": one.at or None,
        "remote": one.remote,
        "formerly": one.formerly or None,
        "signature": (signature and signature._asdict()) if one.signature else None,
        "problem": one.problem or None,
    }


def _row(one: Found, signature: Signature | None) -> list[str]:
    size = f"{one.checkpoint.size:,}" if one.checkpoint else "?"
    signed = "" if signature is None or not one.signature else _signed(signature)
    note = "; ".join(filter(None, (one.problem, one.formerly, signed)))
    at = times.shown(one.at) if one.at else ""
    return [size, at, one.commit[:SHORT] or one.ref, one.kind, one.remote or "only here", note]


def _signed(signature: Signature) -> str:
    by = f" {signature.by}" if signature.by else ""
    return {
        "good": f"signed by{by}",
        "unknown key": f"signed by an unknown key,{by}",
        "bad": f"bad signature{by}",
        "other namespace": f"signature for another purpose,{by}",
    }.get(signature.state, "signature not checked")


# For hooks.


def _run_as_hook(options: argparse.Namespace) -> int:
    """Never fail a commit or a push, and never hold it up for long."""
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, HOOK_SECONDS)
    try:
        config = load(options.project)
        repository = git.find(config.project)
        if repository is not None and _is_due(config, repository, options):
            _run(options)
    except (*complaint.EXPECTED, GitError, TimeoutError) as problem:
        complaint.say(f"the checkpoint was not kept: {problem}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return 0


def _late(*_: object) -> None:
    raise TimeoutError(f"it took longer than {HOOK_SECONDS:.0f} s")


def _is_due(config: Config, repository: Repository, options: argparse.Namespace) -> bool:
    """Whether there is a ledger, no rebase is going on, and the remote is one that has a name."""
    here = git.find(os.curdir) or repository  # perhaps another work tree
    rewriting = ("rebase-merge", "rebase-apply", "sequencer")
    if any(os.path.exists(os.path.join(here.own, name)) for name in rewriting):
        return False
    if config.mode == Mode.TEST or not project.home(config).is_there():
        return False
    return options.push is None or options.push in remotes.names(repository)


def _add_trailer(options: argparse.Namespace, repository: Repository) -> int:
    with project.reading(options) as (_, db):
        now = log_tree.checkpoint(db)
    path = os.path.abspath(options.file)
    files.refuse_links(path, repository.work_tree)
    comment = of_user(repository.work_tree).get("core.commentchar", "#")
    comment = dict(git.settings(repository)).get("core.commentchar", comment)
    with open(path, "r+b") as file:
        old = file.read().decode(errors="surrogateescape")
        new = message.with_trailer(old, now, comment if len(comment) == 1 else "#")
        if new != old and now.size:
            file.seek(0)
            file.write(new.encode(errors="surrogateescape"))
            file.truncate()
    return 0
