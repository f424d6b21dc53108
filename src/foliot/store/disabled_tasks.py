"""Stores which built-in tasks are disabled in which namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.store import queries
from foliot.store.postgres import Database


@dataclass(frozen=True, slots=True)
class DisabledTask:
    namespace: str
    """`*` means all namespaces."""
    task: str
    disabled_at: datetime
    disabled_by: str
    reason: str | None
    is_imposed: bool
    """Disabled with a token for all namespaces. Only such a token can enable it again."""


class DisabledTasks:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("disabled_tasks")

    async def put_disabled_task(
        self, namespace: str, task: str, actor: str, reason: str | None, *, is_imposed: bool
    ) -> None:
        await self._database.execute(
            self._queries["put_disabled_task"],
            namespace=namespace,
            task=task,
            actor=actor,
            reason=reason,
            is_imposed=is_imposed,
            now=self._database.clock.sql_now(),
        )

    async def delete_disabled_task(self, namespace: str, task: str, *, may_lift: bool) -> bool:
        """With `may_lift`, deletes an imposed entry too. Returns False if nothing was deleted."""
        return bool(
            await self._database.execute(
                self._queries["delete_disabled_task"], namespace=namespace, task=task, may_lift=may_lift
            )
        )

    async def list_disabled_tasks(self, namespace: str) -> list[DisabledTask]:
        return [
            DisabledTask(*row)
            for row in await self._database.fetch(self._queries["list_disabled_tasks"], namespace=namespace)
        ]
