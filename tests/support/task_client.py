"""Reads the refusals of a real server's tools."""

from tests.support.client import JSON

STATES = ("INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE", "CANCELLED")


def refusal(result: JSON) -> JSON:
    """The error of a domain refusal: pattern B, and isError for clients that check only that."""
    assert result["isError"] is True, result
    content = result["structuredContent"]
    assert (content["ok"], content["data"]["ok"]) == (True, False)
    error: JSON = content["data"]["error"]
    return error


def issues(result: JSON) -> list[JSON]:
    """The issues of a call that stage 2 refused: pattern A."""
    assert result["isError"] is True, result
    content = result["structuredContent"]
    assert (content["ok"], content["error"]["code"]) == (False, "INVALID_PARAMS")
    assert content["error"]["message"].startswith("schema validation failed: ")
    found: list[JSON] = content["error"]["details"]["issues"]
    assert found
    assert all(issue.keys() == {"path", "problem", "allowed"} for issue in found)
    return found
