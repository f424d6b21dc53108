"""The JSON Schema of a task's payload, in words that fit into a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from foliot.cli.columns import Column
from foliot.cli.tables import table

DEPTH_MAX = 4
EXAMPLES: Mapping[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
FORMATS: Mapping[str, str] = {
    "date-time": "2030-01-31T12:00:00Z",
    "date": "2030-01-31",
    "time": "12:00:00",
    "duration": "PT1H",
    "uuid": "0190a6f0-8d3a-7c4e-9b1f-2f6d5c3a1b00",
    "decimal": "1.50",
}


def arguments_in_short(schema: Mapping[str, Any] | None) -> str:
    """Such as `customer_id, note?`: a question mark stands for an optional argument."""
    if schema is None:
        return "any"
    required = set(schema.get("required", ()))
    names = [name if name in required else f"{name}?" for name in schema.get("properties", {})]
    return ", ".join(names)


def argument_table(schema: Mapping[str, Any]) -> str:
    definitions, required = schema.get("$defs", {}), set(schema.get("required", ()))
    rows = [
        (
            name, type_in_words(given, definitions), "required" if name in required else default_of(given),
            str(given.get("description", "")),
        )
        for name, given in schema.get("properties", {}).items()
    ]  # fmt: skip
    return table(("ARGUMENT", Column("TYPE", "text"), "DEFAULT", Column("DESCRIPTION", "wrapped")), rows) or (
        "It has no arguments."
    )


def default_of(given: Mapping[str, Any]) -> str:
    return msgspec.json.encode(given["default"]).decode() if "default" in given else "optional"


def type_in_words(given: Any, definitions: Mapping[str, Any], depth: int = 0) -> str:
    if not isinstance(given, dict) or depth > DEPTH_MAX:
        return "any"
    if isinstance(given.get("enum"), list):
        return " | ".join(msgspec.json.encode(value).decode() for value in given["enum"])
    if "const" in given:
        return msgspec.json.encode(given["const"]).decode()
    for several in ("anyOf", "oneOf"):
        if several in given:
            return " | ".join(dict.fromkeys(type_in_words(one, definitions, depth + 1) for one in given[several]))
    if "$ref" in given:
        name = str(given["$ref"]).rpartition("/")[2]
        inside = definitions.get(name, {})
        return name if "properties" in inside else type_in_words(inside, definitions, depth + 1)
    kind = given.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(map(str, kind))
    if kind == "array":
        return f"list of {type_in_words(given.get('items'), definitions, depth + 1)}"
    return str(given.get("format", kind) if kind == "string" else kind)


def example_payload(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The required arguments, with values of their types."""
    required, definitions = schema.get("required", ()), schema.get("$defs", {})
    properties = schema.get("properties", {})
    return {name: _example(properties.get(name), definitions) for name in required}


def _example(given: Any, definitions: Mapping[str, Any], depth: int = 0) -> Any:
    if not isinstance(given, dict) or depth > DEPTH_MAX:
        return None
    if given.get("enum"):
        return given["enum"][0]
    for several in ("anyOf", "oneOf"):
        if given.get(several):
            return _example(given[several][0], definitions, depth + 1)
    if "$ref" in given:
        return _example(definitions.get(str(given["$ref"]).rpartition("/")[2]), definitions, depth + 1)
    if "properties" in given:
        return {
            name: _example(given["properties"].get(name), definitions, depth + 1) for name in given.get("required", ())
        }
    return _simple_example(given, definitions, depth)


def _simple_example(given: Mapping[str, Any], definitions: Mapping[str, Any], depth: int) -> Any:
    if given.get("format") in FORMATS:
        return FORMATS[given["format"]]
    if "const" in given or "default" in given:
        return given.get("const", given.get("default"))
    kind = given.get("type", "string")
    if kind in ("integer", "number") and "minimum" in given:
        return given["minimum"]
    if kind == "array" and given.get("minItems"):
        return [_example(given.get("items"), definitions, depth + 1)]
    return EXAMPLES.get(kind[0] if isinstance(kind, list) else kind)
