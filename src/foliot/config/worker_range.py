"""Reads the setting `workers`: a number, or the least and the most workers of a pool that grows and shrinks."""

from __future__ import annotations

import re

MOST = 256
RANGE = re.compile(r"([0-9]{1,3})(?::([0-9]{1,3}))?")


def worker_range(workers: int | str) -> tuple[int, int]:
    """The least and the most. Raises `ValueError`."""
    match = RANGE.fullmatch(str(workers))
    if match is not None:
        least = int(match[1])
        most = least if match[2] is None else int(match[2])
        if least <= most <= MOST and (match[2] is None or most > 0):
            return least, most
    raise ValueError(
        f"workers is {workers!r}, but must be a number from 0 to {MOST}, or the least and the most such as 2:8"
    )
