"""`Signature`: the parameters of a task's function, their types, and the JSON Schema of its payload.

A payload's keys are the function's arguments. The submitting side checks arguments by the schema and writes them as
JSON; the worker turns the JSON into the values that the annotations ask for. Nothing is looked at before the first use,
when all names of a module are defined.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, get_type_hints

import msgspec

from foliot.errors import Invalid
from foliot.model.json_schema import DIALECT, SCHEMA_MAX_BYTES, Checker, UnusableSchema, invalid
from foliot.model.json_schema_check import Unknown
from foliot.model.json_text import to_plain
from foliot.model.payloads import within_payload
from foliot.sdk.type_schemas import NoSchema, Schema, TypeSchemas, with_default
from foliot.sdk.value_types import ANY, ValueType, from_plain, value_type_of
from foliot.validation_errors import to_invalid

Function = Callable[..., Any]
Payload = dict[str, Any]
Given = Mapping[str, Any]
CONTEXT = "ctx"
ABSENT = object()
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: ValueType
    default: Any
    """`msgspec.NODEFAULT` for an argument that must be given."""
    kind: Any

    @property
    def is_required(self) -> bool:
        return self.default is msgspec.NODEFAULT


class Signature:
    def __init__(
        self, function: Function, local_names: Mapping[str, Any] | None = None, *, called: Function | None = None
    ) -> None:
        """`local_names` are names that annotations may use, beside those of the function's module. `called` takes the
        same arguments as the function, and is called in its place."""
        self.function = function
        self._called = called or function
        self._local_names = local_names or {}

    @cached_property
    def _found(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.function)
        except (TypeError, ValueError):
            return None

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return hints_of(self.function, self._local_names)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The fields that a payload may have, in order, without `*arguments` and `**arguments`."""
        return tuple(
            Parameter(
                one.name,
                self._type_of(one.name),
                msgspec.NODEFAULT if one.default is one.empty else one.default,
                one.kind,
            )
            for one in (self._found.parameters.values() if self._found else ())
            if one.name != CONTEXT and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        )

    @cached_property
    def others(self) -> ValueType | None:
        """The type of the function's `**arguments`. None: it has none."""
        for one in self._found.parameters.values() if self._found else ():
            if one.kind is one.VAR_KEYWORD:
                return self._type_of(one.name)
        return None

    @cached_property
    def result(self) -> ValueType:
        """The type of the return value."""
        return self._type_of("return")

    @cached_property
    def is_open(self) -> bool:
        """Nothing is known of the arguments, or a decorator around the function may add and take some."""
        return self._found is None or hasattr(self.function, "__wrapped__")

    @cached_property
    def schema(self) -> Schema | None:
        """The schema of the payload. None: the function's parameters can't be read, or the schema is too large."""
        if self._found is None:
            return None
        schemas = TypeSchemas()
        properties = {one.name: with_default(_schema_of(one.type, schemas), one.default) for one in self.parameters}
        schema: Schema = {"$schema": DIALECT, "type": "object", "properties": properties}
        if required := [one.name for one in self.parameters if one.is_required and not self.is_open]:
            schema["required"] = required
        if self.others is not None and (others := _schema_of(self.others, schemas)):
            schema["additionalProperties"] = others
        elif self.others is None and not self.is_open:
            schema["additionalProperties"] = False
        if schemas.definitions:
            schema["$defs"] = schemas.definitions
        try:
            size = len(msgspec.json.encode(schema))
        except (TypeError, ValueError, RecursionError):
            return None
        return schema if size <= SCHEMA_MAX_BYTES else None

    @cached_property
    def checker(self) -> Checker | None:
        try:
            return None if self.schema is None else Checker(self.schema)
        except UnusableSchema:
            return None

    # --- on the side that submits

    def payload(self, args: Sequence[Any], kwargs: Given, *, unknown: Unknown | None = None) -> Given:
        """The payload of a call. Raises `Invalid`, which names the argument."""
        payload = self._named(args, kwargs) if args else kwargs
        if self.checker is None or self.checker.fault_in(payload, unknown=unknown) is None:
            return payload
        # Python values such as dates and dataclasses match when they are written as JSON.
        try:
            plain: Payload = to_plain(dict(payload))
        except (TypeError, ValueError, RecursionError) as error:
            raise Invalid(f"payload: can't be written as JSON: {error}", field="payload") from None
        if (fault := self.checker.fault_in(plain, unknown=unknown)) is not None:
            raise invalid(fault, "payload")
        return plain

    def payloads(self, given: Sequence[Given], *, unknown: Unknown | None = None) -> Sequence[Given]:
        """The payloads of calls by name. Raises `Invalid`, which names the place and the argument."""
        if self.checker is None or self.checker.takes_all(given):
            return given
        found = []
        for place, payload in enumerate(given):
            try:
                found.append(self.payload((), payload, unknown=unknown))
            except Invalid as error:
                raise type(error)(f"jobs[{place}].{error.detail}", field=f"jobs[{place}].{error.field}") from None
        return found

    def _named(self, args: Sequence[Any], kwargs: Given) -> Payload:
        names = [one.name for one in self.parameters if one.kind in BY_POSITION]
        if len(args) > len(names):
            raise Invalid(
                f"payload: the task takes {len(names)} arguments by position, not {len(args)}", field="payload"
            )
        named = dict(zip(names, args, strict=False))
        if twice := named.keys() & kwargs.keys():
            name = min(twice)
            raise Invalid(f"payload.{name}: is given twice", field=f"payload.{name}")
        return {**named, **kwargs}

    # --- on the side that runs

    @cached_property
    def bind(self) -> Callable[[Payload], Payload]:
        """Turns a payload into keyword arguments for `call`. Raises `Invalid`, which names the argument."""
        if self.is_open and not self._is_typed:
            return lambda payload: payload
        return self._typed() if self._is_typed else self._untyped()

    @cached_property
    def call(self) -> Function:
        """The function, called with keyword arguments only."""
        first = [
            one.name
            for one in (self._found.parameters.values() if self._found else ())
            if one.kind is one.POSITIONAL_ONLY
        ]
        if not first:
            return self._called
        function = self._called

        def call(**kwargs: Any) -> Any:
            by_position = []
            for name in first:
                if name not in kwargs:
                    break
                by_position.append(kwargs.pop(name))
            return function(*by_position, **kwargs)

        return call

    @property
    def _is_typed(self) -> bool:
        types = [one.type for one in self.parameters] + ([self.others] if self.others else [])
        return any(one is not ANY for one in types)

    def _untyped(self) -> Callable[[Payload], Payload]:
        names = frozenset(one.name for one in self.parameters)
        # Set operations cost more than the rest of a small call, and most payloads hold nothing optional.
        required = tuple(one.name for one in self.parameters if one.is_required)
        takes_more = self.others is not None

        def bind(payload: Payload) -> Payload:
            for name in required:
                if name not in payload:
                    raise self._misfit(payload)
            if len(payload) == len(required):
                return payload
            if CONTEXT in payload or not (takes_more or payload.keys() <= names):
                raise self._misfit(payload)
            return payload

        return bind

    def _typed(self) -> Callable[[Payload], Payload]:
        names = tuple(one.name for one in self.parameters)
        known = frozenset(names)
        arguments = self._struct()
        further = tuple((one.name, one.type.convert) for one in self.parameters if one.type.converts)
        others = self.others

        def bind(payload: Payload) -> Payload:
            try:
                values = msgspec.structs.astuple(
                    msgspec.convert(payload, arguments, str_keys=True, dec_hook=from_plain)
                )
                found = {name: value for name, value in zip(names, values, strict=True) if value is not ABSENT}
                for name, convert in further:
                    if name in found:
                        found[name] = _within(name, convert, found[name])
                if len(found) < len(payload):
                    convert_other = ANY.convert if others is None else others.convert
                    for name in payload.keys() - known:
                        found[name] = _within(name, convert_other, payload[name])
            except msgspec.ValidationError as error:
                raise self._misfit(payload, error) from None
            except Invalid as error:
                raise self._misfit(payload, error) from None
            except BaseException as error:
                # Converting runs code of the types. It may raise anything; the function was not called.
                raise Invalid(f"payload: {type(error).__name__}: {_text_of(error)}", field="payload") from None
            if CONTEXT in found:
                raise self._misfit(payload)
            return found

        return bind

    def _struct(self) -> type[msgspec.Struct]:
        """Fields have names of their own, because an argument may be called like an attribute of the struct."""
        fields: list[Any] = [
            (
                f"field_{place}",
                one.type.msgspec_type,
                msgspec.NODEFAULT if one.is_required and not self.is_open else ABSENT,
            )
            for place, one in enumerate(self.parameters)
        ]
        return msgspec.defstruct(
            "Arguments",
            fields,
            rename={f"field_{place}": one.name for place, one in enumerate(self.parameters)},
            forbid_unknown_fields=self.others is None and not self.is_open,
            kw_only=True,
        )

    def _misfit(self, payload: Payload, error: Invalid | msgspec.ValidationError | None = None) -> Invalid:
        """The error in the words of the check at submission, where that finds it too."""
        fault = None if self.checker is None else self.checker.fault_in(payload)
        if fault is not None:
            return invalid(fault, "payload")
        if isinstance(error, msgspec.ValidationError):
            error = to_invalid(error, whole="payload")
        return within_payload(error or Invalid("ctx: is not part of a payload", field="ctx"))

    def _type_of(self, name: str) -> ValueType:
        return value_type_of(self._hints[name]) if name in self._hints else ANY


def hints_of(function: Function, local_names: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations of a function, each by itself: a name that exists for type checkers only leaves that argument
    without a type, and not the others."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not inspect.isroutine(function):
        # An object that can be called.
        function = type(function).__call__
    names = getattr(function, "__globals__", {})
    found = {}
    for name, annotation in _annotations(function).items():
        try:
            hints = get_type_hints(
                SimpleNamespace(__annotations__={name: annotation}),
                globalns=dict(names),
                localns=dict(local_names),
                include_extras=True,
            )
        except Exception:  # noqa: S112 - Evaluating an annotation can raise anything.
            continue
        found[name] = hints[name]
    return found


def _annotations(function: Function) -> dict[str, Any]:
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(function, format=annotationlib.Format.FORWARDREF)
    try:
        return inspect.get_annotations(function)
    except (TypeError, ValueError):
        return {}


def _schema_of(kind: ValueType, schemas: TypeSchemas) -> Schema:
    try:
        return kind.schema(schemas)
    except NoSchema:
        return {}


def _within(name: str, convert: Callable[[Any], Any], value: Any) -> Any:
    try:
        return convert(value)
    except Invalid as error:
        rest = error.field.removeprefix("payload")
        field = name if not rest else f"{name}{rest}" if rest.startswith("[") else f"{name}.{rest}"
        raise Invalid(f"{field}: {error.detail.partition(': ')[2]}", field=field) from None


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return "(no text)"
