"""The keywords of a JSON Schema that look at one value: types, bounds, formats and patterns.

The text of a fault never shows the value, which may be a secret.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, cast
from uuid import UUID

import msgspec

Look = Callable[[Any], str | None]


class Rule(NamedTuple):
    fault_in: Look
    """The text of the fault, or None."""
    weight: Callable[[Any], int] | None = None
    """How many steps a look at the value takes, where that depends on its size."""


NAMES = {
    "null": "null", "boolean": "a boolean", "integer": "an integer", "number": "a number", "string": "a string",
    "array": "a list", "object": "an object",
}  # fmt: skip
LIST = (list, tuple)
"""Values that user code made have tuples, too."""
TYPE_WORDS: Mapping[type, str] = {
    type(None): "null", bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "a list",
    tuple: "a list", dict: "an object",
}  # fmt: skip
IGNORED = frozenset(
    {
        "if", "then", "else", "dependentSchemas", "dependentRequired", "contains", "minContains", "maxContains",
        "unevaluatedItems", "unevaluatedProperties", "$dynamicRef",
    }
)  # fmt: skip
FORMATS: Mapping[str, tuple[Any, str]] = {
    "date-time": (dt.datetime, "must be a date and time such as 2026-01-31T08:00:00Z"),
    "date": (dt.date, "must be a date such as 2026-01-31"),
    "time": (dt.time, "must be a time such as 08:00:00"),
    "duration": (dt.timedelta, "must be a duration such as PT90S or P1DT12H"),
    "uuid": (UUID, "must be a UUID"),
    "decimal": (Decimal, "must be a decimal number such as 9.95"),
}
SHOWN_MAX = 10
# One character or a set of characters. The alternatives begin differently, so this matches in linear time.
ATOM = r"(?:[^\\\[\](){}*+?|^$]|\\[dDwWsS.\-/+*?()\[\]{}^$|\\]|\[\^?(?:[^\\\[\]]|\\.)+\])"
SIMPLE_PATTERN = re.compile(rf"\^?(?:{ATOM}(?:\{{\d{{1,4}}(?:,\d{{0,4}})?\}}|[*+?])?)*\$?")
QUANTIFIED = re.compile(rf"{ATOM}(\{{\d+,\d*\}}|[*+?])?")
PATTERN_MAX = 500
PATTERN_STEPS = 100_000


def rules_of(schema: Mapping[str, Any]) -> tuple[list[Rule], int]:
    """The rules of a schema, and how many of its keywords are ignored."""
    found: list[Rule] = []
    ignored = len(IGNORED & schema.keys())
    for word, make in KEYWORDS.items():
        if word in schema and (schema[word] is not False or word == "const"):
            rule = make(schema[word])
            found += [rule] if rule else []
            ignored += rule is None
    return found, ignored


def type_of(value: object) -> str:
    """The value's type in words."""
    return TYPE_WORDS.get(type(value)) or next(
        (word for kind, word in TYPE_WORDS.items() if isinstance(value, kind)), f"a {type(value).__name__}"
    )


def types_named(schema: object, root: object) -> frozenset[str] | None:
    """The types that a schema allows, in words. None: all, or not known without a look at the value."""
    if isinstance(schema, dict) and isinstance(reference := schema.get("$ref"), str) and isinstance(root, dict):
        schema = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
    named = schema.get("type") if isinstance(schema, dict) else None
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    if not names or not all(isinstance(name, str) and name in NAMES for name in names):
        return None
    words = {NAMES[name] for name in names}
    return frozenset(words | {"an integer"} if "a number" in words else words)


def type_rule(named: object) -> Rule | None:
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    words = [NAMES[name] for name in names if isinstance(name, str) and name in NAMES]
    if len(words) < len(names) or not words:
        return None
    expected = " or ".join(words)
    allowed = frozenset({*words, "an integer"} if "a number" in words else words)
    exact = frozenset(kind for kind, word in TYPE_WORDS.items() if word in allowed)

    def rule(value: Any) -> str | None:
        if type(value) in exact:
            return None
        found = type_of(value)
        return None if found in allowed else f"must be {expected}, not {found}"

    return Rule(rule)


def enum_rule(allowed: object) -> Rule | None:
    """None unless all values are plain: comparing lists and objects takes long."""
    if not isinstance(allowed, list) or not all(_is_plain(one) for one in allowed):
        return None
    keys = {_key(one) for one in allowed}
    shown = ", ".join(msgspec.json.encode(one).decode()[:60] for one in allowed[:SHOWN_MAX])
    message = f"must be {'one of ' if len(allowed) > 1 else ''}{shown}{', ...' if len(allowed) > SHOWN_MAX else ''}"
    return Rule(lambda value: None if _is_plain(value) and _key(value) in keys else message)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | bool | int | float)


def _key(value: Any) -> object:
    """Different for true and 1, which are equal in Python."""
    return str(value) if isinstance(value, str) else (isinstance(value, bool), value)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _size(value: object, kind: type | tuple[type, ...], noun: str, limit: float, *, is_least: bool) -> str | None:
    if not isinstance(value, kind):
        return None
    size = len(value)  # type: ignore[arg-type]
    if is_least:
        return None if size >= limit else f"must have at least {limit:g} {noun}"
    return None if size <= limit else f"must have at most {limit:g} {noun}"


def _multiple(value: Any, of: float) -> str | None:
    if not _number(value) or of <= 0:
        return None
    try:
        is_multiple = math.isclose(value / of, round(value / of), rel_tol=1e-12, abs_tol=1e-9)
    except (OverflowError, ValueError):
        return None
    return None if is_multiple else f"must be a multiple of {of:g}"


def bound(look: Callable[[Any, float], str | None]) -> Callable[[object], Rule | None]:
    def make(limit: object) -> Rule | None:
        if not _number(limit) or not math.isfinite(number := cast("float", limit)):
            return None
        return Rule(lambda value: look(value, number))

    return make


def unique_rule(_: object) -> Rule:
    def rule(value: Any) -> str | None:
        if not isinstance(value, LIST) or not all(map(_is_plain, value)):
            return None
        return None if len({_key(one) for one in value}) == len(value) else "must not have an item twice"

    return Rule(rule, _length)


def format_rule(kind: object) -> Rule | None:
    """Other formats say something about the value, and forbid none."""
    if not isinstance(kind, str) or kind not in FORMATS:
        return None
    decoded, message = FORMATS[kind]
    return Rule(lambda value: None if _is_text_of(decoded, value) else message)


def encoding_rule(encoding: object) -> Rule | None:
    if encoding != "base64":
        return None
    return Rule(lambda value: None if _is_text_of(bytes, value) else "must be base64", _length)


def _is_text_of(kind: Any, value: object) -> bool:
    if isinstance(value, str):
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return False
    return True


def _length(value: Any) -> int:
    return len(value) // 10 if isinstance(value, str | list | tuple) else 0


def pattern_rule(pattern: object) -> Rule | None:
    """None for a pattern that could take long to match: one with groups, alternatives or nested repeats."""
    if not isinstance(pattern, str) or len(pattern) > PATTERN_MAX or not SIMPLE_PATTERN.fullmatch(pattern):
        return None
    try:
        search = re.compile(pattern).search
    except (re.error, OverflowError):
        return None
    # Each quantifier can match from nothing to the whole text, and so can the place where the match begins.
    choices = sum(bool(found[1]) for found in QUANTIFIED.finditer(pattern)) + (not pattern.startswith("^"))
    message = f"must match the pattern {pattern}"

    def steps(value: object) -> int:
        return (len(value) + 1) ** choices if isinstance(value, str) else 0

    def rule(value: Any) -> str | None:
        if not isinstance(value, str) or steps(value) > PATTERN_STEPS or search(value):
            return None
        return message

    return Rule(rule, lambda value: min(steps(value), PATTERN_STEPS) // 50)


KEYWORDS: Mapping[str, Callable[[Any], Rule | None]] = {
    "type": type_rule,
    "enum": enum_rule,
    "const": lambda value: enum_rule([value]),
    "minimum": bound(lambda v, low: f"must be {low} or more" if _number(v) and v < low else None),
    "maximum": bound(lambda v, high: f"must be {high} or less" if _number(v) and v > high else None),
    "exclusiveMinimum": bound(lambda v, low: f"must be more than {low}" if _number(v) and v <= low else None),
    "exclusiveMaximum": bound(lambda v, high: f"must be less than {high}" if _number(v) and v >= high else None),
    "multipleOf": bound(_multiple),
    "minLength": bound(lambda v, low: _size(v, str, "characters", low, is_least=True)),
    "maxLength": bound(lambda v, high: _size(v, str, "characters", high, is_least=False)),
    "minItems": bound(lambda v, low: _size(v, LIST, "items", low, is_least=True)),
    "maxItems": bound(lambda v, high: _size(v, LIST, "items", high, is_least=False)),
    "minProperties": bound(lambda v, low: _size(v, dict, "fields", low, is_least=True)),
    "maxProperties": bound(lambda v, high: _size(v, dict, "fields", high, is_least=False)),
    "uniqueItems": unique_rule,
    "format": format_rule,
    "contentEncoding": encoding_rule,
    "pattern": pattern_rule,
}
