"""Jobs that run once, straight at the database: for programs that have PostgreSQL at hand and no server.

One thread with an event loop of its own holds the store. Plain code waits for what runs there, and async code, on
whichever loop, awaits it: so both are the same code, and share the same few connections. Jobs that are submitted at the
same time share a statement, too (`submission/batcher.py`).
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Self, TypeVar
from uuid import UUID

import msgspec

from foliot.clock import SystemClock
from foliot.config import Config, without_password
from foliot.errors import FoliotError, NotFound, StoreUnavailable, TooLarge
from foliot.events import EventBus
from foliot.model.namespace import DEFAULT, bare, bare_key
from foliot.model.run import RunView
from foliot.model.states import status_of
from foliot.observability.tallies import counting
from foliot.sdk.client import Patience
from foliot.sdk.direct_submission import DirectBatcher, DirectSubmission, read_job
from foliot.sdk.http_protocol import Answer, Document
from foliot.sdk.jobs import Alike, Made
from foliot.service import loop_factory
from foliot.store.hints import worker_topic
from foliot.store.store import Store, open_store
from foliot.submission.admission import BATCH_MAX
from foliot.submission.restrictions import WITHOUT_SERVER, refusal

T = TypeVar("T")
CONNECTIONS = 4
SHOWN = (
    "id", "name", "reason", "task", "queue", "priority", "attempt", "worker_id", "created_at", "started_at", "finished_at", "payload",
    "options", "result", "error", "job_id", "tick_at", "unique_key", "expires_at", "held_by",
)  # fmt: skip


class DatabaseClient:
    """Connects with the first thing that it is asked for. Safe to use from any thread."""

    def __init__(self, url: str, namespace: str = "") -> None:
        self._url = url
        self.namespace = namespace or DEFAULT
        self._lock = threading.Lock()
        self._keeper: StoreKeeper | None = None

    def create_job(self, job: Mapping[str, Any]) -> Answer:
        keeper = self.keeper()
        if is_alone(job):
            return self._wait(create_job(keeper.submission, job))
        return _made(_result_of(keeper.batcher.add_from_thread(read_job(job))), is_new=True)

    def create_alike(self, jobs: Alike, *, idempotency_key: str | None = None) -> list[Made]:
        return self._wait(create_alike(self.keeper().submission, jobs, idempotency_key))

    def get_job(self, reference: str) -> Answer:
        return self._wait(get_job(self.open(), reference))

    def wait_for_job(self, job_id: str, timeout: float | None = None) -> Answer:
        return self._wait(wait_for_job(self.open(), job_id, timeout))

    def cancel_run(self, run_id: str, *, reason: str | None = None, force: bool = False) -> Answer:
        return self._wait(cancel_run(self.open(), run_id, reason, is_forced=force))

    def twin(self) -> AsyncDatabaseClient:
        return AsyncDatabaseClient(self)

    def close(self) -> None:
        with self._lock:
            keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.stop()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begins with it where the store is."""
        with self._lock:
            keeper = self._keeper
        if keeper is None:
            work.close()
            raise StoreUnavailable("PostgreSQL: this client is closed")
        return asyncio.run_coroutine_threadsafe(work, keeper.loop)

    def open(self) -> Store:
        """The store, of use only to what is begun with `start`."""
        return self.keeper().store

    @property
    def opened(self) -> StoreKeeper | None:
        """Where the store is, if it is open."""
        return self._keeper

    def keeper(self) -> StoreKeeper:
        """The same, and if it is not open, it is opened."""
        with self._lock:
            if self._keeper is None:
                keeper = StoreKeeper(self._url, self.namespace)
                keeper.begin()
                self._keeper = keeper
            return self._keeper

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return _result_of(self.start(work))


class AsyncDatabaseClient:
    """The same for async code. Leaving it closes nothing: the store is that of the plain client, for as long as that is
    open."""

    def __init__(self, client: DatabaseClient) -> None:
        self._client = client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def create_job(self, job: Mapping[str, Any]) -> Answer:
        keeper = await self._keeper()
        if is_alone(job):
            return await self._wait(create_job(keeper.submission, job))
        return _made(await asyncio.wrap_future(keeper.batcher.add_from_thread(read_job(job))), is_new=True)

    async def create_alike(self, jobs: Alike, *, idempotency_key: str | None = None) -> list[Made]:
        return await self._wait(create_alike((await self._keeper()).submission, jobs, idempotency_key))

    async def get_job(self, reference: str) -> Answer:
        return await self._wait(get_job(await self._store(), reference))

    async def wait_for_job(self, job_id: str, timeout: float | None = None) -> Answer:
        return await self._wait(wait_for_job(await self._store(), job_id, timeout))

    async def cancel_run(self, run_id: str, *, reason: str | None = None, force: bool = False) -> Answer:
        return await self._wait(cancel_run(await self._store(), run_id, reason, is_forced=force))

    async def _store(self) -> Store:
        return (await self._keeper()).store

    async def _keeper(self) -> StoreKeeper:
        if (keeper := self._client.opened) is not None:
            return keeper
        # Connecting may take seconds, in which the caller's loop must go on.
        return await asyncio.to_thread(self._client.keeper)

    async def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._client.start(work))


class StoreKeeper:
    """A thread in which the store is open."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self._namespace = namespace
        self._opened: Future[None] = Future()
        self._stop = asyncio.Event()
        # A program that forgets to close its client can end all the same.
        self._thread = threading.Thread(target=self._run, name="foliot database", daemon=True)
        self.loop: asyncio.AbstractEventLoop
        self.store: Store
        self.submission: DirectSubmission
        self.batcher: DirectBatcher

    def begin(self) -> None:
        """Raises `StoreUnavailable` or `SchemaError` when the database is none that can be worked with."""
        self._thread.start()
        try:
            self._opened.result()
        except BaseException:
            if self._opened.done():
                self._thread.join()
            raise

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._keep())

    async def _keep(self) -> None:
        config = Config(database_pool_size=CONNECTIONS)
        try:
            async with open_store(
                self._url, config=config, clock=SystemClock(), events=EventBus(), part="foliot client"
            ) as store:
                await store.check_schema()
                self.loop, self.store = asyncio.get_running_loop(), store
                self.submission = DirectSubmission(store=store, namespace=self._namespace)
                self.batcher = DirectBatcher(submission=self.submission, store=store)
                await self.batcher.start()
                async with counting(store=store, clock=store.database.clock, events=store.events):
                    self._opened.set_result(None)
                    await self._stop.wait()
                    await self.batcher.stop()
        except FoliotError as error:
            self._failed(error)
        except Exception as error:
            # A wrong password or a database that is not there: whatever the driver says, to the caller it is one thing.
            shown = f"PostgreSQL: {without_password(self._url)}: {type(error).__name__}: {error}"
            self._failed(StoreUnavailable(shown))

    def _failed(self, error: FoliotError) -> None:
        if not self._opened.done():
            self._opened.set_exception(error)


def is_alone(job: Mapping[str, Any]) -> bool:
    """A unique key may have to wait for somebody's transaction that has it, too; jobs without one must not wait
    along."""
    return job.get("unique") is not None


async def create_job(submission: DirectSubmission, job: Mapping[str, Any]) -> Answer:
    (found,) = await submission.store_all([await submission.accept(read_job(job))])
    return _made(found.id, is_new=found.is_new)


async def create_alike(submission: DirectSubmission, jobs: Alike, idempotency_key: str | None) -> list[Made]:
    if idempotency_key is not None:
        raise refusal("idempotency_key", WITHOUT_SERVER["idempotency_key"])
    if len(jobs) > BATCH_MAX:
        raise TooLarge(f"{len(jobs)} jobs at once; {BATCH_MAX} is the most")
    return await submission.store_alike(jobs)


async def get_job(store: Store, reference: str) -> Answer:
    return _answer(_shown(await _found(store, reference)))


async def wait_for_job(store: Store, job_id: str, timeout: float | None) -> Answer:
    patience = Patience(job_id, timeout)
    while True:
        try:
            answer = await get_job(store, job_id)
        except StoreUnavailable as error:
            patience.lost(error)
        else:
            if patience.is_over(answer.document):
                return answer
        await SystemClock().sleep(patience.pause())


async def cancel_run(store: Store, run_id: str, reason: str | None, *, is_forced: bool) -> Answer:
    run = await _found(store, run_id)
    marked = await store.runs.mark_cancelled([run.id], reason or "cancelled by request", is_forced=is_forced)
    if marked:
        store.hints.send(worker_topic(worker_id) for worker_id in marked.values() if worker_id is not None)
        await store.end_cancelled()
    return await get_job(store, run_id)


async def _found(store: Store, reference: str) -> RunView:
    try:
        run = await store.runs.get_run(UUID(reference))
    except ValueError:
        raise NotFound(
            f"there is no job {reference!r}: straight to the database, jobs are known by their ids"
        ) from None
    if run is None:
        raise NotFound(f"there is no job {reference!r}")
    return run


def _shown(run: RunView) -> dict[str, Any]:
    """By the names that the API has for it."""
    status = status_of(run.state, run.attempt) if run.total is None else "running"
    output = None if run.output is None else run.output.decode("utf-8", "replace")
    shown = {name: getattr(run, name) for name in SHOWN}
    names = {
        "task": bare(run.task),
        "queue": bare(run.queue),
        "unique_key": run.unique_key and bare_key(run.unique_key),
    }
    return {
        **shown,
        **names,
        "status": status,
        "state": run.state,
        "scheduled_at": run.due_at,
        "output": output,
        "cancel_requested": run.cancel,
    }


def _result_of(future: Future[T]) -> T:
    try:
        return future.result()
    except BaseException:
        # Ctrl-C while waiting, for one: what was begun there ends, too.
        future.cancel()
        raise


def _made(run_id: UUID, *, is_new: bool) -> Answer:
    return _answer({"id": run_id, "created": is_new})


def _answer(document: object) -> Answer:
    content = msgspec.json.encode(document)
    return Answer(content, json.loads(content, object_hook=Document))
