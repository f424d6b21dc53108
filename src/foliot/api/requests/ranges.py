"""Ranges of numbers and durations as query parameters: `>30s`, `<=3`, `1m..5m`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from foliot.errors import Invalid

N = TypeVar("N", int, float)
NUMBER = r"-?[0-9]{1,9}"
LENGTH = r"[0-9]{1,9}(?:\.[0-9]{1,3})?(?:ms|s|m|h|d)?"
UNITS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
SPLIT_LENGTH = re.compile(r"([0-9.]+)(ms|s|m|h|d)?")


def form_of(value: str) -> str:
    """The pattern of a range of such values."""
    return rf"(?:>=|<=|>|<)?{value}|{value}\.\.{value}"


NUMBER_RANGE, LENGTH_RANGE = form_of(NUMBER), form_of(LENGTH)


def number_range(text: str, field: str) -> tuple[int | None, int | None]:
    """The lowest and the highest number, both included. A number alone means exactly that one."""
    if not text:
        return None, None
    if not re.fullmatch(NUMBER_RANGE, text):
        raise Invalid(f"{field}: {text[:100]!r} is no range of numbers; write it like 2, >1, <=3 or 1..3", field=field)
    low, high = _bounds(text, int)
    if text.startswith(">") and not text.startswith(">=") and low is not None:
        low += 1
    if text.startswith("<") and not text.startswith("<=") and high is not None:
        high -= 1
    return low, high


def length_range(text: str, field: str) -> tuple[float | None, float | None]:
    """The shortest and the longest duration in seconds. A duration alone means at least that long."""
    if not text:
        return None, None
    if not re.fullmatch(LENGTH_RANGE, text):
        raise Invalid(
            f"{field}: {text[:100]!r} is no range of durations; write it like >30s, <500ms or 1m..5m", field=field
        )
    low, high = _bounds(text, _seconds)
    return (low, None) if text[0].isdecimal() and ".." not in text else (low, high)


def _bounds(text: str, read: Callable[[str], N]) -> tuple[N | None, N | None]:
    begin, separator, end = text.partition("..")
    if separator:
        first, last = sorted((read(begin), read(end)))
        return first, last
    value = read(text.lstrip("<>="))
    return (None if text[0] == "<" else value), (None if text[0] == ">" else value)


def _seconds(text: str) -> float:
    found = SPLIT_LENGTH.fullmatch(text)
    assert found is not None  # noqa: S101
    return float(found[1]) * UNITS[found[2] or ""]
