"""Stores saved views of lists."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.model.namespace import Namespace
from foliot.store import queries
from foliot.store.postgres import Database

SHARED = ""
MOST = 200
"""Views of one owner, or shared ones of a namespace."""


@dataclass(frozen=True, slots=True)
class View:
    page: str
    name: str
    search: str
    is_shared: bool
    updated_at: datetime
    updated_by: str


class Views:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("views")

    async def list_views(self, namespace: Namespace, owner: str) -> list[View]:
        rows = await self._database.fetch(self._queries["list_views"], namespace=namespace.name, owner=owner)
        return [View(*row) for row in rows]

    async def put_view(
        self, namespace: Namespace, owner: str, *, page: str, name: str, search: str, by: str
    ) -> View | None:
        """None if the owner has too many. `owner` is `SHARED` for everybody's."""
        row = await self._database.fetch_row(
            self._queries["put_view"],
            namespace=namespace.name,
            owner=owner,
            page=page,
            name=name,
            search=search,
            by=by,
            most=MOST,
            now=self._database.clock.sql_now(),
        )
        return None if row is None else View(*row)

    async def delete_view(self, namespace: Namespace, owner: str, *, page: str, name: str) -> None:
        await self._database.execute(
            self._queries["delete_view"], namespace=namespace.name, owner=owner, page=page, name=name
        )
