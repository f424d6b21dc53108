"""Loads `sql/*.sql` into named queries: a block begins with `-- name: ...` and holds one statement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

MARK = "-- name: "


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    sql: str


@cache
def load(family: str) -> dict[str, Query]:
    """The named queries of one file."""
    text = (resources.files("foliot.store") / "sql" / f"{family}.sql").read_text(encoding="utf-8")
    found: dict[str, Query] = {}
    for block in text.split(MARK)[1:]:
        name, _, sql = block.partition("\n")
        if name in found:
            raise ValueError(f"{family}.sql holds two queries named {name}")
        found[name] = Query(name, sql.strip())
    return found
