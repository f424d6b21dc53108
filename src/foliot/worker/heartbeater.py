"""Renews this worker's lease, one row for all its attempts. The answer names the attempts that must stop.

The worker trusts its lease until two seconds before it expires. The time counts from *before* the renewal was sent, on
the monotonic clock. A worker that could not renew in time, or whose registration was removed, must stop all its
attempts before other workers may start them again; `on_lease_lost` does that.

User code cannot block the heartbeat: `HeartbeatThread` gives it a thread, an event loop and a connection of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, ServiceFailed
from foliot.service import Service, own_task
from foliot.store.workers import Beat
from foliot.worker.attempts import Attempts
from foliot.worker.backend import Beats
from foliot.worker.holdings import Holdings
from foliot.worker.identity import WorkerIdentity

MARGIN_SECONDS = 2.0
RETRY_SECONDS = 0.2


class Heartbeater(Service):
    def __init__(
        self,
        *,
        workers: Beats,
        identity: WorkerIdentity,
        attempts: Attempts,
        holdings: Holdings,
        on_beat: Callable[[Beat], None],
        config: Config,
        on_lease_lost: Callable[[], Awaitable[None]],
        clock: Clock,
        events: EventBus,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._workers = workers
        self._identity = identity
        self._attempts = attempts
        self._holdings = holdings
        self._on_beat = on_beat
        self._config = config
        self._on_lease_lost = on_lease_lost
        self._trusted_until = 0.0
        self._leases = 0
        self._lock = threading.Lock()
        self._asking: set[asyncio.Task[Beat]] = set()

    def begin_lease(self, asked_at: float) -> None:
        """A new lease, which may end before the current one does. `asked_at`: the monotonic time just before the worker
        registered, or requested it with a claim."""
        with self._lock:
            self._leases += 1
            self._trust_from(asked_at)

    async def run_once(self) -> float:
        asked_at, lease = self.clock.monotonic(), self._leases
        beat: Beat | None = None
        try:
            beat = await self._asked(max(0.0, self._trusted_until - asked_at))
            self._on_beat(beat)
        except Exception as error:
            # The lease expires whatever the error was.
            self.events.emit(ServiceFailed(self.name, f"{type(error).__name__}: {error}", RETRY_SECONDS))
        if beat is not None and beat.is_renewed:
            with self._lock:
                is_current = lease == self._leases
                if is_current:
                    self._trust_from(asked_at, beat.lease_seconds)
            if not is_current:
                # The answer may be about the lease before.
                return 0
        elif beat is not None or self.clock.monotonic() >= self._trusted_until:
            await self._on_lease_lost()
            # The new lease counts from before it was requested. If PostgreSQL was unavailable meanwhile, the lease may
            # be about to expire.
            return 0
        else:
            return RETRY_SECONDS
        return self._config.worker_beat_seconds if beat.next_seconds is None else beat.next_seconds

    async def _asked(self, seconds: float) -> Beat:
        """Does not wait for the cleanup of a request that has taken too long: that may need an answer, too."""
        asking: asyncio.Task[Beat] = own_task(
            self._workers.beat(self._identity.id, self._holdings.keys(), self._attempts.left_running), name="beat"
        )
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        try:
            await asyncio.wait([asking], timeout=seconds)
            if asking.done():
                return asking.result()
            raise TimeoutError("no answer while the lease lasted")
        finally:
            asking.cancel()

    async def on_stop(self) -> None:
        if self._asking:
            await asyncio.wait(self._asking)

    @property
    def has_lease(self) -> bool:
        return self.clock.monotonic() < self._trusted_until

    def _trust_from(self, asked_at: float, lease_seconds: float | None = None) -> None:
        seconds = self._config.worker_ttl_seconds if lease_seconds is None else lease_seconds
        self._trusted_until = asked_at + seconds - min(MARGIN_SECONDS, seconds / 5)


class HeartbeatThread:
    """Runs a heartbeater in its own thread and passes its events and answers to the worker's event loop."""

    def __init__(
        self,
        *,
        open_beats: Callable[[EventBus], AbstractAsyncContextManager[Beats]],
        identity: WorkerIdentity,
        attempts: Attempts,
        holdings: Holdings,
        on_beat: Callable[[Beat], None],
        on_lease_lost: Callable[[], Awaitable[None]],
        config: Config,
        clock: Clock,
        events: EventBus,
    ) -> None:
        self._open_beats = open_beats
        self._identity = identity
        self._attempts = attempts
        self._holdings = holdings
        self._on_beat = on_beat
        self._on_lease_lost = on_lease_lost
        self._config = config
        self._clock = clock
        self._events = events
        self._lease_asked_at: float | None = None
        self._heartbeater: Heartbeater | None = None
        self._loop: asyncio.AbstractEventLoop
        self._home: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None
        self._stopping: asyncio.Event

    def begin_lease(self, asked_at: float) -> None:
        self._lease_asked_at = asked_at
        if self._heartbeater is not None:
            self._heartbeater.begin_lease(asked_at)

    @property
    def has_lease(self) -> bool:
        heartbeater = self._heartbeater
        return heartbeater is not None and heartbeater.has_lease

    def wake(self) -> None:
        if self._heartbeater is not None:
            self._loop.call_soon_threadsafe(self._heartbeater.wake)

    async def start(self) -> None:
        if self._thread is None:
            self._home = asyncio.get_running_loop()
            ready: asyncio.Future[None] = self._home.create_future()
            self._thread = threading.Thread(target=self._run, args=(ready,), name="heartbeat", daemon=True)
            self._thread.start()
            await ready

    async def stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            await asyncio.to_thread(thread.join)

    def _run(self, ready: asyncio.Future[None]) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._beat_until_stopped(ready))

    async def _beat_until_stopped(self, ready: asyncio.Future[None]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        events = EventBus()
        events.subscribe(lambda event: self._at_home(self._events.emit, event))
        try:
            async with self._open_beats(events) as workers:
                heartbeater = Heartbeater(
                    workers=workers,
                    identity=self._identity,
                    attempts=self._attempts,
                    holdings=self._holdings,
                    on_beat=lambda beat: self._at_home(self._on_beat, beat),
                    on_lease_lost=self._lose_lease,
                    config=self._config,
                    clock=self._clock,
                    events=events,
                )
                if self._lease_asked_at is not None:
                    heartbeater.begin_lease(self._lease_asked_at)
                self._heartbeater = heartbeater
                await heartbeater.start()
                self._at_home(ready.set_result, None)
                await self._stopping.wait()
                self._heartbeater = None
                await heartbeater.stop()
        except Exception as error:
            # `start` raises the error if it is still waiting. Later, the lease expires.
            self._at_home(_fail, ready, error)

    async def _lose_lease(self) -> None:
        """Waits until the worker's own loop has stopped every attempt."""
        ending = asyncio.run_coroutine_threadsafe(_awaited(self._on_lease_lost), self._home)
        await asyncio.wrap_future(ending)

    def _at_home(self, call: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):
            # The worker's loop is closed.
            self._home.call_soon_threadsafe(call, *arguments)


def _fail(ready: asyncio.Future[None], error: Exception) -> None:
    if not ready.done():
        ready.set_exception(error)


async def _awaited(work: Callable[[], Awaitable[None]]) -> None:
    await work()
