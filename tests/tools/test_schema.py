"""tools/schema.py: structs as JSON Schema and as stage 2."""

import enum
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from colibri.core.errors import Invalid
from colibri.core.modes import Capability
from colibri.tools import schema, text
from colibri.tools.issues import MAX_ISSUES
from colibri.tools.tool import Tool

SECRET = "sk-never-repeat-this"


class Color(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Point(Struct, forbid_unknown_fields=True):
    """Where."""

    x: Annotated[int, Meta(ge=0, le=9, description="across")]
    y: int = 0


class Circle(Struct, tag="circle"):
    radius: int


class Square(Struct, tag="square"):
    side: int


class Task(Struct, forbid_unknown_fields=True):
    """Fields whose names are words of JSON Schema, too."""

    title: Annotated[str, Meta(min_length=1, max_length=5)]
    type: Literal["plan", "decision"]
    description: Annotated[str | None, Meta(description="more")] = None
    color: Color = Color.RED
    at: Annotated[Point, Meta(description="the place")] | None = None
    path: Annotated[list[Point], Meta(max_length=3)] = []
    shape: Circle | Square | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class Loose(Struct):
    n: int


class Renamed(Struct, rename={"from_": "from"}, forbid_unknown_fields=True):
    from_: int


class OneOf(Struct, forbid_unknown_fields=True):
    """A rule about several fields at once."""

    a: int | None = None
    b: int | None = None

    def __post_init__(self) -> None:
        if self.a is None and self.b is None:
            raise ValueError("give a or b")


def issues(struct: type[Struct], arguments: object) -> dict[str, dict[str, object]]:
    """What stage 2 says, by path."""
    with pytest.raises(Invalid) as caught:
        schema.Validator(struct)(arguments)
    found = {str(issue["path"]): issue for issue in caught.value.issues}
    assert len(found) == len(caught.value.issues)
    assert all(issue.keys() == {"path", "problem", "allowed"} for issue in found.values())
    return found


def everything(node: Any, of: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Every object within a schema for which `of` is true."""
    if isinstance(node, list):
        return [found for item in node for found in everything(item, of)]
    if not isinstance(node, dict):
        return []
    return [node] * of(node) + everything(list(node.values()), of)


# Stage 2.


def test_arguments_that_fit_become_the_struct() -> None:
    """Specification 5.2: the same schema that is advertised."""
    task = schema.Validator(Task)({"title": "a", "type": "plan", "path": [{"x": 1}]})
    assert task == Task(title="a", type="plan", path=[Point(x=1)])


def test_every_issue_is_listed_field_by_field() -> None:
    """Specification 4.11: msgspec alone would stop at the first."""
    found = issues(Task, {"title": "too long", "color": 1, "limit": 501, "other": 1})
    assert found.keys() == {"title", "type", "color", "limit", "other"}


@pytest.mark.parametrize(
    ("field", "value", "path", "problem", "allowed"),
    [
        ("title", 5, "title", "expected str, got int", "string, 1 to 5 characters"),
        ("title", "", "title", "expected str of length >= 1", "string, 1 to 5 characters"),
        ("limit", 0, "limit", "expected int >= 1", "integer, 1 to 500"),
        ("limit", True, "limit", "expected int, got bool", "integer, 1 to 500"),
        ("description", 1, "description", "expected str | null, got int", "string or null"),
        ("at", {"x": 10}, "at.x", "expected int <= 9", "integer, 0 to 9"),
        ("at", {}, "at.x", "is required", "integer, 0 to 9"),
        ("at", 7, "at", "expected object | null, got int", "object, with x and y or null"),
        ("path", [{"x": 1}, {}], "path[1]", "Object missing required field x", None),
        ("path", [{"x": 1}, {"x": "1"}], "path[1].x", "expected int, got str", None),
        ("path", [{"x": 1}] * 4, "path", "expected array of length <= 3", None),
    ],
)
def test_an_issue_says_where_what_was_wrong_and_what_is_allowed(
    field: str, value: object, path: str, problem: str, allowed: str | None
) -> None:
    """Specification 4.11."""
    found = issues(Task, {"title": "a", "type": "plan", field: value})
    assert found.keys() == {path}
    assert found[path]["problem"] == problem
    points = "array, at most 3 items, each object, with x and y"
    assert found[path]["allowed"] == (allowed or points)


def test_a_missing_field_is_named_with_what_it_takes() -> None:
    """Specification 4.11."""
    found = issues(Task, {"title": "a"})
    assert found == {
        "type": {"path": "type", "problem": "is required", "allowed": "one of plan, decision"}
    }


@pytest.mark.parametrize(
    ("key", "hint"),
    [("titel", "; did you mean title?"), ("colour", "; did you mean color?"), ("zzz", "")],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(key: str, hint: str) -> None:
    """Specification 5.6."""
    found = issues(Task, {"title": "a", "type": "plan", key: SECRET})
    assert found.keys() == {key}
    assert found[key]["problem"] == f"is not a known field{hint}"
    assert found[key]["allowed"] == (
        "the fields title, type, description, color, at, path, shape, limit"
    )


def test_a_strange_key_is_made_printable_and_short() -> None:
    """A key goes into an answer and perhaps into a terminal."""
    (path,) = issues(OneOf, {"a": 1, "\x1b[2J" + "k" * 100: 1})
    assert path == "?[2J" + "k" * 60


def test_a_struct_that_does_not_forbid_them_ignores_unknown_keys() -> None:
    """Specification 5.6: as the probes do."""
    assert schema.Validator(Loose)({"n": 1, "more": 2}) == Loose(n=1)


@pytest.mark.parametrize("arguments", [None, [], "x", 1])
def test_arguments_that_are_not_an_object_are_one_issue(arguments: object) -> None:
    """Specification 2.18."""
    found = issues(Task, arguments)
    assert found == {"": {"path": "", "problem": "not an object", "allowed": "an object"}}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", [SECRET]),
        ("type", SECRET),
        ("color", SECRET),
        ("at", SECRET),
        ("path", [{"x": SECRET}]),
        ("shape", {"type": SECRET}),
        ("limit", SECRET),
    ],
)
def test_the_value_itself_is_never_repeated(field: str, value: object) -> None:
    """Specification 4.12: it may be a secret; msgspec would repeat enum values and tags."""
    with pytest.raises(Invalid) as caught:
        schema.Validator(Task)({"title": "a", "type": "plan", field: value})
    assert SECRET not in repr(caught.value.issues) + str(caught.value)


def test_an_enum_lists_its_values() -> None:
    """Specification 4.11."""
    found = issues(Task, {"title": "a", "type": "x", "color": "x"})
    assert (
        found["type"]["problem"] == found["color"]["problem"] == "is not one of the allowed values"
    )
    assert found["color"]["allowed"] == "one of red, blue"


def test_a_renamed_field_goes_by_its_wire_name() -> None:
    """Messages use the names that the client sees."""
    assert schema.Validator(Renamed)({"from": 1}) == Renamed(from_=1)
    assert issues(Renamed, {"from_": 1}).keys() == {"from", "from_"}


def test_a_rule_about_several_fields_is_an_issue_too() -> None:
    """Specification 6.11: no field at all is INVALID_PARAMS; a raise here must not end the lane."""
    assert schema.Validator(OneOf)({"a": 1}) == OneOf(a=1)
    assert issues(OneOf, {})[""]["problem"] == "give a or b"


def test_arguments_that_cannot_be_recorded_exactly_are_refused() -> None:
    """Specification 5.21: records hold no fractions."""

    class Measure(Struct):
        value: float

    assert schema.recordable(Loose(n=1)) == {"n": 1}
    with pytest.raises(Invalid, match="schema validation failed"):
        schema.recordable(Measure(value=0.5))


# What is advertised.


def test_an_input_schema_is_plain_and_keeps_what_the_author_wrote() -> None:
    """Specification 5.5: no `$ref`, no generated `title`; field names and descriptions stay."""
    made = schema.input_schema(Task)
    assert made["type"] == "object"
    assert made["required"] == ["title", "type"]
    assert made["additionalProperties"] is False
    assert made["properties"]["title"] == {"type": "string", "minLength": 1, "maxLength": 5}
    assert made["properties"]["description"]["description"] == "more"
    assert made["properties"]["color"] == {"enum": ["red", "blue"], "default": "red"}
    assert everything(made, lambda node: "$ref" in node or "$defs" in node) == []
    assert everything(made, lambda node: isinstance(node.get("title"), str)) == []
    assert "Where." not in json.dumps(made)
    assert "A colour." not in json.dumps(made)


def test_the_description_of_a_field_that_is_a_struct_stays() -> None:
    """Specification 5.4: described fields."""

    class Place(Struct):
        at: Annotated[Point, Meta(description="the place")]

    at = schema.input_schema(Place)["properties"]["at"]
    assert (at["description"], at["type"]) == ("the place", "object")
    assert at["properties"]["x"]["description"] == "across"


def test_the_values_of_an_enumeration_keep_the_order_of_their_declaration() -> None:
    """The order of states and priorities means something; msgspec would sort them."""

    class Inner(Struct):
        color: Color
        size: Literal["small", "large", "huge"]

    class Outer(Struct):
        inner: list[Inner]
        sizes: Annotated[list[Literal["small", "large", "huge"]], Meta(max_length=3)] | None = None
        shape: Circle | Square | None = None

    made = schema.input_schema(Outer)
    enums = [node["enum"] for node in everything(made, lambda node: "enum" in node)]
    assert ["red", "blue"] in enums
    assert enums.count(["small", "large", "huge"]) == 2


def test_what_an_agent_does_not_need_is_left_out() -> None:
    """A default of null, and the lookahead that makes Python's $ match only at the end."""

    class Ids(Struct):
        task_id: text.TaskId | None = None
        default: int | None = None
        pattern: str = "(?!\n)"

    made = schema.input_schema(Ids)["properties"]
    assert "default" not in made["task_id"]
    assert made["task_id"]["anyOf"][0]["pattern"] == "^T-[0-9]{4,9}$"
    assert made.keys() == {"task_id", "default", "pattern"}
    assert made["pattern"]["default"] == "(?!\n)"
    with pytest.raises(Invalid):
        schema.Validator(Ids)({"task_id": "T-0001\n"})


def test_unknown_keys_are_open_where_they_are_ignored() -> None:
    """The schema says what stage 2 does."""
    assert "additionalProperties" not in schema.input_schema(Loose)


def test_an_output_schema_is_the_envelope_and_the_names_in_it() -> None:
    """Specification 5.5: every word of tools/list costs tokens."""
    made = schema.output_schema(Loose)
    assert made["type"] == "object"
    assert made["required"] == ["ok"]
    assert made["properties"].keys() == {"ok", "data", "error"}
    assert made["properties"]["ok"] == {"type": "boolean"}
    assert made["properties"]["error"] == {"type": "object"}
    assert everything(made, lambda node: "additionalProperties" in node) == []
    assert made["properties"]["data"] == {"type": "object", "properties": {"n": {}}}


CHANGING = {"destructiveHint": False, "idempotentHint": True}


@pytest.mark.parametrize("capability", list(Capability))
def test_a_listing_has_what_a_client_shows(capability: Capability) -> None:
    """Specification 5.4: no hint that says nothing; reading needs only the one."""
    tool = Tool(
        name="t",
        title="T",
        description="Does.",
        input=Loose,
        lane="write",
        capability=capability,
        idempotent=True,
    )
    assert schema.listing(tool) == {
        "name": "t",
        "title": "T",
        "description": "Does.",
        "inputSchema": schema.input_schema(Loose),
        "annotations": {
            "readOnlyHint": capability != Capability.CHANGE,
            "openWorldHint": False,
            **(CHANGING if capability is Capability.CHANGE else {}),
        },
    }


def test_plain_turns_structs_into_values() -> None:
    """What a handler returns becomes JSON."""
    assert schema.plain([Point(x=1), {"c": Color.RED}]) == [{"x": 1, "y": 0}, {"c": "red"}]
    assert msgspec.json.encode(schema.plain(Loose(n=1))) == b'{"n":1}'


def test_a_flood_of_problems_is_answered_with_the_first_of_them() -> None:
    """An answer stays small however wrong the arguments are."""

    class Strict(msgspec.Struct, forbid_unknown_fields=True):
        pass

    with pytest.raises(Invalid) as refusal:
        schema.Validator(Strict)({f"key{n}": 1 for n in range(20_000)})
    assert len(refusal.value.issues) == MAX_ISSUES + 1
    assert "19950 more" in str(refusal.value.issues[-1]["problem"])


def test_a_lower_limit_alone_is_reported() -> None:
    """The phrase for what is allowed names only the limits that exist."""

    class Least(msgspec.Struct):
        n: Annotated[int, Meta(ge=3)]

    with pytest.raises(Invalid) as refusal:
        schema.Validator(Least)({"n": 1})
    assert refusal.value.issues[0]["allowed"] == "integer, at least 3"
