"""Loads `sql/*.sql` into named queries: a block begins with `-- name: ...` and holds one statement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

MARK = "-- name: "
PARAMETER = re.compile(r"\$(\d+)")


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


@cache
def together(query: Query, beside: Query) -> Query:
    """Both as one statement, in one round trip and with one commit; `beside` writes, and its rows are not read.

    The parameters of `beside` come after those of `query`, which must begin with a WITH: what writes has to stand at
    the top.
    """
    taken = max(int(number) for number in PARAMETER.findall(query.sql))
    renumbered = PARAMETER.sub(lambda found: f"${int(found[1]) + taken}", beside.sql)
    why, has_with, rest = f"\n{query.sql}".partition("\nwith ")
    if not has_with:
        raise ValueError(f"{query.name} does not begin with a WITH")
    return Query(f"{query.name} and {beside.name}", f"{why}\nwith beside as (\n{renumbered}\n), {rest}")
