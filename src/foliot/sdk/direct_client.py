"""`DatabaseClient`: one-off jobs directly in the database, for programs without a server.

A thread with its own event loop holds the store. Plain code waits for coroutines on that loop, and async code awaits
them from any loop, so both share the same code and connections. Jobs submitted at the same time share one statement
(`submission/batcher.py`).
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
from foliot.sdk.current_trace import in_current_trace
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
    "id",
    "name",
    "reason",
    "task",
    "queue",
    "priority",
    "attempt",
    "worker_id",
    "created_at",
    "started_at",
    "finished_at",
    "payload",
    "options",
    "result",
    "error",
    "job_id",
    "tick_at",
    "unique_key",
    "expires_at",
    "held_by",
)


class DatabaseClient:
    """A client for one-off jobs in the database. Connects on first use. Safe to use from any thread."""

    def __init__(self, url: str, namespace: str = "") -> None:
        self._url = url
        self.namespace = namespace or DEFAULT
        self._lock = threading.Lock()
        self._keeper: StoreKeeper | None = None

    def create_job(self, job: Mapping[str, Any]) -> Answer:
        keeper, job = self.keeper(), in_current_trace(job)
        if is_alone(job):
            return self._wait(create_job(keeper.submission, job))
        return _made(_result_of(keeper.batcher.add_from_thread(read_job(job))), is_new=True)

    def create_alike(self, jobs: Alike, *, idempotency_key: str | None = None) -> list[Made]:
        return self._wait(create_alike(self.keeper().submission, traced(jobs), idempotency_key))

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
        """Starts a coroutine on the store's event loop."""
        with self._lock:
            keeper = self._keeper
        if keeper is None:
            work.close()
            raise StoreUnavailable("PostgreSQL: this client is closed")
        return asyncio.run_coroutine_threadsafe(work, keeper.loop)

    def open(self) -> Store:
        """The store, for use only in coroutines passed to `start`."""
        return self.keeper().store

    @property
    def opened(self) -> StoreKeeper | None:
        """The keeper of the store, if it is open."""
        return self._keeper

    def keeper(self) -> StoreKeeper:
        """The keeper of the store, which is opened if necessary."""
        with self._lock:
            if self._keeper is None:
                keeper = StoreKeeper(self._url, self.namespace)
                keeper.begin()
                self._keeper = keeper
            return self._keeper

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return _result_of(self.start(work))


class AsyncDatabaseClient:
    """The async variant of `DatabaseClient`. It shares the plain client's store, so leaving it closes nothing."""

    def __init__(self, client: DatabaseClient) -> None:
        self._client = client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def create_job(self, job: Mapping[str, Any]) -> Answer:
        keeper, job = await self._keeper(), in_current_trace(job)
        if is_alone(job):
            return await self._wait(create_job(keeper.submission, job))
        return _made(await keeper.batcher.add_from_loop(read_job(job)), is_new=True)

    async def create_alike(self, jobs: Alike, *, idempotency_key: str | None = None) -> list[Made]:
        submission = (await self._keeper()).submission
        return await self._wait(create_alike(submission, traced(jobs), idempotency_key))

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
        # Connecting may take seconds and must not block the caller's event loop.
        return await asyncio.to_thread(self._client.keeper)

    async def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._client.start(work))


class StoreKeeper:
    """Keeps the store open in a thread."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self._namespace = namespace
        self._opened: Future[None] = Future()
        self._stop = asyncio.Event()
        # A daemon, so that a program can exit without closing its client.
        self._thread = threading.Thread(target=self._run, name="foliot database", daemon=True)
        self.loop: asyncio.AbstractEventLoop
        self.store: Store
        self.submission: DirectSubmission
        self.batcher: DirectBatcher

    def begin(self) -> None:
        """Opens the store. Raises `StoreUnavailable` or `SchemaError` if the database can't be used."""
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
            # A wrong password or a missing database, for example: one error for the caller.
            shown = f"PostgreSQL: {without_password(self._url)}: {type(error).__name__}: {error}"
            self._failed(StoreUnavailable(shown))

    def _failed(self, error: FoliotError) -> None:
        if not self._opened.done():
            self._opened.set_exception(error)


def is_alone(job: Mapping[str, Any]) -> bool:
    """True for a job with a unique key. It may wait for another transaction, and must not delay other jobs."""
    return job.get("unique") is not None


async def create_job(submission: DirectSubmission, job: Mapping[str, Any]) -> Answer:
    (found,) = await submission.store_all([await submission.accept(read_job(job))])
    return _made(found.id, is_new=found.is_new)


async def create_alike(submission: DirectSubmission, jobs: Alike, idempotency_key: str | None) -> list[Made]:
    if idempotency_key is not None:
        raise refusal("idempotency_key", WITHOUT_SERVER["idempotency_key"])
    if len(jobs) > BATCH_MAX:
        raise TooLarge(f"{len(jobs)} jobs at once; the maximum is {BATCH_MAX}")
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
    marked = await store.cancellation.mark_cancelled([run.id], reason or "cancelled by request", is_forced=is_forced)
    if marked:
        store.hints.send(worker_topic(worker_id) for worker_id in marked.values() if worker_id is not None)
        await store.cancellation.end_cancelled()
    return await get_job(store, run_id)


async def _found(store: Store, reference: str) -> RunView:
    try:
        run = await store.runs.get_run(UUID(reference))
    except ValueError:
        raise NotFound(f"there is no job {reference!r}; without a server, give the id of a job") from None
    if run is None:
        raise NotFound(f"there is no job {reference!r}")
    return run


def _shown(run: RunView) -> dict[str, Any]:
    """The run with the field names of the API."""
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


def traced(jobs: Alike) -> Alike:
    """The jobs in the current trace. Plain, so that it runs in the thread and context of the caller."""
    return Alike(in_current_trace(jobs.fields), jobs.payloads)


def _result_of(future: Future[T]) -> T:
    try:
        return future.result()
    except BaseException:
        # On Ctrl-C, for example, also end the coroutine.
        future.cancel()
        raise


def _made(run_id: UUID, *, is_new: bool) -> Answer:
    shown = Document(id=str(run_id), created=is_new)
    return Answer(msgspec.json.encode(shown), shown)


def _answer(document: object) -> Answer:
    content = msgspec.json.encode(document)
    return Answer(content, json.loads(content, object_hook=Document))
