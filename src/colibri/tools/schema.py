"""Turns msgspec structs into JSON Schemas and validators (stage 2).

msgspec stops at the first problem of a value. Stage 2 then checks field by field, so that the
answer lists every issue: where, what is wrong, what is allowed, but never the value itself.
"""

import typing
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, Literal, Union

import msgspec

from colibri.core import canonical
from colibri.core.errors import Invalid
from colibri.core.modes import Capability
from colibri.tools import text
from colibri.tools.issues import MAX_ISSUES, allowed_by, issue, misfit, shortened, unknown
from colibri.tools.tool import Answer, Tool, is_struct

JSON = dict[str, Any]

# Claude Code shows its model the tools with this mark at once, and hides others behind a search.
ALWAYS_LOAD = "anthropic/alwaysLoad"

# Left out of tools/list, where every word costs a model tokens in every turn.
_UNSAID = frozenset({"examples", "pattern", "minLength", "minItems", "maxLength"})


def listing(tool: Tool) -> JSON:
    """A tool as tools/list shows it."""
    changes = tool.capability is Capability.CHANGE
    shown: JSON = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": _short(_without_nulls(tool.input)),
        "annotations": {"readOnlyHint": not changes, "openWorldHint": False},
    }
    if changes:
        shown["annotations"] |= {"destructiveHint": False, "idempotentHint": tool.idempotent}
    if tool.output is not None:
        shown["outputSchema"] = output_schema(tool.output)
    if tool.opens_work:
        shown["_meta"] = {ALWAYS_LOAD: True}
    return shown


def _short(node: Any) -> Any:
    """A schema without what a refusal says anyway when it matters."""
    if isinstance(node, list):
        return [_short(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _short(value) for key, value in node.items() if key not in _UNSAID}


def _without_nulls(struct: type[msgspec.Struct]) -> JSON:
    """The arguments, without offering null for fields whose default is null."""
    schema = input_schema(struct)
    for field in msgspec.structs.fields(struct):
        shown = schema["properties"][field.encode_name]
        if field.default is None and len(shown.get("anyOf", ())) == 2:  # noqa: PLR2004 - and null
            (option,) = (one for one in shown.pop("anyOf") if one != {"type": "null"})
            schema["properties"][field.encode_name] = {**shown, **option}
    return schema


def input_schema(struct: type[msgspec.Struct]) -> JSON:
    """The schema of the arguments in tools/list."""
    schema = _inline(struct)
    if struct.__struct_config__.forbid_unknown_fields:
        schema["additionalProperties"] = False
    return schema


def output_schema(struct: type[msgspec.Struct]) -> JSON:
    """The schema of the envelope around an output, with the output's member names."""
    names: JSON = {field.encode_name: {} for field in msgspec.structs.fields(struct)}
    data = {"type": "object", "properties": names}
    return {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "data": data, "error": {"type": "object"}},
        "required": ["ok"],
    }


def _inline(struct: type[msgspec.Struct]) -> JSON:
    """The schema without what only costs an agent tokens: `$ref`s, generated titles, null defaults.

    The values of an enumeration keep the order of their declaration, which may carry meaning;
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
            others = {key: value for key, value in node.items() if key not in ("$ref", "$defs")}
            return {**target, **others}
        # Under `properties`, `title` is the name of a field and its value is a schema.
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

    A struct may have ALIASES, other names for its fields, and a __post_init__ that raises
    ValueError or Invalid for rules about several fields.
    """

    def __init__(self, struct: type[msgspec.Struct]) -> None:
        fields = msgspec.structs.fields(struct)
        self._struct = struct
        self._rules = {one.encode_name: rule for one in fields if (rule := text.rule_of(one.type))}
        self._aliases: dict[str, str] = getattr(struct, "ALIASES", {})

    @cached_property
    def _schemas(self) -> JSON:
        """Made when a problem needs them: the schemas of all tools would delay the first call."""
        schemas: JSON = input_schema(self._struct)["properties"]
        return schemas

    @cached_property
    def _inner(self) -> "dict[str, Validator]":
        """The validators of fields that are structs."""
        fields = msgspec.structs.fields(self._struct)
        return {
            one.encode_name: Validator(inside) for one in fields for inside in _struct_in(one.type)
        }

    def __call__(self, arguments: object) -> msgspec.Struct:
        if not isinstance(arguments, dict):
            raise Invalid([issue("", "not an object", "an object")])
        try:
            args = msgspec.convert(arguments, self._struct)
            if self._aliases.keys().isdisjoint(arguments) and not self._is_breached(arguments):
                return args
        except msgspec.ValidationError:
            pass  # it names only the first problem: go field by field to list them all
        return self._field_by_field(arguments)

    def _is_breached(self, given: JSON) -> bool:
        """Whether a text among arguments of the right types breaks its rule."""
        for name, value in given.items():
            rule = self._rules.get(name)
            if rule is not None and isinstance(value, str) and rule.breach(value):
                return True
            inner = self._inner.get(name) if isinstance(value, dict) else None
            if inner is not None and inner._is_breached(value):
                return True
        return False

    def _field_by_field(self, arguments: JSON) -> msgspec.Struct:
        given, issues = _unaliased(arguments, self._aliases)
        names = list(self._schemas)
        strict = self._struct.__struct_config__.forbid_unknown_fields
        strange = [key for key in given if key not in names] if strict else []
        issues += [unknown(key, names) for key in strange[:MAX_ISSUES]]
        values: dict[str, object] = {}
        for field in msgspec.structs.fields(self._struct):
            issues += self._take(field, given, values)
        if issues:
            raise Invalid(shortened(issues, len(strange) - MAX_ISSUES))
        try:
            return self._struct(**values)
        except (
            TypeError,
            ValueError,
        ) as problem:  # from __post_init__: a rule about several fields
            raise Invalid([issue("", str(problem), "see the tool's description")]) from None

    def _take(
        self, field: msgspec.structs.FieldInfo, given: JSON, values: dict[str, object]
    ) -> list[dict[str, object]]:
        """Convert the argument for a field into `values`, or add what is wrong with it."""
        name, inner = field.encode_name, self._inner.get(field.encode_name)
        schema = self._schemas[name]
        if name not in given:
            return [issue(name, "is required", allowed_by(schema))] if field.required else []
        try:
            if inner is not None and isinstance(given[name], dict):
                values[field.name] = inner(given[name])
                return []
            value = values[field.name] = msgspec.convert(given[name], field.type)
        except Invalid as problem:
            return [{**one, "path": f"{name}.{one['path']}".rstrip(".")} for one in problem.issues]
        except msgspec.ValidationError as problem:
            return [misfit(name, str(problem), schema)]
        rule = text.rule_of(field.type)
        if rule is not None and isinstance(value, str) and (wrong := rule.breach(value)):
            return [issue(name, wrong, rule.allowed)]
        return []


def _struct_in(annotation: Any) -> list[type[msgspec.Struct]]:
    """The struct that a type is or may be; empty if there are several."""
    if is_struct(annotation):
        return [annotation]
    may_be = typing.get_origin(annotation) in (Annotated, Union, UnionType)
    parts = typing.get_args(annotation) if may_be else ()
    found = [one for part in parts for one in _struct_in(part)]
    return found if len(found) == 1 else []


def _unaliased(arguments: JSON, aliases: dict[str, str]) -> tuple[JSON, list[dict[str, object]]]:
    given, issues = dict(arguments), []
    for alias, name in aliases.items():
        if alias in given:
            value = given.pop(alias)
            if name in given:
                issues.append(issue(alias, f"is another name of {name}", f"only {name}"))
            given[name] = value
    return given, issues


# Same result as canonical.dump in a tenth of the time; not loaded yet for the first answers.
dump = msgspec.json.Encoder(order="sorted").encode


def plain(value: object) -> Any:
    """Structs and their contents as plain values."""
    return msgspec.to_builtins(value)


def encode(value: object) -> bytes:
    """What a handler returned, as RFC 8785 bytes; ValueError if that is impossible."""
    if isinstance(value, Answer):
        return dump(value)
    return canonical.encode(plain(value), dump)


def recordable(args: object) -> Any:
    """Validated arguments as the ledger keeps them; Invalid if it cannot keep them exactly."""
    values = plain(args)
    try:
        canonical.check(values)
    except ValueError as problem:
        raise Invalid([issue("", f"cannot be recorded: {problem}", "no fractions")]) from None
    return values
