"""Turns rows and values into the arrays that a batch statement takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

encode_json = msgspec.json.Encoder().encode


def array_text(values: Iterable[object]) -> str:
    """An array of numbers, ids or plain words as text. The driver looks at each element of an array; at a text it does
    not."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def ids_text(ids: Sequence[UUID]) -> str:
    """The same for ids, by way of JSON, which is ten times as fast as asking each of them for its text."""
    return "{" + encode_json(ids).decode()[1:-1] + "}"


def json_array(texts: Iterable[str | None]) -> str:
    """JSON texts as one, for PostgreSQL to take apart: a third of the time that it takes to read each as one of its
    own."""
    return "[" + ",".join([text or "null" for text in texts]) + "]"


def columns(rows: Sequence[Sequence[object]], width: int) -> list[list[Any]]:
    """Rows turned into one list a column: the arrays that a batch statement takes."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
