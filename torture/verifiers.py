"""Three verifiers, one verdict: the server's own code, colibri_verify.py, and verify.mjs in Node.

They judge the frozen vectors, every proof of every tree up to a size, mutated proofs, and real
servers' bundles with one change. Only the server proves consistency: its proofs are compared with
the definition.
"""

import base64
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from colibri.core import merkle
from tests.support.bundle_mutants import mutant
from tests.support.client import JSON
from tests.support.naive_tree import NaiveTree
from tests.support.program import colibri
from tests.support.random_walks import Walk, random_run
from tests.vectors.builder import bundle_from, text_of
from tests.verify.conftest import INDEX, MODULE, VECTORS, judge, load_verifier, without_words
from tests.verify.test_merkle_vectors import Proof, mutate, python_root, server_accepts
from torture import ControlFailed, Lab, Trial, Violation

SIZE = 256
QUICK_SIZE = 64
PROOFS_PER_BUNDLE = 50  # mutated proofs for each mutated bundle
PROJECTS = 2
RUNS_EACH = 2
BATCH = Path(__file__).parents[1] / "tests" / "verify" / "batch.mjs"
AT_ONCE = 100  # bundles: more would not fit into a pipe at once

PYTHON = load_verifier()


def needs() -> str:
    """Why it cannot run here, or ""."""
    return "" if shutil.which("node") else "node is not installed"


def node(job: str, items: list[Any]) -> list[Any]:
    """The JavaScript verifier's answers to a batch."""
    done = subprocess.run(
        ["node", str(BATCH), str(MODULE)],
        input=json.dumps({"job": job, "items": items}),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise Violation(f"the JavaScript verifier crashed: {done.stderr[-500:]}")
    answers: list[Any] = json.loads(done.stdout)
    return answers


LEAVES = [sha256(b"\x00" + number.to_bytes(2, "big")).digest() for number in range(SIZE)]
TREE = NaiveTree(LEAVES)


def _honest(size: int) -> list[tuple[Proof, str]]:
    """Every proof of every tree up to a size, and the root that it must lead to."""
    return [
        (
            (LEAVES[index].hex(), index, count, [s.hex() for s in TREE.inclusion(index, 0, count)]),
            TREE.root(0, count).hex(),
        )
        for count in range(1, size + 1)
        for index in range(count)
    ]


# Proofs.


def check_every_proof(honest: list[tuple[Proof, str]]) -> None:
    """All three accept each of them; raises Violation."""
    proofs, roots = [proof for proof, _ in honest], [root for _, root in honest]
    if [python_root(PYTHON, proof) for proof in proofs] != roots:
        raise Violation("colibri_verify.py does not know a proof")
    if node("proofs", proofs) != roots:
        raise Violation("verify.mjs does not know a proof")
    if not all(server_accepts(*case) for case in honest):
        raise Violation("the server does not know a proof")


def check_consistency(size: int) -> int:
    """Every pair of trees: the proof matches the definition, holds, and fails for another root."""
    count = 0
    for last in range(1, size + 1):
        node_of_tree = merkle.node_in(merkle.levels(LEAVES[:last]))
        for old in range(1, last + 1):
            path = merkle.prove_consistency(node_of_tree, old, last)
            if path != TREE.consistency(old, 0, last):
                raise Violation(f"consistency of {old} and {last}: another path")
            holds = partial(
                merkle.check_consistency,
                old_size=old,
                size=last,
                path=path,
                root=TREE.root(0, last),
            )
            if not holds(old_root=TREE.root(0, old)):
                raise Violation(f"consistency of {old} and {last}: refused")
            if holds(old_root=LEAVES[-1]):
                raise Violation(f"consistency of {old} and {last}: accepted for another root")
            count += 1
    return count


def check_mutated_proofs(
    chance: Random,
    honest: list[tuple[Proof, str]],
    count: int,
    judge: Callable[[Proof], str | None],
) -> None:
    """`judge` and the JavaScript get the same root; no verifier, nor the server, the true one."""
    chosen = [chance.choice(honest) for _ in range(count)]
    mutants = [mutate(proof, chance) for proof, _ in chosen]
    others = node("proofs", mutants)
    for proof, other, (_, true) in zip(mutants, others, chosen, strict=True):
        answer = judge(proof)
        if answer != other:
            raise Violation(f"two verdicts on {proof}: {answer} and {other}")
        if answer == true or server_accepts(proof, true):
            raise Violation(f"a mutated proof is accepted: {proof}")


# Bundles.


@dataclass(frozen=True)
class Bundle:
    """A real server's bundle, and a head that its reader may have received separately."""

    scope: str
    content: Any
    head: JSON | None


class Case(NamedTuple):
    """What is judged: a bundle, and its possibly changed file."""

    bundle: Bundle
    data: bytes


def _parsed(data: bytes) -> Any:
    try:
        return bundle_from(data)
    except (LookupError, TypeError, ValueError):
        return None


def bundles(lab: Lab, number: int) -> list[Bundle]:
    """The exports of a few random runs on a real server."""
    project = lab.fresh(f"project-{number}")
    with Walk(project) as walk:
        for _ in range(RUNS_EACH):
            for step in random_run(lab.random):
                walk.take(step)
        walk.finish()
    sessions = list(walk.model.sessions.values())
    sealed = [session for session in sessions if session.root is not None]
    wanted = [
        ["--all"],
        *(["--session", session.session_id] for session in sessions[:2]),
        *(["--thought", session.thoughts[0]["thought_id"]] for session in sealed[:2]),
    ]
    return [exported(project, arguments, lab.random) for arguments in wanted]


def exported(project: Path, arguments: list[str], chance: Random) -> Bundle:
    code, out, err = colibri(project, "export", *arguments, "-o", "-")
    if code:
        raise Violation(f"export {arguments}: {err}")
    content = bundle_from(out.encode())
    return Bundle(arguments[0], content, content["head"] if chance.random() < 0.5 else None)


def python_verdict(data: bytes, head: JSON | None) -> JSON:
    known = head and (head["seq"], head["leaf"])
    verdict: JSON = PYTHON.verify(data, head=known).as_json()
    return verdict


def check_bundles(cases: list[Case], judge: Callable[[bytes, JSON | None], JSON]) -> Counter[str]:
    """`judge` and the JavaScript must agree and never call a changed bundle good; the verdicts."""
    verdicts: Counter[str] = Counter()
    items = [
        {"base64": base64.b64encode(case.data).decode(), "head": case.bundle.head} for case in cases
    ]
    for case, other in zip(cases, node("verify", items), strict=True):
        verdict, scope = judge(case.data, case.bundle.head), case.bundle.scope
        if without_words(verdict) != without_words(other):
            raise Violation(
                f"two verdicts on a {scope} bundle: {verdict} and {other} on {case.data!r}"
            )
        if verdict["verdict"] == "good" and case.data != text_of(case.bundle.content):
            where = difference(case.bundle.content, _parsed(case.data))
            raise Violation(f"a changed {scope} bundle is good: {where}: {case.data!r}")
        verdicts[verdict["verdict"]] += 1
    return verdicts


def difference(old: Any, new: Any, path: str = "$") -> str:
    """The first place where two JSON values differ, with both."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        pairs = [(f"{path}.{key}", old[key], new[key]) for key in old]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(f"{path}[{at}]", *pair) for at, pair in enumerate(zip(old, new, strict=True))]
    else:
        return f"{path} was {str(old)[:300]} and is {str(new)[:300]}"
    return next(difference(a, b, where) for where, a, b in pairs if a != b)


def check_vectors() -> int:
    items = [
        {"path": str(VECTORS / entry["file"])}
        | {known: entry.get(known) for known in ("root", "head", "checkpoint")}
        for entry in INDEX
    ]
    for entry, other in zip(INDEX, node("verify", items), strict=True):
        if without_words(judge(PYTHON, entry)) != without_words(other):
            raise Violation(f"two verdicts on {entry['file']}")
        if (entry["exit"] == 0) != (other["verdict"] == "good"):
            raise Violation(f"{entry['file']} is said to be {other['verdict']}")
    return len(INDEX)


# The trial.


def lax(proof: Proof) -> str | None:
    """A verifier that ignores the rest of a proof: the classic mistake."""
    leaf, index, size, path = proof
    needed = len(TREE.inclusion(index, 0, size)) if 0 <= index < size <= SIZE else 0
    return python_root(PYTHON, (leaf, index, size, path[:needed]))


def control(lab: Lab) -> str:
    """A verifier that reads only part of a proof and one that misses a change must be caught."""
    try:
        check_mutated_proofs(lab.random, _honest(16), 1_000, lax)
    except Violation:
        pass
    else:
        raise ControlFailed("a verifier that leaves a part of a proof over is not noticed")
    honest = bundles(lab, 0)[0]
    text = text_of(honest.content)
    if check_bundles([Case(honest, text)], python_verdict) != {"good": 1}:
        raise ControlFailed("an honest bundle is not good")
    other = Case(honest, text.replace(b'"log":"colibri/', b'"log":"colibrj/'))
    try:
        check_bundles([other], lambda data, head: python_verdict(text, head))
    except Violation:
        return (
            "a verifier that reads a part of a proof, and one that overlooks a change, are caught"
        )
    raise ControlFailed("a verifier that overlooks a change is not noticed")


def run(lab: Lab) -> dict[str, object]:
    """Vectors, trees, proofs, bundles."""
    size = SIZE if lab.count >= TRIAL.full else QUICK_SIZE
    vectors = check_vectors()
    lab.say(f"every proof of every tree up to {size}")
    honest = _honest(size)
    check_every_proof(honest)
    pairs = check_consistency(size)
    for first in range(0, lab.count, 10_000):
        some = min(10_000, lab.count - first)
        check_mutated_proofs(lab.random, honest, some, lambda proof: python_root(PYTHON, proof))
        lab.say(f"{first + some:,} of {lab.count:,} mutated proofs")
    real = [bundle for number in range(PROJECTS) for bundle in bundles(lab, number)]
    originals = [Case(bundle, text_of(bundle.content)) for bundle in real]
    if check_bundles(originals, python_verdict).keys() != {"good"}:
        raise Violation("an honest bundle is not good")
    verdicts: Counter[str] = Counter()
    wanted = lab.count // PROOFS_PER_BUNDLE
    for first in range(0, wanted, AT_ONCE):
        some = min(AT_ONCE, wanted - first)
        chosen = [lab.random.choice(real) for _ in range(some)]
        cases = [Case(bundle, mutant(bundle.content, lab.random)) for bundle in chosen]
        verdicts += check_bundles(cases, python_verdict)
        lab.say(f"{verdicts.total():,} of {wanted:,} mutated bundles")
    return {
        "vectors": vectors,
        "inclusion proofs": len(honest),
        "consistency proofs": pairs,
        "honest bundles": len(real),
        "mutated bundles": wanted,
        "of them bad": verdicts["bad"],
        "cannot tell": verdicts["cannot tell"],
        "accepted": 0,
        "disagreements": 0,
    }


TRIAL = Trial(
    name="verifiers",
    title="the server's code, colibri_verify.py and verify.mjs under Node on vectors, every proof"
    " of every tree up to 256, mutated proofs and mutated bundles",
    claim="all agree, and nothing that was changed is accepted",
    unit="mutated proofs",
    quick=2_000,
    full=100_000,
    minutes=5,
    control=control,
    run=run,
    needs=needs,
)
