"""core/errors.py: what each exception carries."""

from colibri.core import errors


def test_every_error_is_a_colibri_error_with_a_message() -> None:
    raised: list[errors.ColibriError] = [
        errors.ConfigError(["a is wrong", "b is unknown"]),
        errors.ResourceError("no disk", "buy one"),
        errors.Invalid([{"path": "title", "problem": "too long", "allowed": "256"}]),
        errors.Refused("ERR_NOT_FOUND", "no task T-0001", task_id="T-0001"),
        errors.Unavailable("not now"),
        errors.Damaged("not the same"),
        errors.Malformed("no name"),
    ]
    assert [error.message for error in raised] == [
        "a is wrong; b is unknown",
        "no disk",
        "schema validation failed: title",
        "no task T-0001",
        "not now",
        "not the same",
        "no name",
    ]
    assert [str(error) for error in raised] == [error.message for error in raised]


def test_an_error_carries_the_facts_of_its_kind() -> None:
    issue = {"path": "title", "problem": "too long", "allowed": "256"}
    refused = errors.Refused("ERR_CYCLE", "a cycle", cycle=["T-0001"])
    assert errors.ConfigError(["a", "b"]).problems == ("a", "b")
    assert errors.ResourceError("no disk").hint == ""
    assert errors.Invalid([issue]).issues == [issue]
    assert (refused.code, refused.fields) == ("ERR_CYCLE", {"cycle": ["T-0001"]})
