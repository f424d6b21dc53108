"""Turns rows and values into arrays for batch statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

encode_json = msgspec.json.Encoder().encode


def array_text(values: Iterable[object]) -> str:
    """An array literal of numbers, ids or plain words. The driver encodes every element of a list, but not of a
    text."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def ids_text(ids: Sequence[UUID]) -> str:
    """An array literal of ids. Encoding them as JSON is ten times as fast as `str` for each."""
    return "{" + encode_json(ids).decode()[1:-1] + "}"


def json_array(texts: Iterable[str | None]) -> str:
    """JSON texts as one JSON array. PostgreSQL splits it in a third of the time that separate parameters take."""
    return "[" + ",".join([text or "null" for text in texts]) + "]"


def optional_column(values: Sequence[Any]) -> Sequence[Any]:
    """The values, or an empty array if all of them are None."""
    return values if any(value is not None for value in values) else []


def columns(rows: Sequence[Sequence[object]], width: int) -> list[list[Any]]:
    """Transposes rows into one list for each column."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
