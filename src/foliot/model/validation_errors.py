"""Turns decoding errors into error messages that name the field."""

from __future__ import annotations

import re

import msgspec

from foliot.errors import Invalid

PATH_IN_MESSAGE = re.compile(r" - at `\$\.?([^`]*)`$")
UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?([^`]*)`)?", re.DOTALL)


def to_invalid(error: msgspec.ValidationError, *, whole: str) -> Invalid:
    """`whole` is what the value is called where no field of it is at fault."""
    message = str(error)
    if found := UNKNOWN_FIELD.fullmatch(message):
        field = f"{found[2]}.{found[1]}" if found[2] else found[1]
        return Invalid(f"{field}: there is no such field", field=field)
    found = PATH_IN_MESSAGE.search(message)
    field = (found[1].replace("[...]", "") if found else "") or whole
    return Invalid(f"{field}: {PATH_IN_MESSAGE.sub('', message)}", field=field)
