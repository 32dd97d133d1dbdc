"""msgspec structs as JSON Schema and as stage 2.

msgspec stops at the first problem of a value. Once it has found one, stage 2 goes field by field,
so that an answer lists every issue: where, what was wrong, what is allowed, and never the value
itself.
"""

import typing
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from typing import Any, Literal

import msgspec

from colibri.core import canonical
from colibri.core.errors import Invalid
from colibri.core.modes import Capability
from colibri.tools import text
from colibri.tools.tool import Answer, Tool, is_struct

JSON = dict[str, Any]
MAX_ISSUES = 50

_ERROR = {
    "type": "object",
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "details": {"type": "object"},
    },
    "required": ["code", "message"],
}


def listing(tool: Tool) -> JSON:
    """A tool as tools/list shows it."""
    shown: JSON = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": input_schema(tool.input),
        "annotations": {
            "readOnlyHint": tool.capability is not Capability.CHANGE,
            "destructiveHint": False,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }
    if tool.output is not None:
        shown["outputSchema"] = output_schema(tool.output, tool.pattern)
    return shown


def input_schema(struct: type[msgspec.Struct]) -> JSON:
    """What tools/list advertises for the arguments."""
    schema = _inline(struct)
    if struct.__struct_config__.forbid_unknown_fields:
        schema["additionalProperties"] = False
    return schema


def output_schema(struct: type[msgspec.Struct], pattern: str) -> JSON:
    """The envelope around an output: an object at the root, the failure branch inside."""
    data = _inline(struct)
    if pattern == "B":
        refusal = {
            "type": "object",
            "properties": {"ok": {"const": False}, "error": _ERROR},
            "required": ["ok", "error"],
        }
        data = {"anyOf": [data, refusal]}
    return {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "data": data, "error": _ERROR},
        "required": ["ok"],
    }


def _inline(struct: type[msgspec.Struct]) -> JSON:
    """The schema without what only costs an agent tokens: `$ref`s, generated titles, null defaults.

    The values of an enumeration are in the order of their declaration, which may mean something;
    msgspec sorts them.
    """
    schema = msgspec.json.schema(struct)
    definitions = schema.get("$defs", {})
    declared = {frozenset(values): list(values) for values in _enumerations(struct)}

    def resolve(node: Any) -> Any:
        if isinstance(node, list):
            return [resolve(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            target = resolve(definitions[node["$ref"].rpartition("/")[2]])
            beside = {key: value for key, value in node.items() if key not in ("$ref", "$defs")}
            return {**target, **beside}
        # Under `properties` a title is a field, and its value a schema.
        generated = isinstance(node.get("title"), str)
        skipped = {"title", "description", "$defs"} if generated else {"$defs"}
        return {
            key: restored(key, resolve(value))
            for key, value in node.items()
            if key not in skipped and (key, value) != ("default", None)
        }

    def restored(key: str, value: Any) -> Any:
        if key == "enum" and isinstance(value, list):
            return declared.get(frozenset(value), value)
        if key == "pattern" and isinstance(value, str):
            return value.replace(text.NO_LINE_END, "")
        return value

    resolved: JSON = resolve(schema)
    return resolved


def _enumerations(annotation: Any) -> Iterator[tuple[Any, ...]]:
    """The values of every enumeration within a type, as they were declared."""
    if typing.get_origin(annotation) is Literal:
        yield typing.get_args(annotation)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        yield tuple(member.value for member in annotation)
    elif is_struct(annotation):
        for field in msgspec.structs.fields(annotation):
            yield from _enumerations(field.type)
    else:
        for part in typing.get_args(annotation):
            yield from _enumerations(part)


class Validator:
    """Stage 2 for a struct: arguments in, the struct out, or Invalid with every issue.

    A struct may have ALIASES, other names of its fields, and a __post_init__ that raises ValueError
    for what no field says alone.
    """

    def __init__(self, struct: type[msgspec.Struct]) -> None:
        fields = msgspec.structs.fields(struct)
        self._struct = struct
        self._rules = [(one.name, rule) for one in fields if (rule := text.rule_of(one.type))]
        self._aliases: dict[str, str] = getattr(struct, "ALIASES", {})

    @cached_property
    def _schemas(self) -> JSON:
        """Only a problem asks for them: schemas of all tools would delay the first call."""
        schemas: JSON = input_schema(self._struct)["properties"]
        return schemas

    def __call__(self, arguments: object) -> msgspec.Struct:
        if not isinstance(arguments, dict):
            raise Invalid([issue("", "not an object", "an object")])
        try:
            args = msgspec.convert(arguments, self._struct)
            if self._aliases.keys().isdisjoint(arguments) and not self._is_breached(args):
                return args
        except msgspec.ValidationError:
            pass  # it names one problem: field by field they are all told
        return self._field_by_field(arguments)

    def _is_breached(self, args: msgspec.Struct) -> bool:
        for attribute, rule in self._rules:
            value = getattr(args, attribute)
            if isinstance(value, str) and rule.breach(value):
                return True
        return False

    def _field_by_field(self, arguments: JSON) -> msgspec.Struct:
        given, issues = _unaliased(arguments, self._aliases)
        names = list(self._schemas)
        strict = self._struct.__struct_config__.forbid_unknown_fields
        unknown = [key for key in given if key not in names] if strict else []
        issues += [_unknown(key, names) for key in unknown[:MAX_ISSUES]]
        values: dict[str, object] = {}
        for field in msgspec.structs.fields(self._struct):
            issues += _take(field, self._schemas[field.encode_name], given, values)
        if issues:
            raise Invalid(_shortened(issues, len(unknown) - MAX_ISSUES))
        try:
            return self._struct(**values)
        except (TypeError, ValueError) as problem:  # its __post_init__: what no field says alone
            raise Invalid([issue("", str(problem), "see the tool's description")]) from None


def _shortened(issues: list[dict[str, object]], unsaid: int) -> list[dict[str, object]]:
    """The first MAX_ISSUES: nobody reads more, and the answer must stay small."""
    left = len(issues) - MAX_ISSUES + max(0, unsaid)
    if left <= 0:
        return issues
    more = issue("", f"and {left} more problems", "see the tool's schema")
    return [*issues[:MAX_ISSUES], more]


def _take(
    field: msgspec.structs.FieldInfo, schema: JSON, given: JSON, values: dict[str, object]
) -> list[dict[str, object]]:
    """Convert what was given for a field into `values`, or say what is wrong with it."""
    name = field.encode_name
    if name not in given:
        return [issue(name, "is required", _allowed(schema))] if field.required else []
    try:
        value = msgspec.convert(given[name], field.type)
    except msgspec.ValidationError as problem:
        return [_misfit(name, str(problem), schema)]
    values[field.name] = value
    rule = text.rule_of(field.type)
    if rule is not None and isinstance(value, str) and (wrong := rule.breach(value)):
        return [issue(name, wrong, rule.allowed)]
    return []


def _unaliased(arguments: JSON, aliases: dict[str, str]) -> tuple[JSON, list[dict[str, object]]]:
    given, issues = dict(arguments), []
    for alias, name in aliases.items():
        if alias in given:
            value = given.pop(alias)
            if name in given:
                issues.append(issue(alias, f"is another name of {name}", f"only {name}"))
            given[name] = value
    return given, issues


# What canonical.dump does, in a tenth of the time; not loaded where the first answers are made.
dump = msgspec.json.Encoder(order="sorted").encode


def plain(value: object) -> Any:
    """Structs and what they hold as plain values."""
    return msgspec.to_builtins(value)


def encode(value: object) -> bytes:
    """What a handler returned, as RFC 8785 bytes; ValueError if it has none."""
    if isinstance(value, Answer):
        return dump(value)
    return canonical.encode(plain(value), dump)


def recordable(args: object) -> Any:
    """Validated arguments as the ledger keeps them, or Invalid when it cannot keep them exactly."""
    values = plain(args)
    try:
        canonical.check(values)
    except ValueError as problem:
        raise Invalid([issue("", f"cannot be recorded: {problem}", "no fractions")]) from None
    return values


def issue(path: str, problem: str, allowed: str) -> dict[str, object]:
    """One thing that is wrong with the arguments."""
    return {"path": path, "problem": problem, "allowed": allowed}


def _unknown(key: str, names: list[str]) -> dict[str, object]:
    from difflib import get_close_matches  # noqa: PLC0415 - only for this mistake

    near = get_close_matches(key[:64], names, n=1)
    hint = f"is not a known field; did you mean {near[0]}?" if near else "is not a known field"
    shown = "".join(c if c.isprintable() else "?" for c in key[:64])
    return issue(shown, hint, f"the fields {', '.join(names) or '(none)'}")


def _misfit(name: str, message: str, schema: JSON) -> dict[str, object]:
    problem, _, where = message.partition(" - at `$")
    if problem.startswith(("Invalid enum value", "Invalid value")):
        problem = "is not one of the allowed values"  # msgspec would repeat the value
    elif "matching regex" in problem:
        problem = "is not of the right form"
    else:
        problem = problem.replace("`", "").replace("Expected", "expected")
    return issue(name + where.rstrip("`"), problem, _allowed(schema))


def _allowed(schema: JSON) -> str:
    """A schema as a phrase."""
    if "anyOf" in schema:
        return " or ".join(_allowed(option) for option in schema["anyOf"])
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
        parts.append(f"each {_allowed(schema['items'])}")
    return ", ".join(parts)
