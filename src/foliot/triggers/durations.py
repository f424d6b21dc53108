"""Durations as people write them: `90s`, `5m`, `1h30m`, `2d`, or a plain number of seconds."""

from __future__ import annotations

import re

from foliot.errors import Invalid

UNITS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
PATTERN = re.compile(r"(?:[0-9]{1,9}[wdhms]){1,5}")
# The same for the API's document: within what may be asked for, and without capital letters and blanks around it, which
# are taken too.
FORM = r"[1-9][0-9]{0,8}|(?:[1-9][0-9]{0,2}[wdhms]){1,5}"
PART = re.compile(r"([0-9]{1,9})([wdhms])")


def parse_duration(text: str, *, field: str) -> int:
    """Whole seconds, at least one."""
    text = text.strip().lower()
    if text.isascii() and text.isdecimal() and len(text) <= 10:
        seconds = int(text)
    elif PATTERN.fullmatch(text):
        seconds = sum(int(number) * UNITS[unit] for number, unit in PART.findall(text))
    else:
        raise Invalid(
            f"{field}: can't read {text[:100]!r} as a duration; write it like 90s, 5m, 1h30m or 2d", field=field
        )
    if not 1 <= seconds <= 3_155_760_000:
        raise Invalid(f"{field}: must be between 1 second and 100 years", field=field)
    return seconds
