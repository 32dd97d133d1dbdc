"""core/checkpoint.py: the note of a checkpoint, its one line, and all that is neither."""

import re

import pytest

from colibri.core import checkpoint
from colibri.core.checkpoint import Checkpoint
from tests.support.example_tree import EMPTY, ROOTS

LOG = "colibri/" + "0123456789abcdef" * 2
ROOT = bytes.fromhex(ROOTS[7])
BASE64 = "XcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg="  # as transparency-dev/merkle has it
NOTE = f"{LOG}\n8\n{BASE64}\n"
SIGNED = f"{NOTE}\n— example.org Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"  # noqa: E501


def test_a_checkpoint_is_the_text_of_a_note_and_of_a_trailer() -> None:
    """Specification 9.14: C2SP's form, with the log as the origin."""
    made = Checkpoint(LOG, 8, ROOT)
    assert checkpoint.text(made) == NOTE
    assert checkpoint.trailer(made) == f"{LOG}@8:{ROOTS[7]}"
    assert checkpoint.parse(NOTE) == made == checkpoint.parse_trailer(f"{LOG}@8:{ROOTS[7]}")


def test_extensions_and_signatures_are_allowed_and_ignored() -> None:
    for note in (SIGNED, NOTE + "an extension\n", NOTE + "one\ntwo\n\n— a signature\n"):
        assert checkpoint.parse(note) == Checkpoint(LOG, 8, ROOT)


def test_a_log_without_records_has_a_checkpoint() -> None:
    made = Checkpoint(LOG, 0, bytes.fromhex(EMPTY))
    assert checkpoint.parse(checkpoint.text(made)) == made
    assert checkpoint.parse_trailer(checkpoint.trailer(made)) == made


THREE, THE_LOG, THE_SIZE = "three lines", "must name its log", "must be a decimal number"
THE_ROOT, THE_END = "32 bytes in base64", "end with a line feed"
NO_NOTES = {
    "": THE_END,
    "\n": THREE,
    NOTE[:-1]: THE_END,
    f"{LOG}\n8\n": THREE,
    f"{LOG}\n8\n\n{BASE64}\n": THREE,
    f"\n{NOTE}": THE_LOG,
    NOTE.replace("\n", "\r\n"): THE_LOG,
    f"example.org\n8\n{BASE64}\n": THE_LOG,
    f"{LOG[:-1]}\n8\n{BASE64}\n": THE_LOG,
    f" {NOTE}": THE_LOG,
    NOTE.upper(): THE_LOG,
    f"{LOG}\n08\n{BASE64}\n": THE_SIZE,
    f"{LOG}\n-8\n{BASE64}\n": THE_SIZE,
    f"{LOG}\n+8\n{BASE64}\n": THE_SIZE,
    f"{LOG}\n٨\n{BASE64}\n": THE_SIZE,
    f"{LOG}\n{2**53}\n{BASE64}\n": THE_SIZE,
    f"{LOG}\n{'9' * 5000}\n{BASE64}\n": THE_SIZE,
    f"{LOG}\n8\n{BASE64[:-1]}\n": THE_ROOT,
    f"{LOG}\n8\n{BASE64.replace('g=', 'h=')}\n": THE_ROOT,
    f"{LOG}\n8\n{BASE64.replace('+', '-')}\n": THE_ROOT,
    f"{LOG}\n8\n{BASE64}{BASE64}\n": THE_ROOT,
    f"{LOG}\n8\n{ROOTS[7]}\n": THE_ROOT,
}


@pytest.mark.parametrize(("text", "fault"), NO_NOTES.items(), ids=range(len(NO_NOTES)))
def test_what_is_no_note_is_named(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        checkpoint.parse(text)


ONE_LINE, IN_HEX = "LOG@SIZE:ROOT", "64 lower-case hex digits"
NO_TRAILERS = {
    "": ONE_LINE,
    LOG: ONE_LINE,
    f"{LOG}@8": ONE_LINE,
    f"{LOG}:{ROOTS[7]}": ONE_LINE,
    f"{LOG}@:{ROOTS[7]}": THE_SIZE,
    f"{LOG}@8 :{ROOTS[7]}": THE_SIZE,
    f"@8:{ROOTS[7]}": THE_LOG,
    f"{LOG}@8:{ROOTS[7].upper()}": IN_HEX,
    f"{LOG}@8:{ROOTS[7][:-1]}": IN_HEX,
    f"{LOG}@8:{ROOTS[7]}\n": IN_HEX,
    f"{LOG}@8:{BASE64}": IN_HEX,
}


@pytest.mark.parametrize(("text", "fault"), NO_TRAILERS.items(), ids=range(len(NO_TRAILERS)))
def test_what_is_no_trailer_is_named(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        checkpoint.parse_trailer(text)
