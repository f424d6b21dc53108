"""The store's queries by name, whichever file they are in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from foliot.store import queries
from foliot.store.queries import Query


def all_queries() -> Iterator[Query]:
    for path in sorted((Path(queries.__file__).parent / "sql").glob("*.sql")):
        yield from queries.load(path.stem).values()


def query_named(name: str) -> Query:
    return next(query for query in all_queries() if query.name == name)
