"""Both verifiers on bundles that were forged at random: the same verdict, word for word."""

import base64
import copy
import random
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tests.vectors.builder import (
    Draft,
    Log,
    Object,
    b64,
    headers,
    log_bundle,
    rehead,
    session_bundle,
    task_bundle,
    text_of,
    thoughts_bundle,
    without,
)
from tests.vectors.honest import S, erased, erased_text, finished, other_evidence, small, story
from tests.verify.conftest import Node

STORIES = (small, finished, story, erased, erased_text, other_evidence)
TASKS = ("T-0001", "T-0002")
VALUES: tuple[Any, ...] = (
    None,
    0,
    1,
    7,
    "x",
    "0" * 64,
    "ok",
    "refused",
    "GATHER",
    "DONE",
    TASKS[0],
    [],
    [TASKS[1]],
)
FORGERIES = 500

Chance = random.Random


def forge(log: Log, chance: Chance) -> None:
    """Change, move, repeat, remove or erase a record before the chain is hashed."""
    place = chance.randrange(len(log.drafts))
    draft = log.drafts[place]
    ways: list[Callable[[], object]] = [
        lambda: forge_payload(draft, chance),
        lambda: forge_payload(draft, chance),
        lambda: setattr(draft, chance.choice(["session", "task", "agent"]), chance.choice(VALUES)),
        lambda: setattr(draft, "call", chance.choice(log.drafts).call),
        lambda: log.drafts.pop(place),
        lambda: log.drafts.insert(chance.randrange(len(log.drafts)), copy.copy(draft)),
        lambda: log.drafts.insert(chance.randrange(len(log.drafts)), log.drafts.pop(place)),
        lambda: log.erase(draft),
    ]
    chance.choice(ways)()


def forge_payload(draft: Draft, chance: Chance) -> None:
    name = chance.choice(sorted(draft.body))
    made = draft.body[name]
    if name == "set":
        field = chance.choice(sorted(made))
        made[field] = [chance.choice([made[field][0], *VALUES]), chance.choice(VALUES)]
    else:
        draft.body[name] = chance.choice(VALUES)


def bundle_of(log: Log, chance: Chance) -> Object:
    ways: list[Callable[[], Object]] = [
        lambda: log_bundle(log),
        lambda: session_bundle(log, S, TASKS, tail=chance.random() < 0.5),
        lambda: task_bundle(log, chance.choice(TASKS), TASKS[:1]),
        lambda: thoughts_bundle(log, S, [chance.randrange(2)]),
    ]
    return chance.choice(ways)()


def tamper(bundle: Object, chance: Chance) -> Object:
    """Leave out a call of the finished bundle, a record of it, or a payload."""
    header = chance.choice(headers(bundle))
    call = [one["seq"] for one in headers(bundle) if one["call"] == header["call"]]
    ways: list[Callable[[], Object]] = [
        lambda: rehead(without(bundle, *call)),
        lambda: without(bundle, *call),
        lambda: without(bundle, header["seq"]),
        lambda: {**bundle, "payloads": dict(sorted(bundle["payloads"].items())[1:])},
        lambda: {
            **bundle,
            "scope": chance.choice(
                [None, {"session": "other"}, {"task": TASKS[0]}, {"thoughts": S}]
            ),
        },
    ]
    return chance.choice(ways)()


def item(chance: Chance) -> Object:
    """A bundle, and sometimes a root or head that its reader knows."""
    log = chance.choice(STORIES)()
    for _ in range(chance.choice([0, 1, 1, 2])):
        forge(log, chance)
    bundle = bundle_of(log, chance)
    if chance.random() < 0.3:
        bundle = tamper(bundle, chance)
    seq = chance.choice(headers(bundle))["seq"]
    head = {"seq": seq, "leaf": bundle["head"]["leaf"]} if chance.random() < 0.3 else None
    root = "2:" + "ab" * 32 if chance.random() < 0.1 else None
    return {"base64": b64(text_of(bundle)), "root": root, "head": head}


def items(chance: Chance) -> list[Object]:
    """Some forgeries leave nothing to make a bundle of; these do not count."""
    found: list[Object] = []
    while len(found) < FORGERIES:
        try:
            found.append(item(chance))
        except (LookupError, RecursionError, StopIteration, TypeError, ValueError):
            continue
    return found


def judged(python: ModuleType, item: Object) -> dict[str, Any]:
    head = item["head"] and (item["head"]["seq"], item["head"]["leaf"])
    data = base64.b64decode(item["base64"])
    verdict: dict[str, Any] = python.verify(data, root=item["root"], head=head).as_json()
    return verdict


def test_both_verifiers_judge_random_forgeries_alike_word_for_word(
    python: ModuleType, node: Node
) -> None:
    forged = items(random.Random(9162))
    verdicts = [judged(python, one) for one in forged]
    for mine, other, one in zip(verdicts, node("verify", forged), forged, strict=True):
        if mine["verdict"] == other["verdict"] == "cannot tell" and not mine["bundle"]:
            continue  # what is wrong with a file that is no bundle, each says in its own words
        assert mine == other, one["base64"]
    seen = Counter(finding["code"] for verdict in verdicts for finding in verdict["findings"])
    kinds = Counter(verdict["bundle"]["kind"] for verdict in verdicts if verdict["bundle"])
    assert len(seen) > 20, seen
    assert min(kinds[kind] for kind in ("log", "session", "task", "thoughts")) > 50, kinds
    assert {verdict["verdict"] for verdict in verdicts} == {"good", "bad", "cannot tell"}
