"""A worker node: registers under a fresh id, runs its services, and drains when it stops.

A node that stops claims no more runs and keeps its lease. Running attempts get their grace period; those that do not
end in time are given back without using up an attempt. Then the node writes the outcomes and removes its registration.
A node that loses its lease keeps running: it stops its attempts and registers again.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from foliot.brokers.base import Broker
from foliot.clock import Clock
from foliot.config import Config
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
from foliot.model.run import Claim
from foliot.sdk.app import App
from foliot.service import Service, own_task
from foliot.store.hints import ALL_QUEUES_TOPIC, BROKERLESS_TOPIC, GATES_TOPIC, worker_topic
from foliot.store.workers import Beat
from foliot.worker.announcement import OwnAnnouncement
from foliot.worker.attempts import Attempts
from foliot.worker.backend import Backend
from foliot.worker.checkpoints import CheckpointWriter
from foliot.worker.claimer import Claimer
from foliot.worker.completer import Completer
from foliot.worker.declined_runs import DeclinedRuns
from foliot.worker.heartbeater import HeartbeatThread
from foliot.worker.holdings import Holdings
from foliot.worker.identity import WorkerIdentity
from foliot.worker.inbox import Inbox
from foliot.worker.known_tasks import TaskSurroundings, known_tasks, queues_of_tasks
from foliot.worker.log_writer import LogWriter
from foliot.worker.loop_watchdog import LoopWatchdog
from foliot.worker.printed_output import capturing
from foliot.worker.task_runtime import TaskRuntime
from foliot.worker.upstream_results import UpstreamReader

if TYPE_CHECKING:
    from foliot.worker.attempt_traces import AttemptTraces

# Outcomes that are not written by then are abandoned. Their runs become ready when the lease expires.
FINAL_FLUSH_SECONDS = 10.0


class Tracing(NamedTuple):
    """The parts that trace the tasks of a worker."""

    attempts: AttemptTraces
    spans: Service


class WorkerNode:
    def __init__(
        self,
        *,
        backend: Backend,
        config: Config,
        clock: Clock,
        events: EventBus,
        app: App,
        queues: Mapping[str, int],
        labels: Mapping[str, str] | None = None,
        broker: Broker | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        store = backend.store
        self._store, self._config, self._clock, self._events = store, config, clock, events
        self._backend = backend
        self._app = app
        self._tracing = tracing
        self._namespace = namespace = Namespace(config.namespace)
        self._slots = {namespace.qualified(queue): slots for queue, slots in queues.items()}
        self._labels = dict(labels or {})
        self._queue_of_task = queues_of_tasks(app, config, namespace)
        self._announcement = OwnAnnouncement(app, namespace)
        self._is_hurried = asyncio.Event()
        self.is_draining = asyncio.Event()
        """Set when an operator asks this worker to finish its attempts and stop."""
        self._identity = identity = WorkerIdentity()
        self._runtime = TaskRuntime(config, slots=sum(queues.values()))
        self._holdings = holdings = Holdings()
        self._listener = backend.listener(self._on_hint)
        self._checkpoints = CheckpointWriter(
            backend=backend, config=config, namespace=namespace, identity=identity, clock=clock, events=events
        )
        declined = DeclinedRuns(clock)
        surroundings = TaskSurroundings(
            backend, config, clock, namespace, identity, self._runtime, self._checkpoints.open
        )
        tasks = known_tasks(app, surroundings)
        self._upstream_reader = UpstreamReader(store=store, clock=clock, events=events)
        self.completer = Completer(
            store=store,
            identity=identity,
            holdings=holdings,
            circuits={namespace.qualified(task.name): task.circuit for task in app.tasks.values() if task.circuit},
            on_dependents_released=self._wake_claimer,
            clock=clock,
            events=events,
        )
        self._attempts = Attempts(
            tasks=tasks,
            slots=self._slots,
            output_max_bytes=config.output_max_bytes,
            holdings=holdings,
            on_outcome=self._on_outcome,
            on_committed=self._on_committed,
            on_declined=declined.add,
            on_duration=self.completer.record_duration,
            on_busy=self._on_busy,
            provide=self._upstream_reader.provide,
            traces=tracing and tracing.attempts,
            clock=clock,
        )
        self.claimer = Claimer(
            store=store,
            identity=identity,
            attempts=self._attempts,
            holdings=holdings,
            declined=declined,
            completer=self.completer,
            tasks=list(tasks),
            is_listening=backend.is_listening,
            hearing_polls=backend.hearing_polls,
            config=config,
            clock=clock,
            events=events,
        )
        if broker is not None:
            self.claimer.inbox = Inbox(
                broker,
                queues=self._slots,
                free_slots=self._attempts.free_slots,
                on_change=self.claimer.wake,
                clock=clock,
                events=events,
            )
        self._log_writer = LogWriter(
            store=store, identity=identity, attempts=self._attempts, clock=clock, events=events
        )
        self._heartbeater = HeartbeatThread(
            open_beats=backend.open_beats,
            identity=identity,
            attempts=self._attempts,
            holdings=holdings,
            on_beat=self._on_beat,
            on_lease_lost=self._register_again,
            config=config,
            clock=clock,
            events=events,
        )
        backend.attach(holdings, self._heartbeater.begin_lease, self._attempts.free_slots)
        self._capture = ExitStack()
        self._loop_watchdog = LoopWatchdog(
            events=events, is_idle=self._is_idle, unwritten=self._unwritten, broken=self._broken
        )

    async def start(self) -> None:
        self._capture.enter_context(capturing(self._config.echo_output))
        await self._start_runtime()
        await self._backend.registration.announce(self._app, self._queue_of_task, self._announcement)
        await self._register()
        await self._heartbeater.start()
        self._loop_watchdog.start()
        for service in self._services():
            await service.start()

    async def stop(self) -> None:
        """Drains. `hurry` cuts the grace period short."""
        await self.claimer.stop()
        if not await self._clock.wait(self._is_hurried, 0):
            await self._wait_for_attempts(self._config.grace_seconds)
        self._attempts.release_all()
        await self._attempts.ended()
        with suppress(StoreUnavailable):
            await self.claimer.give_back_unstarted()
        with suppress(TimeoutError):
            async with asyncio.timeout(FINAL_FLUSH_SECONDS):
                await self.completer.flushed()
        for service in reversed(self._services()):
            await service.stop()
        await self._heartbeater.stop()
        with suppress(StoreUnavailable):
            await self._backend.registration.leave(self._identity.id)
        await self._runtime.close()
        self._loop_watchdog.stop()
        self._capture.close()

    async def drained(self) -> None:
        """Returns when an operator has asked this worker to drain and its attempts have ended, however long that
        takes."""
        await self.is_draining.wait()
        await self.claimer.stop()
        await self._attempts.ended()

    def hurry(self) -> None:
        self._is_hurried.set()

    def _services(self) -> list[Service]:
        found: list[Service] = [
            self.completer,
            self._log_writer,
            self._upstream_reader,
            self._checkpoints,
            self.claimer,
        ]
        if self.claimer.inbox is not None:
            found += self.claimer.inbox.receivers.values()
        if self._tracing is not None:
            found.insert(0, self._tracing.spans)
        return [*found, self._listener] if self._listener else found

    # --- registration

    async def _start_runtime(self) -> None:
        means, limits = self._runtime.containment.means, self._runtime.containment.tree_limits
        why_weak = self._runtime.containment.why_weak
        self._events.emit(ContainmentIsWeak(means, limits, why_weak) if why_weak else ContainmentChosen(means, limits))
        await self._runtime.start()

    async def _register(self) -> None:
        worker_id, asked_at = new_id(), self._clock.monotonic()
        name = f"{socket.gethostname()}:{os.getpid()}"
        await self._backend.registration.register(worker_id, name, self._slots, self._labels)
        self._identity.register(worker_id)
        self._heartbeater.begin_lease(asked_at)
        self._events.emit(WorkerRegistered(worker_id))
        self.claimer.wake()

    async def _register_again(self) -> None:
        """The lease is lost. Every attempt stops, because other workers may already be running the same runs."""
        self._events.emit(WorkerExpired(self._identity.id))
        self._identity.lose_lease()
        self._attempts.release_all()
        await self._attempts.ended()
        self.completer.discard()
        await self._register()

    async def _wait_for_attempts(self, seconds: float) -> None:
        ended = own_task(self._attempts.ended(), name="wait for attempts")
        hurried = own_task(self._is_hurried.wait(), name="wait for hurry")
        await asyncio.wait([ended, hurried], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (ended, hurried):
            task.cancel()

    # --- callbacks

    def _on_beat(self, beat: Beat) -> None:
        """Acts on the answer to a heartbeat."""
        for (run_id, token), cancel in beat.to_end.items():
            self._attempts.end(run_id, token, cancel)
        if beat.owns_unheld:
            self.claimer.recover_lost_claims()
        if beat.limited_queues != self.claimer.limited_queues:
            self.claimer.limited_queues = beat.limited_queues
            self.claimer.wake()
        if beat.is_draining and not self.is_draining.is_set():
            self._events.emit(WorkerDraining(self._identity.id))
            self.is_draining.set()

    def _on_hint(self, topic: str) -> None:
        if topic in self._slots or topic == ALL_QUEUES_TOPIC:
            self.claimer.on_hint()
        elif topic == BROKERLESS_TOPIC:
            self.claimer.poll_soon()
        elif topic == worker_topic(self._identity.id):
            self._heartbeater.wake()

    def _on_outcome(self, outcome: Outcome, claim: Claim) -> None:
        self.completer.add(outcome, claim)
        self.claimer.on_slot_freed()

    def _on_committed(self, claim: Claim, ending: Ending) -> None:
        """The attempt has already stored its own end."""
        if ending is Ending.COMMITTED:
            self._events.emit(RunsFinished(1, 0, 0))
            self.completer.wake()
        if claim.concerns_others:
            self._store.hints.send([ALL_QUEUES_TOPIC])
            self.claimer.wake()
        if claim.options is not None and "concurrency" in claim.options:
            self._store.hints.send([GATES_TOPIC])
        self.claimer.on_slot_freed()

    def _on_busy(self) -> None:
        self._log_writer.wake_soon()

    def _wake_claimer(self) -> None:
        self.claimer.wake()

    def _is_idle(self) -> bool:
        return not self._holdings and not self._attempts.left_running

    def _broken(self) -> str:
        """The part that has died, although nothing asked it to stop."""
        if self._attempts.is_broken:
            return "an attempt could not be concluded"
        return next((f"the {service.name} has died" for service in self._services() if service.has_died), "")

    def _unwritten(self) -> int | None:
        """The number of batches written so far, while outcomes wait and the lease is in force. None otherwise."""
        return self.completer.batches_written if self.completer.is_behind and self._heartbeater.has_lease else None
