"""The JSON Schemas of Python types that msgspec decodes, with the formats that `msgspec.json.schema` leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import inspect

Schema = dict[str, Any]

PLAIN: Mapping[type, Schema] = {
    inspect.AnyType: {},
    inspect.RawType: {},
    inspect.NoneType: {"type": "null"},
    inspect.BoolType: {"type": "boolean"},
    inspect.ByteArrayType: {"type": "string", "contentEncoding": "base64"},
    inspect.BytesType: {"type": "string", "contentEncoding": "base64"},
    inspect.DateTimeType: {"type": "string", "format": "date-time"},
    inspect.DateType: {"type": "string", "format": "date"},
    inspect.TimeType: {"type": "string", "format": "time"},
    inspect.TimeDeltaType: {"type": "string", "format": "duration"},
    inspect.UUIDType: {"type": "string", "format": "uuid"},
    inspect.DecimalType: {"anyOf": [{"type": "string", "format": "decimal"}, {"type": "number"}]},
}
NUMBER_BOUNDS = {
    "gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum", "multiple_of": "multipleOf",
}  # fmt: skip
TEXT_BOUNDS = {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}
LIST_BOUNDS = {"min_length": "minItems", "max_length": "maxItems"}
OBJECT_BOUNDS = {"min_length": "minProperties", "max_length": "maxProperties"}
WHOLE_NUMBER = "^-?[0-9]+$"


class NoSchema(Exception):
    """The type has no JSON form that msgspec knows."""


class TypeSchemas:
    """Makes schemas that share their definitions."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._names: dict[Any, str] = {}

    def of(self, annotation: Any) -> Schema:
        """Raises `NoSchema`."""
        try:
            return self._of(inspect.type_info(annotation))
        except (TypeError, ValueError, NameError, RecursionError) as error:
            raise NoSchema(str(error)) from None

    def _of(self, kind: inspect.Type) -> Schema:
        if (plain := PLAIN.get(type(kind))) is not None:
            return dict(plain)
        match kind:
            case inspect.Metadata():
                return {**self._of(kind.type), **(kind.extra_json_schema or {})}
            case inspect.IntType():
                return _bounded({"type": "integer"}, kind, NUMBER_BOUNDS)
            case inspect.FloatType():
                return _bounded({"type": "number"}, kind, NUMBER_BOUNDS)
            case inspect.StrType():
                return _bounded({"type": "string"}, kind, TEXT_BOUNDS)
            case inspect.LiteralType():
                return _enumeration(kind.values)
            case inspect.UnionType():
                return {"anyOf": [self._of(one) for one in kind.types]}
            case inspect.EnumType():
                return self._defined(kind.cls, lambda: _enumeration(one.value for one in kind.cls))
            case inspect.CustomType() if isinstance(kind.cls, type) and issubclass(kind.cls, PurePath):
                return {"type": "string", "format": "path"}
            case _:
                return self._container(kind)

    def _container(self, kind: inspect.Type) -> Schema:
        match kind:
            case inspect.ListType() | inspect.VarTupleType() | inspect.CollectionType():
                return _bounded({"type": "array", "items": self._of(kind.item_type)}, kind, LIST_BOUNDS)
            case inspect.SetType() | inspect.FrozenSetType():
                found = {"type": "array", "items": self._of(kind.item_type), "uniqueItems": True}
                return _bounded(found, kind, LIST_BOUNDS)
            case inspect.TupleType():
                return self._tuple([self._of(one) for one in kind.item_types], len(kind.item_types))
            case inspect.DictType():
                found = {"type": "object", "additionalProperties": self._of(kind.value_type)}
                if isinstance(kind.key_type, inspect.IntType):
                    found["propertyNames"] = {"pattern": WHOLE_NUMBER}
                return _bounded(found, kind, OBJECT_BOUNDS)
            case inspect.NamedTupleType():
                return self._defined(kind.cls, lambda: self._array(kind.fields))
            case inspect.StructType():
                return self._defined(kind.cls, lambda: self._struct(kind))
            case inspect.TypedDictType() | inspect.DataclassType():
                return self._defined(kind.cls, lambda: self._object(kind.fields))
            case _:
                raise NoSchema(f"{kind!r} has no JSON form")

    def _defined(self, cls: Any, make: Any) -> Schema:
        name = self._names.get(cls)
        if name is None:
            base = getattr(cls, "__name__", None) or str(cls).rpartition(".")[2]
            name, number = base, 2
            while name in self.definitions:
                name, number = f"{base}{number}", number + 1
            self._names[cls] = name
            # A type may contain itself.
            self.definitions[name] = {}
            self.definitions[name] = {"title": base, **make()}
        return {"$ref": f"#/$defs/{name}"}

    def _struct(self, kind: inspect.StructType) -> Schema:
        if kind.array_like:
            return self._array(kind.fields, [] if kind.tag is None else [{"const": kind.tag}])
        found = self._object(kind.fields)
        if kind.tag_field is not None:
            found["properties"] = {kind.tag_field: {"const": kind.tag}, **found["properties"]}
            found["required"] = [kind.tag_field, *found.get("required", ())]
        return {**found, "additionalProperties": False} if kind.forbid_unknown_fields else found

    def _object(self, fields: Sequence[inspect.Field]) -> Schema:
        found: Schema = {"type": "object", "properties": {one.encode_name: self._field(one) for one in fields}}
        required = [one.encode_name for one in fields if one.required]
        return {**found, "required": required} if required else found

    def _array(self, fields: Sequence[inspect.Field], first: Sequence[Schema] = ()) -> Schema:
        return self._tuple(
            [*first, *(self._field(one) for one in fields)], len(first) + sum(one.required for one in fields)
        )

    def _tuple(self, items: list[Schema], least: int) -> Schema:
        return {"type": "array", "prefixItems": items, "minItems": least, "maxItems": len(items)}

    def _field(self, field: inspect.Field) -> Schema:
        return with_default(self._of(field.type), field.default)


def with_default(schema: Schema, default: Any) -> Schema:
    """The schema with its default, if the default is a JSON value."""
    if default is msgspec.NODEFAULT:
        return schema
    try:
        return {**schema, "default": msgspec.to_builtins(default, str_keys=True)}
    except (TypeError, ValueError, RecursionError):
        return schema


def _enumeration(values: Iterable[Any]) -> Schema:
    found = [msgspec.to_builtins(value) for value in values]
    return {"type": "string", "enum": found} if all(isinstance(value, str) for value in found) else {"enum": found}


def _bounded(schema: Schema, kind: Any, words: Mapping[str, str]) -> Schema:
    limits = ((word, getattr(kind, name, None)) for name, word in words.items())
    return schema | {word: limit for word, limit in limits if limit is not None}
