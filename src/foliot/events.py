"""What happened, as typed values on an in-process bus.

Code that decides does not log: it emits an event. Log lines, metrics and tests all read this one stream. Hot paths emit
one event per batch, never one per run.
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
    """The root of all events."""


@dataclass(frozen=True, slots=True)
class ProcessStarted(Event):
    """A part of Foliot is ready to serve. `address` is where, for those that listen."""

    part: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class ProcessIsExposed(Event):
    """Other processes of the same user can read this one's environment, which may hold secrets."""

    part: str
    why: str


@dataclass(frozen=True, slots=True)
class ProcessStopping(Event):
    """Asked to end: work under way gets its grace. Asked once more, it hurries."""

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
    """A supervised process ended by itself and will be started again."""

    name: str
    exit_code: int
    restart_in_seconds: float


@dataclass(frozen=True, slots=True)
class ServiceFailed(Event):
    """One turn of a service raised; it backs off and goes on."""

    service: str
    error: str
    retry_in_seconds: float


@dataclass(frozen=True, slots=True)
class LoopBlocked(Event):
    """Code that runs on a worker's event loop does not let anything else run there. `where` is the innermost code
    first. Told by another thread than all other events, since the loop can't."""

    seconds: float
    where: str


@dataclass(frozen=True, slots=True)
class StoreInterrupted(Event):
    """A statement failed for a reason that passes, and is tried again."""

    query: str
    error: str
    attempt: int


@dataclass(frozen=True, slots=True)
class SchemaMigrated(Event):
    from_version: int
    to_version: int


@dataclass(frozen=True, slots=True)
class RunsSubmitted(Event):
    count: int


@dataclass(frozen=True, slots=True)
class RunsPromoted(Event):
    """Runs whose time has come went from scheduled to ready."""

    count: int


@dataclass(frozen=True, slots=True)
class ShardsChanged(Event):
    """This scheduler node now owns so many shards."""

    count: int


@dataclass(frozen=True, slots=True)
class TicksFired(Event):
    """Due ticks became runs, or were noted with the reason why not."""

    fired: int
    noted: int


@dataclass(frozen=True, slots=True)
class ScheduleUnreadable(Event):
    """This node can't read the schedule of a job, because a newer version stored it or its zone is unknown here; the
    job waits."""

    job_id: UUID
    why: str


@dataclass(frozen=True, slots=True)
class CursorsReplanned(Event):
    """The rules by which their next ticks were found have changed."""

    count: int


@dataclass(frozen=True, slots=True)
class RunsAdmitted(Event):
    """The limits of their keys let them pass."""

    count: int


@dataclass(frozen=True, slots=True)
class CircuitOpened(Event):
    """A task failed so often in a row that it rests for a while."""

    task: str


@dataclass(frozen=True, slots=True)
class CircuitClosed(Event):
    """A task that had failed has succeeded."""

    task: str


@dataclass(frozen=True, slots=True)
class RunsCancelled(Event):
    """They were asked to end, and nobody held them any more."""

    count: int


@dataclass(frozen=True, slots=True)
class RunsExpired(Event):
    """They were not started by the instant after which they must not be."""

    count: int


@dataclass(frozen=True, slots=True)
class RunsClaimed(Event):
    count: int
    waited: Histogram = EMPTY_HISTOGRAM
    """From the instant each was due to the one at which it was claimed."""


@dataclass(frozen=True, slots=True)
class AttemptsEnded(Event):
    """However they ended."""

    count: int
    lasted: Histogram


@dataclass(frozen=True, slots=True)
class RunsFinished(Event):
    succeeded: int
    failed: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class RunFailed(Event):
    """A run failed for good."""

    run_id: UUID
    task: str
    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class RunsRetried(Event):
    """Attempts failed and will be followed by another; or were put off by their tasks, which is no retry."""

    count: int
    snoozed: int = 0


@dataclass(frozen=True, slots=True)
class RunsReleased(Event):
    """Runs given back unfinished and unconsumed, by a worker that stops."""

    count: int


@dataclass(frozen=True, slots=True)
class StaleWritesRefused(Event):
    """Outcomes that came too late: the run was no longer this worker's to end."""

    count: int


@dataclass(frozen=True, slots=True)
class RunsLost(Event):
    """The workers of these runs went silent: the runs are ready again, or buried once their budget is spent."""

    requeued: int
    buried: int


@dataclass(frozen=True, slots=True)
class WorkerDraining(Event):
    """It takes nothing more, and stops when it has finished what it has."""

    worker_id: UUID


@dataclass(frozen=True, slots=True)
class WorkerRegistered(Event):
    worker_id: UUID


@dataclass(frozen=True, slots=True)
class ContainmentChosen(Event):
    """What holds the processes of a command together on this worker, and what limits them together."""

    means: str
    tree_limits: str


@dataclass(frozen=True, slots=True)
class ContainmentIsWeak(Event):
    """The same, where a command that tries hard can leave processes behind."""

    means: str
    tree_limits: str
    why: str


@dataclass(frozen=True, slots=True)
class JobDeclared(Event):
    """The app's code made a recurring job, or changed its schedule."""

    name: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class JobNotDeclared(Event):
    """The app's code has a schedule that could not be put in force."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class WorkerExpired(Event):
    """This worker could not renew its lease in time, stopped all its attempts and starts anew under a fresh id."""

    worker_id: UUID


@dataclass(frozen=True, slots=True)
class StuckFound(Event):
    """A run that should have gone on and did not: a fault of Foliot's own."""

    kind: str
    run_id: UUID


@dataclass(frozen=True, slots=True)
class PartitionsKept(Event):
    created: int
    dropped: int


@dataclass(frozen=True, slots=True)
class SchemaIsNewer(Event):
    """The schema has become newer than this process, which can go on working beside it."""

    version: int
    knows: int


@dataclass(frozen=True, slots=True)
class SchemaIsTooNew(Event):
    """The schema has become one that this process can't work with: it takes no more work, and ends."""

    version: int
    needs: int
    knows: int


@dataclass(frozen=True, slots=True)
class ClockSetBack(Event):
    """The database's clock shows an earlier time than before, by about so many seconds. Leases that this had prolonged
    were shortened."""

    seconds: float


E = TypeVar("E", bound=Event)


class EventBus:
    """Hands each event to every subscriber, in order, at once. A subscriber must not block; one that raises keeps
    nobody from the event."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[Event], None]] = []

    def subscribe(self, subscriber: Callable[[Event], None]) -> None:
        self._subscribers.append(subscriber)

    def emit(self, event: Event) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception:
                # Whoever tells of an event has something to do; a log line that failed must not keep it from that.
                logger.exception("a subscriber failed at %s", type(event).__name__)

    @contextmanager
    def expect(self, kind: type[E], matching: Callable[[E], bool] = lambda _: True) -> Iterator[asyncio.Future[E]]:
        """A future for the next matching event that is emitted from here on: what tests await instead of sleeping."""
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
