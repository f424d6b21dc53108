"""Turns decoding errors into error messages that name the field and say what it must be."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from foliot.errors import Invalid

PATH_IN_MESSAGE = re.compile(r" - at `\$\.?([^`]*)`$")
UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?([^`]*)`)?", re.DOTALL)
TYPES = {
    "array": "a list",
    "bool": "a boolean",
    "bytes": "base64 text",
    "date": "a date such as 2026-01-31",
    "datetime": "a time such as 2026-01-31T12:00:00Z",
    "float": "a number",
    "int": "an integer",
    "null": "null",
    "object": "an object",
    "str": "a string",
    "uuid": "a UUID",
}
UNITS = {"str": "character", "array": "item", "object": "field", "bytes": "byte"}
BOUNDS = {">=": "{} or more", "<=": "{} or less", ">": "more than {}", "<": "less than {}"}
FORMS: dict[str, str] = {}


def form(pattern: str, words: str) -> str:
    """Returns the pattern. Errors describe it in these words, which follow `must`."""
    if FORMS.setdefault(repr(pattern), words) != words:
        raise ValueError(f"{pattern} is described already")
    return pattern


def to_invalid(error: msgspec.ValidationError, *, whole: str) -> Invalid:
    """`whole` names the value for an error that is about no single field."""
    message = str(error)
    if found := UNKNOWN_FIELD.fullmatch(message):
        field = f"{found[2]}.{found[1]}" if found[2] else found[1]
        return Invalid(f"{field}: there is no such field", field=field)
    found = PATH_IN_MESSAGE.search(message)
    field = (found[1].replace("[...]", "") if found else "") or whole
    return Invalid(f"{field}: {in_words(PATH_IN_MESSAGE.sub('', message))}", field=field)


def in_words(message: str) -> str:
    """A message of msgspec, without its path, in plain words. Other messages stay as they are."""
    for pattern, words in MESSAGES:
        if found := pattern.fullmatch(message):
            return words(found)
    return message


def _types(found: re.Match[str]) -> str:
    wanted = [TYPES.get(name, name) for name in found[1].split(" | ")]
    got = TYPES.get(found[2], found[2]).partition(" such as")[0]
    return f"must be {' or '.join(wanted)}, not {got}"


def _length(found: re.Match[str]) -> str:
    unit, sign, number = UNITS[found[1]], found[2], int(found[3])
    if sign == ">=" and number == 1:
        return "must not be empty"
    return f"must have at {'least' if sign == '>=' else 'most'} {number} {unit}{'' if number == 1 else 's'}"


def _bound(found: re.Match[str]) -> str:
    return f"must be {BOUNDS[found[1]].format(found[2].removesuffix('.0'))}"


def _form(found: re.Match[str]) -> str:
    words = FORMS.get(found[1])
    return f"must match the pattern {found[1][1:-1]}" if words is None else f"must {words}"


def _missing(found: re.Match[str]) -> str:
    return f"the field {found[1]!r} is required"


def _not_allowed(found: re.Match[str]) -> str:
    return f"{found[1]} is not one of the allowed values"


def _list_length(found: re.Match[str]) -> str:
    return f"must have {found[1]} items, not {found[2]}"


MESSAGES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"Expected `([\w| ]+)`, got `(\w+)`"), _types),
    (re.compile(r"Expected `(str|array|object|bytes)` of length (>=|<=) (\d+)"), _length),
    (re.compile(r"Expected `array` of (?:at (?:least|most) )?length ([\d to]+), got (\d+)"), _list_length),
    (re.compile(r"Expected `(?:int|float)` (>=|<=|>|<) (\S+)"), _bound),
    (re.compile(r"Expected `int` that's a multiple of (\d+)"), lambda found: f"must be a multiple of {found[1]}"),
    (re.compile(r"Expected `str` matching regex (.*)", re.DOTALL), _form),
    (re.compile(r"Expected `\w+` with a timezone component"), lambda _: "must have a UTC offset, such as Z or +02:00"),
    (
        re.compile(r"Object missing required field `(.*)`", re.DOTALL),
        lambda found: f"the field {found[1]!r} is required",
    ),
    (
        re.compile(r"Invalid (?:enum )?value (.*)", re.DOTALL),
        lambda found: f"{found[1]} is not one of the allowed values",
    ),
    (re.compile(r"Invalid RFC3339 encoded (date|datetime)"), lambda found: f"must be {TYPES[found[1]]}"),
    (re.compile(r"Invalid UUID"), lambda _: "must be a UUID"),
    (re.compile(r"Invalid base64 encoded string"), lambda _: "must be base64 text"),
    (re.compile(r"(?:Integer value|Number) out of range"), lambda _: "the number is too large"),
)
