"""Durations as people write them: `90s`, `5m`, `1h30m`, `2d`, or a plain number of seconds."""

from __future__ import annotations

import re

from foliot.errors import Invalid

UNITS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
PATTERN = re.compile(r"(?:[0-9]{1,9}[wdhms]){1,5}")
# The same for the OpenAPI document: only lower case and no surrounding spaces, although the parser accepts both.
FORM = r"[1-9][0-9]{0,8}|(?:[1-9][0-9]{0,2}[wdhms]){1,5}"
PART = re.compile(r"([0-9]{1,9})([wdhms])")
SPELLED_OUT = re.compile(
    r"([0-9]{1,9})\s*(w|d|h|m|s)(?:eeks?|ays?|(?:ou)?rs?|in(?:ute)?s?|ec(?:ond)?s?)?(?:,|\s)*(?:and\b)?\s*"
)
ISO = re.compile(r"p((?:[0-9]{1,9}[wd]){0,2})(?:t((?:[0-9]{1,9}[hms]){1,3}))?")


def parse_duration(text: str, *, field: str) -> int:
    """Whole seconds, at least one."""
    text = text.strip().lower()
    if text.isascii() and text.isdecimal() and len(text) <= 10:
        seconds = int(text)
    elif PATTERN.fullmatch(text):
        seconds = sum(int(number) * UNITS[unit] for number, unit in PART.findall(text))
    else:
        raise Invalid(f"{field}: can't read {text[:100]!r} as a duration; {_advice(text)}", field=field)
    if not 1 <= seconds <= 3_155_760_000:
        raise Invalid(f"{field}: must be between 1 second and 100 years", field=field)
    return seconds


def _advice(text: str) -> str:
    """How to write what was probably meant."""
    if found := ISO.fullmatch(text[:100]):
        meant = f"{found[1]}{found[2] or ''}"
    else:
        meant = "".join(f"{number}{unit}" for number, unit in SPELLED_OUT.findall(text[:100]))
        if SPELLED_OUT.sub("", text[:100]):
            meant = ""
    return f"write {meant}" if PATTERN.fullmatch(meant) else "write it like 90s, 5m, 1h30m or 2d"
