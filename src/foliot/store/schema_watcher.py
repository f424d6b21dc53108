"""Registers this process in the database, and stops it when the schema becomes too new for it.

`foliot migrate` refuses a migration that a registered process could not work with. If the migration is forced, the
process notices within `INTERVAL_SECONDS`, logs it, takes no more work, and exits with an error that names the cause.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress

from foliot.clock import Clock
from foliot.errors import SchemaError, StoreUnavailable
from foliot.events import EventBus, SchemaIsNewer, SchemaIsTooNew
from foliot.model.ids import new_id
from foliot.service import Service
from foliot.store import queries
from foliot.store.migrate import check_schema, known_migrations, refuse_newer
from foliot.store.postgres import Database, Transaction

# Each process writes once in this time: short for a person who waits at a terminal, long for ten thousand idle workers.
INTERVAL_SECONDS = 30.0
TTL_SECONDS = 2.5 * INTERVAL_SECONDS


class SchemaWatcher(Service):
    def __init__(
        self, database: Database, part: str, *, clock: Clock, events: EventBus, on_misfit: Callable[[], None]
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._database = database
        self._part = part
        self._id = new_id()
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._known = [migration.version for migration in known_migrations()]
        self._reported: set[int] = set()
        self._on_misfit = on_misfit
        self._queries = queries.load("processes")
        self._register = self._queries["tell_process"]
        self.misfit: SchemaError | None = None
        """Why this process must stop."""

    async def on_start(self) -> None:
        """Raises `SchemaError` if this process can't work with the schema."""

        async def work(within: Transaction) -> None:
            await within.execute(self._queries["wait_for_migrations"])
            await within.fetch(self._register, *self._arguments())

        # Checked before, because the table may be missing, and after, because from then on `foliot migrate` sees this
        # process.
        await check_schema(self._database)
        await self._database.in_transaction("tell_process", work)
        try:
            await check_schema(self._database)
        except SchemaError:
            await self.on_stop()
            raise

    async def run_once(self) -> float:
        unknown = {row[0]: row[1] for row in await self._database.fetch(self._register, *self._arguments())}
        try:
            refuse_newer(unknown, self._known[-1])
        except SchemaError as error:
            if self.misfit is None:
                self.misfit = error
                self.events.emit(SchemaIsTooNew(max(unknown), max(unknown.values()), self._known[-1]))
                self._on_misfit()
        else:
            if new := set(unknown) - self._reported:
                self._reported |= new
                self.events.emit(SchemaIsNewer(max(new), self._known[-1]))
        return INTERVAL_SECONDS

    async def on_stop(self) -> None:
        # If PostgreSQL is down, the entry expires by itself.
        with suppress(StoreUnavailable):
            await self._database.execute(self._queries["remove_process"], id=self._id)

    def _arguments(self) -> tuple[object, ...]:
        return (
            self._id,
            self._part,
            self._name,
            self._known[-1],
            TTL_SECONDS,
            self._known,
            self._database.clock.sql_now(),
        )
