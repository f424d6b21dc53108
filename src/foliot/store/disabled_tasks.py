"""Stores which built-in tasks are disabled, and where."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.store import queries
from foliot.store.postgres import Database


@dataclass(frozen=True, slots=True)
class DisabledTask:
    namespace: str
    """`*`: all of them."""
    task: str
    disabled_at: datetime
    disabled_by: str
    reason: str | None
    is_imposed: bool
    """By somebody whose token is for all namespaces; only such a one can turn it on again."""


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
        """`may_lift`: also what was imposed. False when there was nothing to delete."""
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
