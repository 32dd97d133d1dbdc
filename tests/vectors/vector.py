"""One vector: a file, the lie it tells, and what a verifier must say."""

from dataclasses import dataclass, field

from tests.vectors.builder import Object, text_of

EXITS = {"good": 0, "bad": 1, "cannot tell": 2}


@dataclass
class Vector:
    name: str
    says: str  # what is special about it, or the lie
    content: Object | str | bytes
    code: str | None = None  # of every finding; None if it is good
    seq: int | None = None  # of the first finding
    verdict: str = "bad"
    root: str | None = None  # given to the verifier
    head: tuple[int, str] | None = None
    checkpoint: tuple[str, int, str] | None = None  # log, size, root
    expect: Object = field(default_factory=dict)  # of a good one

    @property
    def file(self) -> str:
        folder = {"good": "good", "bad": "bad", "cannot tell": "unclear"}[self.verdict]
        return f"{folder}/{self.name}.colibri.json"

    def data(self) -> bytes:
        if isinstance(self.content, bytes):
            return self.content
        if isinstance(self.content, str):
            return self.content.encode()
        return text_of(self.content)

    def entry(self) -> Object:
        entry: Object = {
            "file": self.file,
            "says": self.says,
            "exit": EXITS[self.verdict],
            "code": self.code,
            "seq": self.seq,
            "root": self.root,
            "head": self.head and {"seq": self.head[0], "leaf": self.head[1]},
        }
        if self.checkpoint is not None:
            entry["checkpoint"] = dict(zip(("log", "size", "root"), self.checkpoint, strict=True))
        return {**entry, **self.expect}
