"""Formats output for people: aligned tables, relative times and colours.

Colours are always added; `click.echo` removes them without a terminal, or with NO_COLOR.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import click

COLOURS = {
    "active": "green",
    "completed": "green",
    "succeeded": "green",
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
GAP = "  "
# Invisible, but parts of emoji and of words.
JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    colour: str | None = None

    def padded(self, columns: int) -> str:
        styled = click.style(self.text, fg=self.colour) if self.colour and self.text else self.text
        return styled + " " * (columns - width(self.text))


def word(status: str) -> Cell:
    """A status or outcome in its colour."""
    return Cell(clean(status), COLOURS.get(status))


def table(headers: Sequence[str], rows: Iterable[Sequence[str | Cell]]) -> str:
    """Aligns columns. Leaves out columns that are empty in all rows; without rows the text is empty."""
    cells = [[cell if isinstance(cell, Cell) else Cell(clean(cell)) for cell in row] for row in rows]
    kept = [index for index in range(len(headers)) if any(row[index].text for row in cells)]
    lines = [[Cell(headers[index]) for index in kept], *([row[index] for index in kept] for row in cells)]
    widths = [max(width(line[index].text) for line in lines) for index in range(len(kept))]
    return "\n".join(GAP.join(map(Cell.padded, line, widths)).rstrip() for line in lines)


def facts(pairs: Iterable[tuple[str, str | Cell | None]]) -> str:
    """One `name  value` pair per line, without empty values."""
    known = [(name, value if isinstance(value, Cell) else Cell(clean(value))) for name, value in pairs if value]
    longest = max((len(name) for name, _ in known), default=0)
    return "\n".join(f"{name:<{longest}}{GAP}{value.padded(0)}" for name, value in known)


def at(time: str | None, now: datetime) -> str:
    """A time as the server wrote it, followed by the relative time."""
    return f"{time} ({away(time, now)})" if time else ""


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


def width(text: str) -> int:
    """The number of terminal columns that the text takes."""
    return sum(_columns(character) for character in text)


def _is_harmless(character: str) -> bool:
    return character in JOINERS or unicodedata.category(character) not in INVISIBLE


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()


def _columns(character: str) -> int:
    if character in JOINERS or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
