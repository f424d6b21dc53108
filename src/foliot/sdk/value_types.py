"""`ValueType`: turns JSON values into the Python values that an annotation asks for, and describes them by a schema.

msgspec converts what it knows: plain types, containers, dataclasses, structs, enumerations, dates. pydantic converts
annotations that contain its types, and those that msgspec does not take. An annotation that neither takes, such as a
class of your own, is not converted.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import PurePath
from typing import Any, TypeVar, get_args, is_typeddict

import msgspec

from foliot.errors import Invalid
from foliot.model.json_text import to_plain
from foliot.sdk.type_schemas import NoSchema, Schema, TypeSchemas
from foliot.validation_errors import to_invalid

DEPTH_MAX = 10
WHOLE = "payload"


class ValueType:
    """Any JSON value, as it is."""

    msgspec_type: Any = Any
    """The type to decode with msgspec. Any: msgspec does not convert the value."""
    converts = False
    """Whether `convert` does more than msgspec."""

    def convert(self, value: Any) -> Any:
        """Raises `Invalid`, which names the field inside the value."""
        return value

    def schema(self, _: TypeSchemas) -> Schema:
        return {}


ANY = ValueType()


class MsgspecType(ValueType):
    def __init__(self, annotation: Any) -> None:
        self.msgspec_type = annotation

    def convert(self, value: Any) -> Any:
        try:
            return msgspec.convert(value, self.msgspec_type, str_keys=True, dec_hook=from_plain)
        except msgspec.ValidationError as error:
            raise to_invalid(error, whole=WHOLE) from None

    def schema(self, schemas: TypeSchemas) -> Schema:
        return schemas.of(self.msgspec_type)


class PydanticType(ValueType):
    converts = True

    def __init__(self, annotation: Any, *, is_strict: bool) -> None:
        from pydantic import TypeAdapter  # Slow to import. The task has imported it, or needs it.

        self._adapter: Any = TypeAdapter(annotation)
        self._is_strict = is_strict or None
        self._schema = self._adapter.json_schema(
            ref_template="#/$defs/{model}", schema_generator=_with_decimal_format()
        )

    def convert(self, value: Any) -> Any:
        from pydantic import ValidationError

        try:
            # By way of JSON text, by whose rules a list may become a tuple, and a text a date.
            return self._adapter.validate_json(msgspec.json.encode(to_plain(value)), strict=self._is_strict)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
            field = place.removeprefix(".") or WHOLE
            raise Invalid(f"{field}: {first['msg']}", field=field) from None

    def schema(self, schemas: TypeSchemas) -> Schema:
        found = dict(self._schema)
        names: dict[str, str] = {}
        definitions = found.pop("$defs", {})
        for name, definition in definitions.items():
            new, number = name, 2
            while new in schemas.definitions and schemas.definitions[new] != definition:
                new, number = f"{name}{number}", number + 1
            names[f"#/$defs/{name}"] = f"#/$defs/{new}"
        for name, definition in definitions.items():
            schemas.definitions[names[f"#/$defs/{name}"].removeprefix("#/$defs/")] = _renamed(definition, names)
        return dict(_renamed(found, names))


@cache
def _with_decimal_format() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """Says `format: decimal` where pydantic has a pattern, which checks do not try because it looks ahead."""

        def decimal_schema(self, schema: Any) -> Schema:
            found: Schema = super().decimal_schema(schema)
            branches = [
                {"type": "string", "format": "decimal"} if one.get("type") == "string" else one
                for one in found.get("anyOf", ())
            ]
            return {**found, "anyOf": branches} if branches else found

    return Generator


def value_type_of(annotation: Any) -> ValueType:
    """Never raises: an annotation that can't be honoured allows everything."""
    if annotation in (Any, object) or isinstance(annotation, TypeVar):
        return ANY
    if not has_pydantic(annotation):
        try:
            TypeSchemas().of(annotation)
            msgspec.json.Decoder(annotation, dec_hook=from_plain)
        except (NoSchema, TypeError, ValueError, NameError):
            return _by_pydantic(annotation, is_strict=True)
        return MsgspecType(annotation)
    return _by_pydantic(annotation, is_strict=False)


def _by_pydantic(annotation: Any, *, is_strict: bool) -> ValueType:
    try:
        return PydanticType(annotation, is_strict=is_strict)
    except Exception:
        # pydantic has many errors for types that it does not take, and calls code of the types.
        return ANY


def from_plain(kind: type, value: Any) -> Any:
    """Makes the values of types that msgspec does not know."""
    if issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    raise ValueError(f"must be text, not {type(value).__name__}" if issubclass(kind, PurePath) else "is not supported")


def has_pydantic(annotation: Any) -> bool:
    """Whether a type of pydantic occurs in the annotation. Looks at nothing if pydantic is not imported."""
    return "pydantic" in sys.modules and any(map(_is_of_pydantic, _parts(annotation, 0)))


def _parts(annotation: Any, depth: int) -> Iterator[Any]:
    yield annotation
    if depth == DEPTH_MAX:
        return
    inner: list[Any] = [*get_args(annotation), *getattr(annotation, "__metadata__", ())]
    if isinstance(annotation, type) and (
        dataclasses.is_dataclass(annotation) or is_typeddict(annotation) or hasattr(annotation, "_fields")
    ):
        inner += _hints(annotation)
    for one in inner:
        yield from _parts(one, depth + 1)


def _hints(cls: type) -> list[Any]:
    from typing import get_type_hints

    try:
        return list(get_type_hints(cls, include_extras=True).values())
    except (NameError, TypeError, AttributeError):
        return []


def _is_of_pydantic(part: Any) -> bool:
    if hasattr(part, "__get_pydantic_core_schema__") or hasattr(part, "__pydantic_core_schema__"):
        return True
    module = getattr(part if isinstance(part, type) else type(part), "__module__", "") or ""
    return module.partition(".")[0] in ("pydantic", "pydantic_core", "annotated_types")


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: names.get(inner, inner) if key == "$ref" and isinstance(inner, str) else _renamed(inner, names)
            for key, inner in value.items()
        }
    return [_renamed(inner, names) for inner in value] if isinstance(value, list) else value
