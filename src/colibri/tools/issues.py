"""Words for what is wrong with a call's arguments: where, what, and what would be allowed."""

from collections.abc import Sequence
from typing import Any

JSON = dict[str, Any]
MAX_ISSUES = 50


def issue(path: str, problem: str, allowed: str) -> dict[str, object]:
    """One problem of the arguments."""
    return {"path": path, "problem": problem, "allowed": allowed}


def shortened(issues: list[dict[str, object]], unsaid: int) -> list[dict[str, object]]:
    """The first MAX_ISSUES, so that the answer stays small."""
    left = len(issues) - MAX_ISSUES + max(0, unsaid)
    if left <= 0:
        return issues
    more = issue("", f"and {left} more problems", "see the tool's schema")
    return [*issues[:MAX_ISSUES], more]


def unknown(key: str, names: list[str]) -> dict[str, object]:
    from difflib import get_close_matches  # noqa: PLC0415 - only for this mistake

    near = get_close_matches(key[:64], names, n=1)
    hint = f"is not a known field; did you mean {near[0]}?" if near else "is not a known field"
    shown = "".join(c if c.isprintable() else "?" for c in key[:64])
    return issue(shown, hint, f"the fields {', '.join(names) or '(none)'}")


def misfit(name: str, message: str, schema: JSON) -> dict[str, object]:
    problem, _, where = message.partition(" - at `$")
    if problem.startswith(("Invalid enum value", "Invalid value")):
        problem = "is not one of the allowed values"  # msgspec would repeat the value
    elif "matching regex" in problem:
        problem = "is not of the right form"
    else:
        problem = problem.replace("`", "").replace("Expected", "expected")
    return issue(name + where.rstrip("`"), problem, allowed_by(schema))


def allowed_by(schema: JSON, siblings: Sequence[JSON] = ()) -> str:
    """A schema as a phrase, without repeating what its `siblings` say."""
    if "anyOf" in schema:
        return " or ".join(allowed_by(option, schema["anyOf"]) for option in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    parts = [str(schema.get("type", "any value"))]
    for low, high, unit in (
        ("minLength", "maxLength", " characters"),
        ("minimum", "maximum", ""),
        ("minItems", "maxItems", " items"),
    ):
        if low in schema and high in schema:
            parts.append(f"{schema[low]} to {schema[high]}{unit}")
        elif low in schema:
            parts.append(f"at least {schema[low]}{unit}")
        elif high in schema:
            parts.append(f"at most {schema[high]}{unit}")
    if "examples" in schema:
        parts.append(f"such as {schema['examples'][0]}")
    if "items" in schema:
        told = schema["items"] in siblings
        parts.append("each one of these" if told else f"each {allowed_by(schema['items'])}")
    if "properties" in schema:
        parts.append(f"with {' and '.join(schema['properties'])}")
    return ", ".join(parts)
