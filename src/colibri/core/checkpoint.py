"""Checkpoints: the root of a log's Merkle tree at a size, as text that can be kept elsewhere.

The text is the note of C2SP's tlog-checkpoint: the log's id as the origin, the size, the root in
base64, a line each. A trailer is the same in one line: `LOG@SIZE:ROOT`, the root in hex.
"""

import re
from binascii import a2b_base64, b2a_base64
from typing import NamedTuple

from colibri.core.canonical import MAX_INTEGER


class Checkpoint(NamedTuple):
    """The tree over the records 1 to size of a log has this root."""

    log: str
    size: int
    root: bytes


def text(checkpoint: Checkpoint) -> str:
    """The note, without signatures."""
    log, size, root = checkpoint
    return f"{log}\n{size}\n{b2a_base64(root).decode()}"


def parse(text: str) -> Checkpoint:
    """The checkpoint that a note states; ValueError.

    Lines that extend it, and after an empty line its signatures, are allowed and ignored.
    """
    if not text.endswith("\n"):
        raise ValueError("the last line of a checkpoint must end with a line feed")
    body, _, _ = text.partition("\n\n")
    match body.removesuffix("\n").split("\n"):
        case [log, size, root, *_]:
            return Checkpoint(_log(log), _size(size), _base64(root))
    raise ValueError("a checkpoint has three lines: the log, the size, the root in base64")


def trailer(checkpoint: Checkpoint) -> str:
    """The checkpoint in one line."""
    log, size, root = checkpoint
    return f"{log}@{size}:{root.hex()}"


def parse_trailer(text: str) -> Checkpoint:
    """The checkpoint that one line states; ValueError."""
    log, at, rest = text.partition("@")
    size, colon, root = rest.partition(":")
    if not at or not colon:
        raise ValueError("a checkpoint in one line is LOG@SIZE:ROOT, the root in hex")
    if not _IS_HEX(root):
        raise ValueError("the root of a checkpoint must be 64 lower-case hex digits here")
    return Checkpoint(_log(log), _size(size), bytes.fromhex(root))


def _log(text: str) -> str:
    if not _IS_LOG(text):
        raise ValueError("a checkpoint must name its log: colibri/ and 32 hex digits")
    return text


def _size(text: str) -> int:
    if not _IS_SIZE(text) or int(text) > MAX_INTEGER:
        raise ValueError(
            "the size of a checkpoint must be a decimal number of records, at most 2^53-1"
        )
    return int(text)


def _base64(text: str) -> bytes:
    if _IS_BASE64(text):
        root = a2b_base64(text)
        if b2a_base64(root, newline=False).decode() == text:  # the bits that pad it are zero
            return root
    raise ValueError("the root of a checkpoint must be 32 bytes in base64")


_IS_LOG = re.compile("colibri/[0-9a-f]{32}").fullmatch
_IS_SIZE = re.compile("0|[1-9][0-9]{0,15}").fullmatch
_IS_HEX = re.compile("[0-9a-f]{64}").fullmatch
_IS_BASE64 = re.compile("[A-Za-z0-9+/]{43}=").fullmatch
