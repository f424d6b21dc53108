"""Formats output for people: aligned tables, relative times and colours.

Colours are always added; `click.echo` removes them without a terminal, or with NO_COLOR.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise, zip_longest
from typing import Any

import click

from foliot.cli.columns import (
    GAP,
    JOINERS,
    Column,
    cropped,
    fitted,
    short_ids,
    terminal_columns,
    total,
    width,
    wrapped,
)

COLOURS = {
    "active": "green",
    "completed": "green",
    "running": "cyan",
    "retrying": "yellow",
    "paused": "yellow",
    "overlap": "yellow",
    "superseded": "yellow",
    "missed": "red",
    "excluded": "blue",
    "failed": "red",
    "cancelled": "magenta",
    "skipped": "magenta",
}
UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1), ("", 1))
# States of runs that have another name as a status.
STATUSES = {"succeeded": "completed", "ready": "pending", "waiting": "pending"}
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    colour: str | None = None

    def padded(self, columns: int) -> str:
        styled = click.style(self.text, fg=self.colour) if self.colour and self.text else self.text
        return styled + " " * (columns - width(self.text))


def word(status: str) -> Cell:
    """A status, state or outcome in its colour; a state in the words of a status."""
    name = STATUSES.get(status, status)
    return Cell(clean(name), COLOURS.get(name))


def table(headers: Sequence[str | Column], rows: Iterable[Sequence[str | Cell]], *, room: int | None = None) -> str:
    """Aligns columns and fits them to `room`, by default the terminal's width.

    Leaves out columns that are empty in all rows; without rows the text is empty.
    """
    columns = [header if isinstance(header, Column) else Column(header) for header in headers]
    cells = [[cell if isinstance(cell, Cell) else Cell(clean(cell)) for cell in row] for row in rows]
    room = terminal_columns() if room is None else room
    if room is not None and total(fitted(columns, _texts(cells), None)) > room:
        _shorten_ids(columns, cells)
    widths = fitted(columns, _texts(cells), room)
    if not widths:
        return ""
    lines = [[Cell(columns[index].header) for index, _ in widths]]
    for row in cells:
        parts = [_parts(row[index], columns[index], size) for index, size in widths]
        lines += [list(line) for line in zip_longest(*parts, fillvalue=Cell(""))]
    sizes = [size for _, size in widths]
    return "\n".join(GAP.join(map(Cell.padded, line, sizes)).rstrip() for line in lines)


def _texts(cells: Sequence[Sequence[Cell]]) -> list[list[str]]:
    return [[cell.text for cell in row] for row in cells]


def _shorten_ids(columns: Sequence[Column], cells: Sequence[list[Cell]]) -> None:
    for index, column in enumerate(columns):
        if column.kind == "id":
            for row, text in zip(cells, short_ids([row[index].text for row in cells]), strict=True):
                row[index] = replace(row[index], text=text)


def _parts(cell: Cell, column: Column, size: int) -> list[Cell]:
    """The lines of a cell."""
    if column.kind == "wrapped":
        return [replace(cell, text=line) for line in wrapped(cell.text, size)]
    return [replace(cell, text=cropped(cell.text, size))]


def facts(pairs: Iterable[tuple[str, str | Cell | None]]) -> str:
    """One `name  value` pair per line, without empty values."""
    known = [(name, value if isinstance(value, Cell) else Cell(clean(value))) for name, value in pairs if value]
    longest = max((len(name) for name, _ in known), default=0)
    return "\n".join(f"{name:<{longest}}{GAP}{value.padded(0)}" for name, value in known)


def at(time: str | None, now: datetime) -> str:
    """A time as the server wrote it, followed by the relative time."""
    return f"{time} ({away(time, now)})" if time else ""


def to_second(time: str) -> str:
    """A UTC time as the server wrote it, without fractions of a second."""
    return re.sub(r"\.[0-9]+Z", "Z", time)


def away(time: str | None, now: datetime) -> str:
    """A rounded relative time in its largest unit, such as `in 3 m` or `2 h ago`."""
    if not time:
        return ""
    try:
        seconds = (datetime.fromisoformat(time) - now).total_seconds()
    except ValueError:
        return "?"
    for (unit, size), (_, smaller) in pairwise(UNITS):
        # Round to the smaller unit first, so that 59 minutes and 40 seconds are 1 h, not 60 m.
        if round(abs(seconds) / smaller) * smaller >= size:
            amount = round(abs(seconds) / size)
            return f"in {amount} {unit}" if seconds > 0 else f"{amount} {unit} ago"
    return "now"


def clean(text: Any, *, keep: str = "") -> str:
    """Escapes control characters, which anybody who can submit a job could use to manipulate the terminal."""
    return "".join(one if _is_harmless(one) or one in keep else _escaped(one) for one in str(text))


def _is_harmless(character: str) -> bool:
    return character in JOINERS or unicodedata.category(character) not in INVISIBLE


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
