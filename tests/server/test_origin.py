"""What is recorded of a client's own description: short, printable, without secrets."""

import pytest

from colibri.server import origin
from colibri.server.origin import MAX_LENGTH, MAX_READ, of_call, recordable

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def test_a_client_is_known_by_its_name_and_version() -> None:
    """Specification 7.14."""
    assert origin.name_of({"name": "codex", "version": "1.2"}) == "codex 1.2"
    assert origin.name_of({"name": "codex", "version": 3}) == "codex"


@pytest.mark.parametrize("info", [None, "codex", {}, {"name": ""}, {"name": 7, "version": None}])
def test_a_client_that_does_not_say_its_name_has_none(info: object) -> None:
    assert origin.name_of(info) is None


def test_what_a_call_says_of_its_client_wins_over_the_handshake() -> None:
    meta = {origin.CLIENT_INFO: {"name": "inner", "version": "2"}}
    assert of_call("outer 1", meta).client == "inner 2"
    assert of_call("outer 1", {}).client == "outer 1"


@pytest.mark.parametrize("meta", [None, [], "x", {"threadId": 5, "callId": ""}])
def test_ids_that_are_not_texts_are_ignored(meta: object) -> None:
    found = of_call("c", meta)
    assert (found.client, found.host_session, found.use) == ("c", None, None)


def test_the_id_of_a_thread_wins_over_that_of_a_session() -> None:
    found = of_call(None, {"sessionId": "s", "threadId": "t", "callId": "u"})
    assert (found.host_session, found.use) == ("t", "u")


@pytest.mark.parametrize("before", [0, 60, MAX_LENGTH - 10, MAX_LENGTH - 1, MAX_LENGTH + 40])
def test_no_part_of_a_secret_is_recorded_wherever_it_is_cut(before: int) -> None:
    """Specification 7.14."""
    found = recordable("x" * (before - 1) + " " * (before > 0) + SECRET)
    assert found is not None
    assert len(found) <= MAX_LENGTH
    assert "ghp_" not in found


def test_invisible_characters_are_escaped_before_they_are_recorded() -> None:
    """Specification 7.14."""
    assert recordable("a\x1b[31m\u202eb") == "a\\x1b[31m\\u202eb"


def test_long_texts_are_not_kept() -> None:
    for number in range(200):
        recordable(f"{number} " + "y" * 100_000)
    assert len(origin._seen) <= origin.MAX_KEPT
    assert all(len(text) <= MAX_READ for text in origin._seen)
