"""The msgspec type of a simple JSON Schema: msgspec decides in a tenth of the time that a checker in Python takes.

A value that fits the type matches the schema. A value that does not may still match, so the checker looks at it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Union
from uuid import UUID

import msgspec
from msgspec import Meta

# Keywords that do not restrict a value.
ANNOTATIONS = frozenset(
    {"$schema", "$defs", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly"}
)
FORMATS: Mapping[str, Any] = {
    "date-time": datetime, "date": date, "time": time, "duration": timedelta, "uuid": UUID, "decimal": Decimal,
}  # fmt: skip
NUMBER_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}
TEXT_BOUNDS = {"minLength": "min_length", "maxLength": "max_length"}
LIST_BOUNDS = {"minItems": "min_length", "maxItems": "max_length"}
PLAIN: Mapping[str, Any] = {"boolean": bool, "null": None}
ABSENT = object()


class NotSimple(Exception):
    """msgspec has no type for the schema."""


def type_of_schema(schema: object) -> Any:
    """Raises `NotSimple`."""
    try:
        found = _Types(schema).of(schema)
        # Whether msgspec takes the type shows only when it is used.
        msgspec.json.Decoder(found)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSimple(str(error)) from None
    return found


class _Types:
    def __init__(self, root: object) -> None:
        self._root = root
        self._open: set[str] = set()
        self._by_name: dict[str, Any] = {}

    def of(self, schema: object) -> Any:
        if schema is True:
            return Any
        if not isinstance(schema, dict):
            raise NotSimple("no object")
        rules = {word: value for word, value in schema.items() if word not in ANNOTATIONS}
        if not rules:
            return Any
        if rules.keys() == {"$ref"}:
            return self._referenced(rules["$ref"])
        if rules.keys() == {"anyOf"}:
            return Union[tuple(self.of(inner) for inner in rules["anyOf"])]  # noqa: UP007
        if rules.keys() <= {"type", "enum"} and "enum" in rules:
            return _enumerated(rules)
        return self._typed(rules.pop("type", None), rules)

    def _typed(self, kind: object, rules: dict[str, Any]) -> Any:
        match kind:
            case "integer":
                return _bounded(int, rules, NUMBER_BOUNDS)
            case "number":
                return _bounded(float, rules, NUMBER_BOUNDS)
            case "string":
                return _text(rules)
            case "array":
                inner = self.of(rules.pop("items", True))
                return _bounded(list[inner], rules, LIST_BOUNDS)  # type: ignore[valid-type]
            case "object":
                return self._object(rules)
            case "boolean" | "null" if not rules:
                return PLAIN[str(kind)]
            case _:
                raise NotSimple(str(kind))

    def _object(self, rules: dict[str, Any]) -> Any:
        others = rules.pop("additionalProperties", True)
        properties, required = rules.pop("properties", {}), rules.pop("required", [])
        if rules or not set(required) <= properties.keys():
            raise NotSimple("more than properties")
        if not properties and isinstance(others, dict | bool) and others is not False:
            return dict[str, self.of(others)]  # type: ignore[misc]
        if not isinstance(others, bool):
            raise NotSimple("other properties have a schema")
        names = {f"field_{place}": name for place, name in enumerate(properties)}
        fields = [
            (field, self.of(properties[name]), msgspec.NODEFAULT if name in required else ABSENT)
            for field, name in names.items()
        ]
        return msgspec.defstruct("Fields", fields, rename=names, forbid_unknown_fields=not others, kw_only=True)

    def _referenced(self, reference: object) -> Any:
        definitions = self._root.get("$defs", {}) if isinstance(self._root, dict) else {}
        name = str(reference).removeprefix("#/$defs/")
        if name not in definitions or name in self._open:
            raise NotSimple("a schema that contains itself")
        if name not in self._by_name:
            self._open.add(name)
            self._by_name[name] = self.of(definitions[name])
            self._open.discard(name)
        return self._by_name[name]


def _enumerated(rules: dict[str, Any]) -> Any:
    values = rules["enum"]
    if rules.get("type", "string") != "string" or not all(isinstance(value, str) for value in values):
        raise NotSimple("not only text")
    return Literal[tuple(values)]


def _text(rules: dict[str, Any]) -> Any:
    if "format" not in rules and "contentEncoding" not in rules:
        return _bounded(str, rules, TEXT_BOUNDS)
    if rules == {"contentEncoding": "base64"}:
        return bytes
    if rules.keys() == {"format"} and rules["format"] in FORMATS:
        return FORMATS[rules["format"]]
    if rules.keys() == {"format"}:
        return str
    raise NotSimple("a format with other rules")


def _bounded(kind: Any, rules: dict[str, Any], words: Mapping[str, str]) -> Any:
    if not rules.keys() <= words.keys():
        raise NotSimple(", ".join(rules))
    return Annotated[kind, Meta(**{words[word]: limit for word, limit in rules.items()})] if rules else kind
