"""The pulse: one small document a second for each namespace, made once for all open pages.

There is no background task. The first follower that comes after a second has passed queries the database for all
followed namespaces at once, and the others share its result. So the load on the database does not depend on the number
of pages. A document lists what has changed since the previous one; pages then reload the changed parts.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeVar
from uuid import UUID

import msgspec

from foliot.api.streams.event_feed import HOLD_SECONDS
from foliot.clock import Clock
from foliot.errors import StoreUnavailable
from foliot.model.ids import SHARDS
from foliot.model.namespace import Namespace, bare, namespace_of
from foliot.store.pulse import CHANGES_MAX, Action, Beat, Change
from foliot.store.store import Store

SECONDS = 1.0
# Rates are averages over this many documents.
RATED = 10
# A follower that is further behind starts again.
KEPT = 10
NAMES_MAX, IDS_MAX = 50, 200
# Actions on access, not on jobs.
HIDDEN_ACTIONS = ("create_token", "revoke_token", "create_session", "delete_session")

T = TypeVar("T")
NoticeKind = Literal["everything_paused", "no_worker", "shards_unowned", "read_only", "database_unavailable"]


class PulseCount(msgspec.Struct, frozen=True):
    count: int
    more: bool
    """Counting stopped at a limit."""


class PulseCounts(msgspec.Struct, frozen=True):
    ready: PulseCount
    running: PulseCount
    scheduled: PulseCount
    held: PulseCount


class PulseWorkers(msgspec.Struct, frozen=True):
    living: int
    draining: int
    slots: int
    """The slots of the workers that are not draining."""


class PulseAction(msgspec.Struct, frozen=True):
    action: str
    target: str
    """The id or name of the object."""


class PulseChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs, queues and so on of runs that were created, started or ended since the previous document, and changes
    through the API. The lists are capped; `more` says that some entries are missing."""

    queues: list[str] = []
    tasks: list[str] = []
    jobs: list[UUID] = []
    runs: list[UUID] = []
    workflows: list[UUID] = []
    """Workflows and maps with a step or item that changed."""
    actions: list[PulseAction] = []
    more: bool = False


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition that pages show at the top."""

    kind: NoticeKind
    text: str
    since: datetime | None = None
    until: datetime | None = None
    reason: str | None = None
    actor: str | None = None


class PulseDocument(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    """The clock of the database; while that is unavailable, of the server."""
    counts: PulseCounts | None = None
    oldest_ready_seconds: float | None = None
    rates: dict[str, float] = {}
    """Runs that ended, by state, a second: an average of the last ten seconds."""
    workers: PulseWorkers | None = None
    changed: PulseChanges = PulseChanges()
    notices: list[Notice] = []


@dataclass(slots=True)
class _Line:
    """The latest documents of one namespace."""

    followers: int = 0
    number: int = 0
    texts: deque[bytes] = field(default_factory=lambda: deque(maxlen=KEPT))
    ended: deque[tuple[float, Counter[str]]] = field(default_factory=lambda: deque(maxlen=RATED))


class PulseFeed:
    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = asyncio.Lock()
        self._looked_at = 0.0
        self._place: datetime | None = None
        """Every end of a run before this instant is in a document."""
        self._lines: dict[str, _Line] = {}

    @contextmanager
    def followed(self, namespace: Namespace) -> Iterator[None]:
        line = self._lines.setdefault(namespace.name, _Line())
        line.followers += 1
        try:
            yield
        finally:
            line.followers -= 1
            if not line.followers:
                del self._lines[namespace.name]
            if not self._lines:
                self._place = None

    async def after(self, namespace: Namespace, number: int) -> tuple[list[bytes], int] | None:
        """The documents after that number, made now if a second has passed; None if some of them are gone. A first
        follower has the number -1, and gets the last one."""
        line = self._lines[namespace.name]
        async with self._lock:
            if self._clock.monotonic() - self._looked_at >= SECONDS or not line.texts:
                await self._look()
                self._looked_at = self._clock.monotonic()
        missing = 1 if number < 0 else line.number - number
        if missing > len(line.texts):
            return None
        return list(line.texts)[len(line.texts) - missing :], line.number

    def seconds_left(self) -> float:
        return max(0.0, SECONDS - (self._clock.monotonic() - self._looked_at))

    async def _look(self) -> None:
        try:
            documents = await self._documents()
        except StoreUnavailable:
            notice = Notice("database_unavailable", "The database is not available.")
            gone = PulseDocument(at=self._clock.now(), notices=[notice])
            documents = dict.fromkeys(self._lines, gone)
        for namespace, document in documents.items():
            # The last follower may have left in the meantime.
            if (line := self._lines.get(namespace)) is not None:
                line.number += 1
                line.texts.append(b"event: pulse\ndata: " + msgspec.json.encode(document) + b"\n\n")

    async def _documents(self) -> dict[str, PulseDocument]:
        pulse, since = self._store.pulse, self._place
        horizon = await self._store.run_events.ending_horizon(HOLD_SECONDS)
        beats = await pulse.take_pulse(list(self._lines))
        changes: list[Change] = []
        actions: list[Action] = []
        if since is not None and since < horizon:
            changes = await pulse.list_changes(since, horizon)
            actions = await pulse.list_actions(since)
        self._place = horizon if since is None else max(since, horizon)
        seconds = 0.0 if since is None else (self._place - since).total_seconds()
        by_namespace: defaultdict[str, list[Change]] = defaultdict(list)
        for change in changes:
            by_namespace[namespace_of(change.queue)].append(change)
        found = {}
        for beat in beats:
            if (line := self._lines.get(beat.namespace)) is None:
                continue
            here = by_namespace[beat.namespace]
            line.ended.append((seconds, _ended(here)))
            done = [action for action in actions if action.namespace == beat.namespace]
            found[beat.namespace] = _document(
                beat, _changes(here, done, is_sample="running" in beat.uncounted_states), _rates(line.ended)
            )
        return found


async def pulses(
    feed: PulseFeed,
    namespace: Namespace,
    *,
    clock: Clock,
    stopping: asyncio.Event,
    is_gone: Callable[[], Awaitable[bool]],
    is_followed: bool,
) -> AsyncGenerator[bytes]:
    number = -1
    with feed.followed(namespace):
        while not stopping.is_set() and not await is_gone():
            found = await feed.after(namespace, number)
            if found is None:
                # The follower is too slow. Its client reconnects and reloads its page.
                return
            texts, number = found
            yield b"".join(texts)
            if not is_followed:
                return
            await clock.wait(stopping, feed.seconds_left())


def _ended(changes: Iterable[Change]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for change in changes:
        if change.kind == "ended":
            counted[str(change.state)] += change.count
    return counted


def _rates(ended: Iterable[tuple[float, Counter[str]]]) -> dict[str, float]:
    seconds, total = 0.0, Counter[str]()
    for passed, counted in ended:
        seconds += passed
        total += counted
    return {state: round(count / seconds, 3) for state, count in sorted(total.items())} if seconds else {}


def _changes(changes: list[Change], actions: list[Action], *, is_sample: bool) -> PulseChanges:
    queues = _unique(bare(change.queue) for change in changes)
    tasks = _unique(bare(change.task) for change in changes)
    jobs = _unique(change.job_id for change in changes if change.job_id is not None)
    runs = _unique(run_id for change in changes for run_id in change.run_ids)
    workflows = _unique(parent_id for change in changes for parent_id in change.parent_ids)
    told = _unique((one.action, one.target) for one in actions if one.action not in HIDDEN_ACTIONS)
    is_cut = is_sample or any(len(names) > NAMES_MAX for names in (queues, tasks, told))
    is_cut |= any(len(ids) > IDS_MAX for ids in (jobs, runs, workflows))
    is_cut |= any(len(change.run_ids) < change.count for change in changes)
    is_cut |= sum(change.count for change in changes) >= CHANGES_MAX
    return PulseChanges(
        queues=queues[:NAMES_MAX],
        tasks=tasks[:NAMES_MAX],
        jobs=jobs[:IDS_MAX],
        runs=runs[:IDS_MAX],
        workflows=workflows[:IDS_MAX],
        actions=[PulseAction(*one) for one in told[:NAMES_MAX]],
        more=is_cut,
    )


def _unique(found: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(found))


def _document(beat: Beat, changes: PulseChanges, rates: dict[str, float]) -> PulseDocument:
    def part(state: str, count: int) -> PulseCount:
        return PulseCount(count, state in beat.uncounted_states)

    return PulseDocument(
        at=beat.at,
        counts=PulseCounts(
            ready=PulseCount(beat.ready, beat.has_more_ready),
            running=part("running", beat.running),
            scheduled=part("scheduled", beat.scheduled),
            held=part("held", beat.held),
        ),
        oldest_ready_seconds=None if beat.oldest_ready_seconds is None else max(0.0, beat.oldest_ready_seconds),
        rates=rates,
        workers=PulseWorkers(beat.workers, beat.draining, beat.slots),
        changed=changes,
        notices=list(_notices(beat)),
    )


def _notices(beat: Beat) -> Iterator[Notice]:
    if beat.is_read_only:
        yield Notice("read_only", "The database only reads: nothing can start, end or change.")
    if beat.paused_at is not None:
        reason, by = beat.paused_reason, beat.paused_by
        yield Notice(
            "everything_paused", "Everything is paused: no run starts.", beat.paused_at, beat.paused_until, reason, by
        )
    if not beat.workers:
        yield Notice("no_worker", "No worker serves this namespace, so no run starts.")
    if beat.unowned_shards:
        text = f"No scheduler node fires the jobs of {beat.unowned_shards} of {SHARDS} shards."
        yield Notice("shards_unowned", text)
