"""Finds names by some of their characters: recurring jobs, tasks, queues, workers and calendars."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.model.namespace import Namespace
from foliot.store import queries
from foliot.store.postgres import Database


@dataclass(frozen=True, slots=True)
class FoundName:
    kind: str
    id: str
    name: str
    hint: str | None


class Search:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("search")

    async def search_names(self, namespace: Namespace, text: str, *, limit: int, scan: int) -> list[FoundName]:
        """Up to `limit` of each kind. Reads at most `scan` rows of each table."""
        pattern = namespace.qualified("").replace("_", r"\_") + f"%{escaped(text)}%"
        jobs = await self._database.fetch(
            self._queries["search_jobs"],
            pattern=pattern,
            namespace=namespace.name,
            first=namespace.qualified(""),
            limit=limit,
            scan=scan,
        )
        others = await self._database.fetch(
            self._queries["search_names"],
            pattern=pattern,
            namespace=namespace.name,
            limit=limit,
            scan=scan,
            now=self._database.clock.sql_now(),
        )
        return [FoundName("job", str(row[0]), row[1], row[2]) for row in jobs] + [FoundName(*row) for row in others]


def escaped(text: str) -> str:
    """The text as a part of a LIKE pattern that stands for itself."""
    return text.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
