"""What a call was given against what it recorded: digests of texts, and the size of a seal."""

from collections.abc import Iterator

from tests.vectors.builder import Log, Object, digest, log_bundle, task_bundle, thoughts_bundle
from tests.vectors.honest import S, expect, seal_root, sized
from tests.vectors.vector import Vector

OTHER = digest("another")


def vectors() -> Iterator[Vector]:
    yield from texts()
    yield from odd_arguments()
    yield from sizes()


def told(**arguments: Object) -> Log:
    """Every tool that records a text; each has its digest, unless another is given.

    Enters: 1 task_create, 5 task_update of both texts, 8 task_update of the same title,
    10 audit_session_start, 13 thought_record.
    """
    log = Log()
    log.create("T-0001")
    log.update("T-0001", title="a new title", description="said")
    log.exit(log.enter("task_update", {"task_id": "T-0001"}, task="T-0001"))
    log.start(S)
    log.think(S)
    for seq, name, text in (
        (1, "title", "the task T-0001"),
        (5, "title", "a new title"),
        (5, "description", "said"),
        (8, "title", "a new title"),
        (10, "intent", f"the intent of {S}"),
        (13, "content", log.drafts[13].body["content"]),
    ):
        log.drafts[seq - 1].body["arguments"][name] = arguments.get(f"{name}_{seq}", digest(text))
    return log


def texts() -> Iterator[Vector]:
    yield Vector(
        "digests",
        "every text in the arguments is there as its digest",
        log_bundle(told()),
        verdict="good",
        expect=expect("log", "open"),
    )
    log = told(content_13=OTHER, title_5=OTHER)
    log.erase(log.drafts[13], log.drafts[4])
    yield Vector(
        "digests-erased",
        "a thought, and arguments, of which one side is erased",
        log_bundle(log),
        verdict="good",
        expect=expect("log", "open", erased=[5, 14]),
    )
    for name in ("title_1", "title_5", "description_5", "title_8", "intent_10", "content_13"):
        field, seq = name.split("_")
        log = told(**{name: OTHER})
        says = f"the {field} that call {seq} was given is not the one that stands there"
        yield Vector(f"digest-{field}-{seq}", says, log_bundle(log), "wrong-digest", int(seq))
    size = {**digest("a new title"), "size": 10}
    bundle = task_bundle(told(title_5=size), "T-0001")
    yield Vector("digest-size", "of another size", bundle, "wrong-digest", 5)


def odd_arguments() -> Iterator[Vector]:
    for name, value in (
        ("plain", "the task T-0001"),
        ("without-size", {"sha256": OTHER["sha256"]}),
        ("number", 7),
    ):
        log = told()
        log.drafts[0].body["arguments"]["title"] = value
        says = "a title that is no digest, in the arguments"
        yield Vector(f"argument-{name}", says, log_bundle(log), "bad-payload", 1)


def sizes() -> Iterator[Vector]:
    """A root does not say of how many thoughts it is: that of eight is also one of seven."""
    log = sized(8)
    seal = next(draft for draft in log.drafts if draft.kind == "session.seal")
    seal.body["count"] = 7
    bundle = thoughts_bundle(log, S, [0])
    bundle["proofs"][0]["size"] = 7
    size, root = seal_root(sized(8)).split(":")
    assert size == "8"
    yield Vector(
        "root-of-another-size",
        "the right root, and a count that is not the one it was published with",
        bundle,
        "root-differs",
        len(log.drafts) - 1,
        root=f"8:{root}",
    )
    yield Vector(
        "root-without-size",
        "the same, given without its size: this is said",
        bundle,
        verdict="good",
        root=root,
        expect=expect("thoughts", "yes", rules="not checked", gaps=True, also_not_checked="size"),
    )
