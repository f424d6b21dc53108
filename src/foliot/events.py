"""Typed events on an in-process bus.

Code that decides emits an event instead of logging. Log lines, metrics and tests all read this one stream. Hot paths
emit one event per batch, never one per run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from foliot.model.histogram import EMPTY_HISTOGRAM, Histogram

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """The base class of all events."""


@dataclass(frozen=True, slots=True)
class ProcessStarted(Event):
    """A part of Foliot is ready. `address` is where it listens, if it does."""

    part: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class ProcessIsExposed(Event):
    """Other processes of the same user can read this one's environment, which may hold secrets."""

    part: str
    why: str


@dataclass(frozen=True, slots=True)
class ProcessStopping(Event):
    """The process shuts down: running work gets its grace period. A second signal cuts it short."""

    part: str


@dataclass(frozen=True, slots=True)
class ProcessStopped(Event):
    part: str


@dataclass(frozen=True, slots=True)
class ChildStarted(Event):
    name: str
    pid: int


@dataclass(frozen=True, slots=True)
class ChildDied(Event):
    """A supervised process ended by itself and will be restarted."""

    name: str
    exit_code: int
    restart_in_seconds: float


@dataclass(frozen=True, slots=True)
class ServiceFailed(Event):
    """One turn of a service raised an error; the service backs off and continues."""

    service: str
    error: str
    retry_in_seconds: float


@dataclass(frozen=True, slots=True)
class LoopBlocked(Event):
    """Code blocks a worker's event loop. `where` lists the innermost frame first. Another thread emits this event,
    because the loop can't."""

    seconds: float
    where: str


@dataclass(frozen=True, slots=True)
class StoreInterrupted(Event):
    """A statement failed for a transient reason and is retried."""

    query: str
    error: str
    attempt: int


@dataclass(frozen=True, slots=True)
class SchemaMigrated(Event):
    from_version: int
    to_version: int


@dataclass(frozen=True, slots=True)
class FunctionsReplaced(Event):
    """`foliot migrate` replaced database functions whose source had changed."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunsSubmitted(Event):
    count: int


@dataclass(frozen=True, slots=True)
class RunsPromoted(Event):
    """Due runs went from scheduled to ready."""

    count: int


@dataclass(frozen=True, slots=True)
class ShardsChanged(Event):
    """This scheduler node now owns `count` shards."""

    count: int


@dataclass(frozen=True, slots=True)
class TicksFired(Event):
    """Due ticks became runs, or were noted with the reason why they did not."""

    fired: int
    noted: int


@dataclass(frozen=True, slots=True)
class ScheduleUnreadable(Event):
    """This node can't read a job's schedule, because a newer version stored it or its zone is unknown here. The job
    waits."""

    job_id: UUID
    why: str


@dataclass(frozen=True, slots=True)
class CursorsReplanned(Event):
    """The next ticks of jobs were computed again, because a calendar or the rules of a time zone changed."""

    count: int


@dataclass(frozen=True, slots=True)
class RunsAdmitted(Event):
    """Held runs became ready within the limits of their keys."""

    count: int


@dataclass(frozen=True, slots=True)
class CircuitOpened(Event):
    """A task failed too many times in a row, so its circuit breaker opened."""

    task: str


@dataclass(frozen=True, slots=True)
class CircuitClosed(Event):
    """A task with an open circuit breaker succeeded."""

    task: str


@dataclass(frozen=True, slots=True)
class RunsCancelled(Event):
    """Runs with a cancel request ended as cancelled, without a worker."""

    count: int


@dataclass(frozen=True, slots=True)
class RunsExpired(Event):
    """Runs were not started by their `expires_at`."""

    count: int


@dataclass(frozen=True, slots=True)
class RunsClaimed(Event):
    count: int
    waited: Histogram = EMPTY_HISTOGRAM
    """From due to claimed."""


@dataclass(frozen=True, slots=True)
class AttemptsEnded(Event):
    """Attempts ended, with any outcome."""

    count: int
    lasted: Histogram


@dataclass(frozen=True, slots=True)
class RunsFinished(Event):
    succeeded: int
    failed: int
    cancelled: int
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class RunFailed(Event):
    """A run failed for good."""

    run_id: UUID
    task: str
    reason: str
    error: str
    queue: str = ""
    attempt: int = 1
    job: str = ""
    """The recurring job that it is a run of."""
    trace_id: str = ""


@dataclass(frozen=True, slots=True)
class RunsRetried(Event):
    """Attempts failed and will be retried, or were snoozed by their tasks, which is not a retry."""

    count: int
    snoozed: int = 0


@dataclass(frozen=True, slots=True)
class RunsReleased(Event):
    """A worker that shuts down released unfinished runs. Their attempts do not count."""

    count: int


@dataclass(frozen=True, slots=True)
class StaleWritesRefused(Event):
    """Outcomes came too late: the worker no longer held the runs."""

    count: int


@dataclass(frozen=True, slots=True)
class RunsLost(Event):
    """Workers were lost: their runs are ready again, or failed for good once too many workers were lost."""

    requeued: int
    buried: int


@dataclass(frozen=True, slots=True)
class WorkerDraining(Event):
    """The worker claims no more runs, and stops when its running attempts have ended."""

    worker_id: UUID


@dataclass(frozen=True, slots=True)
class WorkerRegistered(Event):
    worker_id: UUID


@dataclass(frozen=True, slots=True)
class ContainmentChosen(Event):
    """How this worker contains the processes of a command, and how it limits them as a tree."""

    means: str
    tree_limits: str


@dataclass(frozen=True, slots=True)
class ContainmentIsWeak(Event):
    """The chosen containment is weak: a hostile command can leave processes behind."""

    means: str
    tree_limits: str
    why: str


@dataclass(frozen=True, slots=True)
class JobDeclared(Event):
    """The app's code created a recurring job, or changed its schedule."""

    name: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class JobNotDeclared(Event):
    """The app's code declares a schedule that could not be stored."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class WorkerExpired(Event):
    """This worker could not renew its lease in time. It stopped all its attempts and registers again with a new id."""

    worker_id: UUID


@dataclass(frozen=True, slots=True)
class StuckFound(Event):
    """A run waits although nothing is left to wait for: a bug in Foliot."""

    kind: str
    run_id: UUID


@dataclass(frozen=True, slots=True)
class ExportDropped(Event):
    """Measurements could not be sent to another system, such as StatsD, and are gone."""

    export: str
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class PartitionsKept(Event):
    created: int
    dropped: int


@dataclass(frozen=True, slots=True)
class SchemaIsNewer(Event):
    """The schema is now newer than this process, which can keep running."""

    version: int
    knows: int


@dataclass(frozen=True, slots=True)
class SchemaIsTooNew(Event):
    """This process can't work with the new schema: it takes no more work and shuts down."""

    version: int
    needs: int
    knows: int


@dataclass(frozen=True, slots=True)
class ClockSetBack(Event):
    """The database's clock was set back by about `seconds`. Leases that this prolonged were shortened."""

    seconds: float


E = TypeVar("E", bound=Event)


class EventBus:
    """Passes each event to every subscriber at once, in order. A subscriber must not block; an error in one does not
    affect the others."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[Event], None]] = []

    def subscribe(self, subscriber: Callable[[Event], None]) -> None:
        self._subscribers.append(subscriber)

    def emit(self, event: Event) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception:
                # A failed log line must not stop the work that emits the event.
                logger.exception("a subscriber failed at %s", type(event).__name__)

    @contextmanager
    def expect(self, kind: type[E], matching: Callable[[E], bool] = lambda _: True) -> Iterator[asyncio.Future[E]]:
        """A future for the next matching event. Tests await it instead of sleeping."""
        found: asyncio.Future[E] = asyncio.get_running_loop().create_future()

        def watch(event: Event) -> None:
            if isinstance(event, kind) and not found.done() and matching(event):
                found.set_result(event)

        self._subscribers.append(watch)
        try:
            yield found
        finally:
            self._subscribers.remove(watch)
            found.cancel()


def describe(event: Event) -> tuple[str, dict[str, Any]]:
    """The event's name and fields, for logs and for other processes."""
    return type(event).__name__, {name: getattr(event, name) for name in event.__dataclass_fields__}
