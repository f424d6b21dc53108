"""Checks JSON values against a JSON Schema (dialect 2020-12), and names the field at fault.

    Checker.of({"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}).check(payload)

Schemas come from the code of tasks and workflows, so they may be of any size and quality. Two rules follow:

- The check accepts a value in case of doubt. It ignores keywords that it does not know, and a pattern that could take
  long to match. The code that receives the value decides last.
- The check takes bounded time. A schema that is too large or too deep raises `UnusableSchema`, and a check that takes
  too many steps accepts the value.

`unknown` tells the values that are not known yet, such as a reference to a later result. Every schema accepts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.model.json_schema_check import Check, Fault, Pass, TookTooLong, Unknown
from foliot.model.json_schema_rules import LIST, Rule, rules_of, type_of, types_named
from foliot.model.json_schema_types import NotSimple, type_of_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_MAX_BYTES = 65_536
DEPTH_MAX = 100
NODES_MAX = 10_000
HINT_MAX = 100


class UnusableSchema(Exception):
    """The schema is too large, too deep or no schema."""


class Checker:
    """A compiled schema."""

    __slots__ = ("_check", "_list_type", "_takes_any_object", "_type", "schema")

    def __init__(self, schema: Mapping[str, Any] | bool) -> None:
        """Raises `UnusableSchema`."""
        self.schema = schema
        try:
            self._check = Compiler(schema).compiled(schema)
        except RecursionError:
            raise UnusableSchema("the schema is nested too deeply") from None
        self._type: Any = None
        with suppress(NotSimple):
            self._type = type_of_schema(schema)
        self._takes_any_object = self._type == dict[str, Any]
        self._list_type: Any = None if self._type is None else list[self._type]  # type: ignore[name-defined]

    @classmethod
    def of(cls, schema: object) -> Checker:
        """Raises `UnusableSchema` also for a schema that is too large."""
        if not isinstance(schema, dict | bool):
            raise UnusableSchema("a schema is an object, true or false")
        try:
            size = len(msgspec.json.encode(schema))
        except (TypeError, ValueError, RecursionError) as error:
            raise UnusableSchema(f"the schema is not JSON: {error}") from None
        if size > SCHEMA_MAX_BYTES:
            raise UnusableSchema(f"the schema has {size} bytes, more than {SCHEMA_MAX_BYTES}")
        return cls(schema)

    def fault_in(self, value: object, *, unknown: Unknown | None = None) -> Fault | None:
        if self._check is None or (self._takes_any_object and type(value) is dict):
            return None
        if self._type is not None:
            try:
                msgspec.convert(value, self._type)
            except (msgspec.ValidationError, OverflowError, RecursionError):
                pass
            else:
                return None
        try:
            return self._check(value, Pass(unknown))
        except (TookTooLong, RecursionError):
            return None

    def takes_all(self, values: Sequence[object]) -> bool:
        """Whether all values match, decided in a tenth of the time that one after the other takes. False: perhaps
        not."""
        if self._check is None or (self._takes_any_object and set(map(type, values)) == {dict}):
            return True
        if self._list_type is None:
            return False
        try:
            msgspec.convert(values, self._list_type)
        except (msgspec.ValidationError, OverflowError, RecursionError):
            return False
        return True

    def check(self, value: object, *, root: str = "payload", unknown: Unknown | None = None) -> None:
        """Raises `Invalid`, which names the field inside `root`."""
        if (fault := self.fault_in(value, unknown=unknown)) is not None:
            raise invalid(fault, root)


def invalid(fault: Fault, root: str) -> Invalid:
    field = fault.field(root)
    return Invalid(f"{field}: {fault.message}", field=field)


class Compiler:
    """Turns the parts of one schema into functions. None stands for a part that accepts everything."""

    def __init__(self, root: Mapping[str, Any] | bool) -> None:
        self._root = root
        self._by_reference: dict[str, Check | None] = {}
        self._open: set[str] = set()
        """References that are being compiled, to find schemas that contain themselves."""
        self._nodes = 0
        self._depth = 0
        self.doubts = 0
        """How many parts were ignored so far. A part with doubts is never negated."""

    def compiled(self, schema: object) -> Check | None:
        if schema is True:
            return None
        if schema is False:
            return lambda value, run: _unless_unknown(Fault("must not be given"), value, run)
        if not isinstance(schema, dict):
            raise UnusableSchema("a schema is an object, true or false")
        self._nodes += 1
        self._depth += 1
        if self._nodes > NODES_MAX or self._depth > DEPTH_MAX:
            raise UnusableSchema("the schema is too large or too deep")
        try:
            return self._joined(schema)
        finally:
            self._depth -= 1

    def _joined(self, schema: Mapping[str, Any]) -> Check | None:
        rules, ignored = rules_of(schema)
        self.doubts += ignored
        found = [_whole(rules), self._object(schema), self._array(schema), *self._branches(schema)]
        parts = [part for part in found if part is not None]
        if len(parts) <= 1:
            return parts[0] if parts else None

        def check(value: Any, run: Pass) -> Fault | None:
            for part in parts:
                if (fault := part(value, run)) is not None:
                    return fault
            return None

        return check

    def _object(self, schema: Mapping[str, Any]) -> Check | None:
        properties = {name: self.compiled(inner) for name, inner in _mapping(schema, "properties").items()}
        required = tuple(name for name in _list(schema, "required") if isinstance(name, str))
        names = self.compiled(schema["propertyNames"]) if "propertyNames" in schema else None
        rest = schema.get("additionalProperties", True)
        if "patternProperties" in schema:
            self.doubts += 1
            rest = True
        is_closed = rest is False
        others = None if is_closed else self.compiled(rest)
        if not (any(properties.values()) or required or is_closed or others or names):
            return None
        members = Members(properties, names, others, is_closed=is_closed)

        def check_object(value: Any, run: Pass) -> Fault | None:
            if not isinstance(value, dict):
                return None
            if (fault := members.fault_in(value, run)) is None:
                for name in required:
                    if name not in value:
                        fault = Fault("is required", name)
                        break
                else:
                    return None
            return _unless_unknown(fault, value, run)

        return check_object

    def _array(self, schema: Mapping[str, Any]) -> Check | None:
        first = tuple(self.compiled(inner) for inner in _list(schema, "prefixItems"))
        rest = self.compiled(schema.get("items", True))
        if rest is None and not any(first):
            return None

        def check_array(value: Any, run: Pass) -> Fault | None:
            if not isinstance(value, LIST):
                return None
            run.step(len(value))
            for place, inner in enumerate(value):
                check = first[place] if place < len(first) else rest
                if check is not None and (fault := check(inner, run)) is not None:
                    return _unless_unknown(fault.within(place), value, run)
            return None

        return check_array

    def _branches(self, schema: Mapping[str, Any]) -> list[Check | None]:
        found: list[Check | None] = []
        if "$ref" in schema:
            found.append(self._reference(schema["$ref"]))
        found += [self.compiled(inner) for inner in _list(schema, "allOf")]
        for word in ("anyOf", "oneOf"):
            if word in schema:
                found.append(self._one_of(_list(schema, word), is_exclusive=word == "oneOf"))
        if "not" in schema:
            found.append(self._not(schema["not"]))
        return found

    def _reference(self, reference: object) -> Check | None:
        """Only references inside the schema are followed."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            self.doubts += 1
            return None
        if reference not in self._by_reference and reference not in self._open:
            self._open.add(reference)
            self._by_reference[reference] = self.compiled(self._found(reference))
            self._open.discard(reference)
        if reference in self._by_reference and self._by_reference[reference] is None:
            return None
        known = self._by_reference

        def check_reference(value: Any, run: Pass) -> Fault | None:
            run.step(1)
            check = known.get(reference)
            return None if check is None else check(value, run)

        return check_reference

    def _found(self, reference: str) -> object:
        here: Any = self._root
        for part in reference.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(here, dict) and name in here:
                here = here[name]
            else:
                self.doubts += 1
                return True
        return here

    def _one_of(self, schemas: list[Any], *, is_exclusive: bool) -> Check | None:
        doubts = self.doubts
        branches = [(types_named(inner, self._root), self.compiled(inner)) for inner in schemas]
        is_exclusive = is_exclusive and self.doubts == doubts
        if not is_exclusive and any(check is None for _, check in branches):
            return None
        enough = len(branches) if is_exclusive else 1
        expected = " or ".join(sorted({name for types, _ in branches for name in types or ()}))

        def check_one_of(value: Any, run: Pass) -> Fault | None:
            run.step(len(branches))
            matches, fault = _matches(value, run, branches, enough)
            if matches == 1:
                return None
            if matches:
                fault = Fault("matches several alternatives, and must match one")
            return _unless_unknown(fault or Fault(f"must be {expected}, not {type_of(value)}"), value, run)

        return check_one_of

    def _not(self, schema: object) -> Check | None:
        doubts = self.doubts
        check = self.compiled(schema)
        if self.doubts > doubts:
            return None

        def check_not(value: Any, run: Pass) -> Fault | None:
            run.step(1)
            if check is not None and check(value, run) is not None:
                return None
            return _unless_unknown(Fault("is a value that is not allowed"), value, run)

        return check_not


class Members:
    """The check of each member of an object."""

    __slots__ = ("_checks", "_is_closed", "_known", "_names", "_others")

    def __init__(
        self, properties: Mapping[str, Check | None], names: Check | None, others: Check | None, *, is_closed: bool
    ) -> None:
        self._known = properties
        self._checks = {name: check for name, check in properties.items() if check is not None}
        self._names = names
        self._others = others
        self._is_closed = is_closed

    def fault_in(self, value: dict[str, Any], run: Pass) -> Fault | None:
        run.step(len(value))
        checks, known, names = self._checks, self._known, self._names
        for name, inner in value.items():
            check = checks.get(name)
            if check is None and name not in known:
                if self._is_closed:
                    return Fault(f"there is no such field{self._hint(name)}", name)
                check = self._others
            if names is not None and names(name, run) is not None:
                return Fault("has a name that is not allowed", name)
            if check is not None and (fault := check(inner, run)) is not None:
                return fault.within(name)
        return None

    def _hint(self, name: str) -> str:
        """Finding a similar name takes long among many or long names."""
        return did_you_mean(name, self._known) if len(name) <= HINT_MAX and len(self._known) <= HINT_MAX else ""


def _whole(rules: list[Rule]) -> Check | None:
    """The rules that look at the value as a whole."""
    if not rules:
        return None
    if len(rules) == 1 and rules[0].weight is None:
        only = rules[0].fault_in

        def check_only(value: Any, run: Pass) -> Fault | None:
            if (message := only(value)) is None:
                return None
            return _unless_unknown(Fault(message), value, run)

        return check_only

    def check(value: Any, run: Pass) -> Fault | None:
        for rule in rules:
            if rule.weight is not None:
                run.step(rule.weight(value))
            if (message := rule.fault_in(value)) is not None:
                return _unless_unknown(Fault(message), value, run)
        return None

    return check


def _matches(
    value: Any, run: Pass, branches: list[tuple[frozenset[str] | None, Check | None]], enough: int
) -> tuple[int, Fault | None]:
    """How many branches match, up to `enough`; and the fault of the branch that came closest."""
    kind, closest, matches = type_of(value), None, 0
    for types, check in branches:
        if types is not None and kind not in types:
            continue
        fault = None if check is None else check(value, run)
        if fault is None:
            matches += 1
            if matches == enough:
                break
        elif closest is None or len(fault.path) > len(closest.path):
            closest = fault
    return matches, closest


def _unless_unknown(fault: Fault, value: object, run: Pass) -> Fault | None:
    return None if run.unknown is not None and run.unknown(value) else fault


def _mapping(schema: Mapping[str, Any], word: str) -> Mapping[str, Any]:
    found = schema.get(word, {})
    if not isinstance(found, dict):
        raise UnusableSchema(f"{word} must be an object")
    return found


def _list(schema: Mapping[str, Any], word: str) -> list[Any]:
    found = schema.get(word, [])
    if not isinstance(found, list):
        raise UnusableSchema(f"{word} must be a list")
    return found
