"""Fits the columns of a table to the width of the terminal.

Without a terminal nothing is shortened, so that scripts get full ids. The environment variable COLUMNS sets a width for
both.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

GAP = "  "
NARROWEST = 40
COMFORTABLE, CROWDED = 24, 8
"""To these widths, columns are narrowed before and after other columns are left out."""
SHORT_ID = 18
"""Up to here, an id holds its instant and a counter, which makes it unique but for rare coincidences."""
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
LOWEST = {"text": CROWDED, "id": SHORT_ID, "wrapped": COMFORTABLE}
# Invisible, but parts of emoji and of words.
JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"


@dataclass(frozen=True, slots=True)
class Column:
    header: str
    kind: Literal["fixed", "text", "id", "wrapped"] = "fixed"
    """Without enough room, text is cropped, ids are shortened, and a wrapped last column takes several lines."""
    leaves: int = 0
    """Without enough room, columns above 0 are left out, the highest first."""


def terminal_columns() -> int | None:
    """The width to fit to; None without a limit."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given) - 1
    try:
        # The last column stays free, as in a frame of --watch.
        return max(os.get_terminal_size(sys.stdout.fileno()).columns - 1, 0) or None
    except (OSError, ValueError):
        return None


def fitted(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int | None) -> list[tuple[int, int]]:
    """The index and the width of each column to show. Columns that are empty in all rows are left out."""
    natural = {
        index: max(width(text) for text in (column.header, *(row[index] for row in rows)))
        for index, column in enumerate(columns)
        if any(row[index] for row in rows)
    }
    if room is None:
        return list(natural.items())
    room = max(room, NARROWEST)
    while True:
        widths = _shrunk(columns, natural, room, COMFORTABLE)
        optional = [index for index in widths if columns[index].leaves]
        if total(widths.items()) <= room or not optional:
            return list(_shrunk(columns, widths, room, CROWDED).items())
        del natural[max(optional, key=lambda index: columns[index].leaves)]


def short_ids(texts: Sequence[str]) -> list[str]:
    """The ids, shortened as far as they stay distinct. Other texts stay as they are."""
    ids = {text for text in texts if ID.fullmatch(text)}
    length = next(size for size in count(SHORT_ID) if len({text[:size] for text in ids}) == len(ids) or size >= 36)
    return [text[:length].rstrip("-") if text in ids else text for text in texts]


def cropped(text: str, columns: int) -> str:
    if width(text) <= columns:
        return text
    left, end = columns - 1, 0
    for character in text:
        left -= width(character)
        if left < 0:
            break
        end += 1
    return f"{text[:end]}…"


def wrapped(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, columns, break_on_hyphens=False) or [""]


def width(text: str) -> int:
    """The number of terminal columns that the text takes."""
    return sum(_columns_of(character) for character in text)


def _shrunk(columns: Sequence[Column], natural: Mapping[int, int], room: int, floor: int) -> dict[int, int]:
    """Narrows the widest column again and again, until the table fits or no column is wider than its floor."""
    widths = dict(natural)
    floors = {index: max(floor, LOWEST[columns[index].kind]) for index in widths if columns[index].kind != "fixed"}
    while (excess := total(widths.items()) - room) > 0:
        elastic = sorted((index for index in floors if widths[index] > floors[index]), key=widths.__getitem__)
        if not elastic:
            break
        widest, second = elastic[-1], widths[elastic[-2]] if len(elastic) > 1 else 0
        widths[widest] = max(floors[widest], min(second, widths[widest] - 1), widths[widest] - excess)
    return widths


def total(sizes: Iterable[tuple[int, int]]) -> int:
    """The width of a table with these columns."""
    widths = [size for _, size in sizes]
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _columns_of(character: str) -> int:
    if character in JOINERS or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
