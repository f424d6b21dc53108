"""Indexes ended runs and the lines of their output in OpenSearch or Elasticsearch.

History is the buffer: while the search engine is away, the place in it stays, and memory holds one page of rows. The
place advances when the engine has confirmed each document of a page, or will never take it. Documents that it refuses
are skipped and counted. After a lost answer the same documents are sent again, and replace themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, ExportDropped, ServiceFailed
from foliot.exporters.exporter import HOLD_SECONDS, Exporter
from foliot.exporters.search_documents import Document, Row, batches_of, documents_of
from foliot.exporters.search_engine import EngineUnavailable, SearchEngine
from foliot.model.archive import Kind
from foliot.service import own_task
from foliot.store.archives import PAGE_ROWS
from foliot.store.exports import Place
from foliot.store.lost_outputs import SettledRows
from foliot.store.store import Store

T = TypeVar("T")
BATCH, BATCH_BYTES = 1_000, 1_048_576
FIRST_WINDOW = timedelta(seconds=10)
LEAST_WINDOW = timedelta(milliseconds=10)
MOST_WINDOW = timedelta(days=1)
TRIES = 5
FIRST_WAIT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class SearchRow:
    place: Place
    row: Row


class SearchExporter(Exporter[SearchRow]):
    # Longer than a request may take.
    lease_seconds = 60.0

    def __init__(self, kind: Kind, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(store=store, clock=clock, events=events)
        self.export_name = f"search_{kind}"
        self._kind: Kind = kind
        self._prefix = config.search_prefix
        self._rows = SettledRows(store.archives, store.logs, config.output_max_bytes)
        self._engine = SearchEngine(config)
        self._is_prepared = False
        self._window = FIRST_WINDOW

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({self._kind})"

    async def horizon(self) -> datetime:
        return await self._store.archives.horizon(self._kind, HOLD_SECONDS)

    def window(self, place: Place, horizon: datetime) -> datetime:
        # A look sorts what it reads, so a large backlog is read in pieces of time.
        return min(horizon, place[0] + self._window)

    async def list_endings(self, after: Place, until: datetime, limit: int) -> Sequence[SearchRow]:
        rows = await self._rows.list_rows(self._kind, after, until)
        if len(rows) == PAGE_ROWS:
            self._window = max(LEAST_WINDOW, self._window / 2)
        else:
            self._window = min(MOST_WINDOW, self._window * 2)
        return [SearchRow((row["at"], row["key"]), row) for row in rows]

    def is_full(self, endings: Sequence[SearchRow], limit: int) -> bool:
        # A page also ends after some bytes, so only an empty one is the last.
        return bool(endings)

    async def run_once(self) -> float:
        try:
            return await super().run_once()
        except EngineUnavailable:
            # It may come back without its templates.
            self._is_prepared = False
            raise

    async def export(self, endings: Sequence[SearchRow]) -> None:
        if not self._is_prepared:
            if missing := await self._unless_stopping(self._engine.prepare()):
                self.events.emit(ServiceFailed(self.name, missing, 0))
            self._is_prepared = True
        documents = (found for one in endings for found in documents_of(self._kind, one.row, self._prefix))
        for batch in batches_of(documents, BATCH, BATCH_BYTES):
            await self._send(batch)

    async def on_stop(self) -> None:
        await super().on_stop()
        await self._engine.close()

    async def _send(self, batch: Sequence[Document]) -> None:
        """Returns when the engine has each document, or will never take it."""
        for tried in range(TRIES):
            if tried:
                await self.clock.wait(self._stopping, FIRST_WAIT_SECONDS * 2.0**tried)
            await self.renew()
            taken = await self._unless_stopping(self._engine.send(batch))
            if taken.refused:
                document, why = taken.refused[0]
                self.events.emit(ExportDropped(self.export_name, len(taken.refused), f"{document.id}: {why}"))
            if not taken.waiting:
                return
            batch = taken.waiting
        raise EngineUnavailable(f"{len(batch)} documents wait in the database: {taken.why}")

    async def _unless_stopping(self, work: Coroutine[Any, Any, T]) -> T:
        """A stop does not wait for a search engine that hangs."""
        working, stopping = own_task(work, name=self.name), own_task(self._stopping.wait(), name="wait for stop")
        try:
            await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise EngineUnavailable("the process is stopping")
            result: T = working.result()
            return result
        finally:
            working.cancel()
            stopping.cancel()
            await asyncio.wait([working, stopping])
