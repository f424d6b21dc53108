"""A worker node: registers under a fresh id, runs its services, drains when it stops.

Stopping: no more claims, beats go on, running attempts get their grace, what is left is given back unconsumed, outcomes
are written, the worker signs off. A worker that lost its lease does not die: it ends its attempts and registers anew.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import UUID

from foliot.clock import Clock
from foliot.config import BUILT_IN_TASKS, Config, hidden_paths
from foliot.errors import StoreUnavailable
from foliot.events import (
    ContainmentChosen,
    ContainmentIsWeak,
    EventBus,
    RunsFinished,
    WorkerDraining,
    WorkerExpired,
    WorkerRegistered,
)
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.outcome import Ending, Outcome
from foliot.model.run import Claim, RunOptions
from foliot.sdk.app import DEFAULT_QUEUE, App
from foliot.service import Service, own_task
from foliot.store.hints import ALL_QUEUES_TOPIC, GATES_TOPIC, HintListener, worker_topic
from foliot.store.store import Store
from foliot.store.workers import Beat
from foliot.worker.attempts import CLEARING_SECONDS, REFUSAL_SECONDS, Attempts, KnownTask
from foliot.worker.claimer import Claimer
from foliot.worker.completer import Completer
from foliot.worker.declared_jobs import declare_jobs
from foliot.worker.executors.http import http
from foliot.worker.executors.map import map_items
from foliot.worker.executors.processes.containment import choose
from foliot.worker.executors.processes.launcher_pool import LauncherPool
from foliot.worker.executors.processes.orphan_cleanup import OrphanCleanup
from foliot.worker.executors.processes.process_pool import ProcessPool, in_a_process
from foliot.worker.executors.python import asks_for_context, in_a_thread, on_the_loop
from foliot.worker.executors.shell import shell
from foliot.worker.executors.simulate import simulate
from foliot.worker.executors.transactional import in_a_transaction
from foliot.worker.executors.wait import wait
from foliot.worker.executors.workflow import workflow
from foliot.worker.heartbeater import HeartbeatThread
from foliot.worker.holdings import Holdings
from foliot.worker.log_writer import LogWriter
from foliot.worker.loop_watchdog import LoopWatchdog
from foliot.worker.upstream_results import UpstreamReader

# Outcomes that could not be written by then are written off; the runs come back when the lease is over.
LAST_WORDS_SECONDS = 10.0


class WorkerNode:
    def __init__(
        self,
        *,
        store: Store,
        config: Config,
        clock: Clock,
        events: EventBus,
        app: App,
        queues: Mapping[str, int],
        listen_url: str | None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        self._events = events
        self._app = app
        self._namespace = namespace = Namespace(config.namespace)
        self._queues = {namespace.qualified(queue): slots for queue, slots in queues.items()}
        self._labels = dict(labels or {})
        self._threads = ThreadPoolExecutor(max_workers=sum(queues.values()), thread_name_prefix="task")
        built_in = BUILT_IN_TASKS - config.tasks_disabled()
        declared = dict.fromkeys(built_in, DEFAULT_QUEUE) | {name: task.queue for name, task in app.tasks.items()}
        self._queue_of_task = {
            namespace.qualified(task): namespace.qualified(queue) for task, queue in declared.items()
        }
        self._guarantees = {namespace.qualified(name): task.options.guarantee for name, task in app.tasks.items()}
        self._tags = {
            namespace.qualified(name): task.options.tags for name, task in app.tasks.items() if task.options.tags
        }
        self._worker_id: UUID
        self._is_hurried = asyncio.Event()
        self.is_draining = asyncio.Event()
        """Set when an operator asks this worker to finish what it has and stop."""
        self._containment = choose(config)
        self._orphan_cleanup = OrphanCleanup(self._containment.mark)
        self._launchers = LauncherPool(self._containment)
        self._processes = ProcessPool(self._launchers)
        known = {namespace.qualified(name): task for name, task in self._known_tasks(app).items() if name in declared}
        self._holdings = holdings = Holdings()
        self.completer = Completer(store=store, holdings=holdings, clock=clock, events=events)
        self.completer.watch(
            {namespace.qualified(task.name): task.circuit for task in app.tasks.values() if task.circuit is not None}
        )
        self._upstream_reader = UpstreamReader(store=store, clock=clock, events=events)
        self._attempts = Attempts(
            tasks=known,
            slots=self._queues,
            output_max_bytes=config.output_max_bytes,
            holdings=holdings,
            on_outcome=self._ended,
            on_committed=self._committed,
            provide=self._upstream_reader.provide,
            on_lasted=self.completer.lasted,
            clock=clock,
        )
        self.claimer = Claimer(
            store=store,
            attempts=self._attempts,
            holdings=holdings,
            completer=self.completer,
            tasks=list(known),
            config=config,
            clock=clock,
            events=events,
        )
        self.completer.on_others_let_go = self.claimer.wake
        self._heartbeater = HeartbeatThread(
            url=store.database.url,
            attempts=self._attempts,
            holdings=holdings,
            on_beat=self._heard,
            config=config,
            on_lease_lost=self._begin_anew,
            clock=clock,
            events=events,
        )
        self._loop_watchdog = LoopWatchdog(events=events, is_idle=self._is_idle, unwritten=self._unwritten)
        self._log_writer = LogWriter(store=store, attempts=self._attempts, clock=clock, events=events)
        self._listener: Service | None = None
        if listen_url is not None:
            self._listener = listener = HintListener(
                store.database, listen_url, self._hinted, clock=clock, events=events
            )
            self.claimer.is_listening = lambda: listener.is_listening

    async def start(self) -> None:
        means, why_weak, limits = self._containment.means, self._containment.why_weak, self._containment.tree_limits
        self._events.emit(ContainmentIsWeak(means, limits, why_weak) if why_weak else ContainmentChosen(means, limits))
        await self._orphan_cleanup.start()
        await self._store.workers.announce_tasks(self._queue_of_task, self._guarantees, self._tags)
        await declare_jobs(self._app, store=self._store, events=self._events, namespace=self._namespace)
        await self._register()
        await self._heartbeater.start()
        self._loop_watchdog.start()
        for service in self._services():
            await service.start()

    async def stop(self) -> None:
        """Drains. `hurry` cuts the grace short."""
        await self.claimer.stop()
        if not await self._clock.wait(self._is_hurried, 0):
            await self._wait_for_attempts(self._config.grace_seconds)
        self._attempts.release_all()
        await self._attempts.ended()
        with suppress(StoreUnavailable):
            await self.claimer.give_back_unstarted()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                await self.completer.flushed()
        for service in reversed(self._services()):
            await service.stop()
        await self._heartbeater.stop()
        with suppress(StoreUnavailable):
            await self._store.workers.remove_worker(self._worker_id)
        await self._processes.close()
        await self._launchers.close()
        await self._orphan_cleanup.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._loop_watchdog.stop()

    async def drained(self) -> None:
        """Returns when an operator has asked this worker to drain, and it has finished what it had, however long that
        took."""
        await self.is_draining.wait()
        await self.claimer.stop()
        await self._attempts.ended()

    def hurry(self) -> None:
        self._is_hurried.set()

    def _services(self) -> list[Service]:
        found: list[Service] = [self.completer, self._log_writer, self._upstream_reader, self.claimer]
        return [*found, self._listener] if self._listener else found

    def _known_tasks(self, app: App) -> dict[str, KnownTask]:
        defaults = RunOptions(retries=self._config.retries, timeout_seconds=self._config.timeout_seconds)
        limit = self._config.result_max_bytes
        known = {
            "http": KnownTask(http(self._config, self._clock), defaults),
            "shell": KnownTask(shell(self._config, self._launchers, hidden_paths(self._config)), defaults),
            "map": KnownTask(
                map_items(
                    self._store, self._namespace, lambda: self._worker_id, aging_seconds=self._config.aging_seconds
                ),
                defaults,
            ),
            "simulate": KnownTask(simulate(self._clock), defaults),
            "wait": KnownTask(wait, defaults),
            "workflow": KnownTask(workflow(self._store, self._namespace, lambda: self._worker_id), defaults),
        }
        for task in app.tasks.values():
            if task.options.guarantee == "transactional":
                executor = in_a_transaction(
                    task.function,
                    store=self._store,
                    worker_id=lambda: self._worker_id,
                    limit_seconds=task.options.timeout_seconds or self._config.timeout_seconds,
                    result_max_bytes=limit,
                )
            elif task.in_process:
                executor = in_a_process(task.function, self._processes, result_max_bytes=limit)
            elif task.is_async:
                executor = on_the_loop(task.function, result_max_bytes=limit)
            else:
                executor = in_a_thread(task.function, self._threads, result_max_bytes=limit)
            asks, is_bound = (
                asks_for_context(task.function),
                task.in_process or task.options.guarantee == "transactional",
            )
            known[task.name] = KnownTask(
                executor,
                task.options.or_else(defaults),
                asks_for_context=asks,
                may_never_wait=task.is_async and not asks and not is_bound,
                clearing_seconds=REFUSAL_SECONDS if task.is_async and not task.in_process else CLEARING_SECONDS,
            )
        return known

    async def _register(self) -> None:
        worker_id, asked_at = new_id(), self._clock.monotonic()
        name = f"{socket.gethostname()}:{os.getpid()}"
        await self._store.workers.register_worker(
            worker_id, name, self._queues, sorted(self._queue_of_task), self._labels
        )
        self._worker_id = self.completer.worker_id = self.claimer.worker_id = self._log_writer.worker_id = worker_id
        self._heartbeater.took_lease(worker_id, asked_at)
        self._events.emit(WorkerRegistered(worker_id))
        self.claimer.wake()

    def _heard(self, beat: Beat) -> None:
        """What the answer to a beat says."""
        for (run_id, token), cancel in beat.to_end.items():
            self._attempts.end(run_id, token, cancel)
        if beat.owns_unheld:
            self.claimer.doubt()
        if beat.limited_queues != self.claimer.limited_queues:
            self.claimer.limited_queues = beat.limited_queues
            self.claimer.wake()
        if beat.is_draining and not self.is_draining.is_set():
            self._events.emit(WorkerDraining(self._worker_id))
            self.is_draining.set()

    async def _begin_anew(self) -> None:
        """The lease is gone: everything under way stops, because others may be running it already."""
        self._events.emit(WorkerExpired(self._worker_id))
        self.claimer.worker_id = None
        self._attempts.release_all()
        await self._attempts.ended()
        self.completer.discard()
        await self._register()

    def _ended(self, outcome: Outcome, claim: Claim) -> None:
        self.completer.add(outcome, claim)
        self.claimer.slot_freed()

    def _is_idle(self) -> bool:
        return not self._holdings and not self._attempts.left_running

    def _unwritten(self) -> int | None:
        """While there are outcomes to be written, and a lease to write them under: how many batches have been."""
        return self.completer.batches_written if self.completer.is_behind and self._heartbeater.has_lease else None

    def _committed(self, claim: Claim, ending: Ending) -> None:
        if ending is Ending.COMMITTED:
            self._events.emit(RunsFinished(1, 0, 0))
            self.completer.wake()
        if claim.concerns_others:
            self._store.hints.send([ALL_QUEUES_TOPIC])
            self.claimer.wake()
        if claim.options is not None and "concurrency" in claim.options:
            self._store.hints.send([GATES_TOPIC])
        self.claimer.slot_freed()

    def _hinted(self, topic: str) -> None:
        if topic in self._queues or topic == ALL_QUEUES_TOPIC:
            self.claimer.hinted()
        elif topic == worker_topic(self._worker_id):
            self._heartbeater.wake()

    async def _wait_for_attempts(self, seconds: float) -> None:
        ended = own_task(self._attempts.ended(), name="wait for attempts")
        hurried = own_task(self._is_hurried.wait(), name="wait for hurry")
        await asyncio.wait([ended, hurried], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (ended, hurried):
            task.cancel()
