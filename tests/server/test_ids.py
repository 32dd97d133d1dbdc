"""server/ids.py: random, or derived from a seed in TEST."""

import hashlib
import re
import uuid

import pytest

from colibri.server.ids import Ids

SEEDS = [None, 0, 7]


@pytest.mark.parametrize("seed", SEEDS)
def test_an_id_is_a_version_4_uuid(seed: int | None) -> None:
    """Specification 9.5: `call` is a uuid 4."""
    for seq in range(50):
        text = Ids(seed).uuid("call", seq)
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_nonce_has_32_bytes_and_a_log_32_hex_digits(seed: int | None) -> None:
    """Specification 9.5."""
    ids = Ids(seed)
    assert len(ids.nonce(1)) == len(ids.draw("x", 1)) == 32
    assert re.fullmatch(r"colibri/[0-9a-f]{32}", ids.log())


def test_a_seed_repeats_everything() -> None:
    """Specification 10.6: runs repeat."""
    for seed in (0, 7):
        one, two = Ids(seed), Ids(seed)
        assert one.uuid("call", 3) == two.uuid("call", 3)
        assert one.nonce(3) == two.nonce(3)
        assert one.log() == two.log()


def test_seed_purpose_and_place_each_make_another_id() -> None:
    """Specification 10.6: the parts cannot run into each other."""
    made = [
        Ids(1).draw("call", 1),
        Ids(2).draw("call", 1),
        Ids(1).draw("nonce", 1),
        Ids(1).draw("call", 2),
        Ids(1).draw("call", 11),
        Ids(11).draw("call", 1),
        Ids(1).draw("1call", 1),
    ]
    assert len(set(made)) == len(made)
    assert made[0] == hashlib.sha256(b"1\ncall\n1").digest()
    assert Ids(1).nonce(4) == Ids(1).draw("nonce", 4)


def test_without_a_seed_nothing_repeats() -> None:
    """Outside TEST an id reveals nothing about another."""
    ids = Ids()
    assert len({ids.uuid("call", 1) for _ in range(100)}) == 100
    assert len({ids.nonce(1) for _ in range(100)}) == 100
    assert ids.log() != ids.log()
