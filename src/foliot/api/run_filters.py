"""Finds runs by the filters of `GET /v1/runs` and of bulk actions on runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Annotated, Literal, TypeVar
from uuid import UUID

from fastapi import Query

from foliot.api.job_selection import like
from foliot.api.requests.parameters import (
    WORDS,
    cursor_of,
    cursor_text,
    id_of,
    instant_of,
    states_of,
    text_of,
    words_of,
)
from foliot.api.requests.ranges import length_range, number_range
from foliot.errors import Invalid
from foliot.model.ids import CLOCK_TOLERANCE, first_id_of, not_finished_before
from foliot.model.job_request import EARLIEST, LATEST
from foliot.model.namespace import Namespace
from foliot.model.states import TERMINAL
from foliot.store.lookup import find_job, find_run, job_id_of
from foliot.store.run_lists import Page, PayloadValue, RunFilter, RunItem, Sort, Span, Where
from foliot.store.store import Store
from foliot.store.workflow_lists import Parent

C = TypeVar("C")
LOOK_BACK = timedelta(days=7)
# The finished runs that overviews count.
FINISHED_WITHIN = timedelta(days=1)
# The rows that a page reads at most to find matching runs.
SCAN_MAX = 10_000
# Most pages are full after a first look at few runs. Only for a filter that fits rarely, all are read.
FIRST_LOOK = 1_000
# Up to this number, the children of a parent are read by parent and sorted. A parent with more children has most of the
# runs between their ids.
FEW = 20_000
PAYLOAD_VALUES_MAX, PATH_MAX = 10, 200
FIRST_ID, LAST_ID = UUID(int=0), UUID(int=(1 << 128) - 1)


Order = Literal["-created", "created", "-duration", "duration", "-attempt", "attempt", "-priority", "priority"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters as a request gives them; an empty one is not set. They are also the query parameters of lists."""

    state: str = ""
    not_state: str = ""
    queue: str = ""
    not_queue: str = ""
    task: str = ""
    not_task: str = ""
    job: str = ""
    since: str = ""
    until: str = ""
    text: str = ""
    not_text: str = ""
    parent: str = ""
    tag: str = ""
    not_tag: str = ""
    worker: str = ""
    not_worker: str = ""
    attempt: str = ""
    duration: str = ""
    priority: str = ""
    error: str = ""
    not_error: str = ""
    reason: str = ""
    not_reason: str = ""
    payload: Annotated[tuple[str, ...], Query()] = ()


SORTS: dict[Order, Sort] = {
    "-duration": Sort("duration", is_descending=True),
    "duration": Sort("duration", is_descending=False),
    "-attempt": Sort("attempt", is_descending=True),
    "attempt": Sort("attempt", is_descending=False),
    "-priority": Sort("priority", is_descending=True),
    "priority": Sort("priority", is_descending=False),
}
FILTER_NAMES = tuple(one.name for one in fields(Asked))


@dataclass(frozen=True, slots=True)
class Found:
    items: list[RunItem]
    next: str | None
    """The cursor of the next page."""
    since: datetime | None
    """Finished runs are listed from here on; None: from the beginning."""
    is_partial: bool = False
    """Only the latest runs were compared to find the first ones of an order."""


@dataclass(frozen=True, slots=True)
class Search:
    """Where to look for the runs of a request, and what for."""

    wanted: RunFilter
    since: datetime
    """Finished runs are looked for from here on."""
    begin: datetime | None
    end: datetime | None
    job_id: UUID | None = None
    family: Parent | None = None

    @property
    def place(self) -> tuple[Where, bool]:
        """The rows to read, and whether all of them match."""
        if self.family is not None and self.family.total <= FEW:
            return "children", False
        return place_of(self.wanted)

    def span(self, before: UUID = LAST_ID) -> Span:
        first = first_id_of(self.since)
        last = self.end
        if self.family is not None and self.family.finished_at is not None:
            last = min(self.end or LATEST, self.family.finished_at + CLOCK_TOLERANCE)
        return Span(
            min(before, first_id_of(last) if last else LAST_ID),
            first_id_of(self.begin) if self.begin else FIRST_ID,
            first,
            not_finished_before(first),
        )


async def search_of(store: Store, namespace: Namespace, asked: Asked) -> Search:
    """Raises `Invalid` for filters that contradict each other or name something that does not exist."""
    family = await _parent_named(store, namespace, asked.parent) if asked.parent else None
    wanted = await _filter_of(store, namespace, asked, family)
    now = await store.jobs.database_now()
    begin, end = instant_of(asked.since, "since", now=now), instant_of(asked.until, "until", now=now)
    if begin and end and begin > end:
        raise Invalid("until: is before since", field="until")
    job_id = None
    if asked.job:
        if family is not None:
            raise Invalid("parent: give either job or parent", field="parent")
        job_id = await job_named(store, namespace, asked.job)
    since = begin or (family.created_at - CLOCK_TOLERANCE if family else now - LOOK_BACK)
    return Search(wanted, since, begin, end, job_id, family)


async def find_runs(
    store: Store, namespace: Namespace, asked: Asked, *, after: str, limit: int, order: Order = "-created"
) -> Found:
    """A page of runs, latest first or in another order. Raises `Invalid` as `search_of` does."""
    search = await search_of(store, namespace, asked)
    sort = SORTS.get(order)
    if sort is not None:
        if after:
            raise Invalid("after: a list in this order has one page", field="after")
        return await _first_runs(store, search, sort, limit)
    if search.job_id is not None:
        if order == "created":
            raise Invalid("order: the runs of a job are not listed oldest first; use -created", field="order")
        begin, end = search.begin or EARLIEST, search.end or LATEST
        return await find_job_runs(store, search.job_id, search.wanted, begin, end, after=after, limit=limit)
    where, is_exact = search.place
    lists, wanted = store.run_lists, search.wanted
    if order == "created":
        place, span = id_of(after, "after") if after else FIRST_ID, search.span()
        page = await _looked(
            lambda scan: lists.list_oldest_runs(where, place, span, wanted, limit=limit, scan=scan), limit, is_exact
        )
    else:
        span = search.span(id_of(after, "after") if after else LAST_ID)
        page = await _looked(lambda scan: lists.list_runs(where, span, wanted, limit=limit, scan=scan), limit, is_exact)
    return Found(page.items, str(page.following) if page.following else None, search.since)


async def find_job_runs(
    store: Store, job_id: UUID, wanted: RunFilter, since: datetime, until: datetime, *, after: str, limit: int
) -> Found:
    before = min(cursor_of(after), (until, FIRST_ID)) if after else (until, FIRST_ID)
    lists = store.run_lists
    page = await _looked(
        lambda scan: lists.list_job_runs(job_id, before, since, wanted, limit=limit, scan=scan),
        limit,
        wanted.is_empty,
    )
    return Found(page.items, cursor_text(*page.following) if page.following else None, None)


async def _looked(read: Callable[[int], Awaitable[Page[RunItem, C]]], limit: int, is_exact: bool) -> Page[RunItem, C]:
    first, *more = (limit + 1,) if is_exact else (min(FIRST_LOOK, SCAN_MAX), SCAN_MAX)
    page = await read(first)
    for scan in more:
        if len(page.items) >= limit or page.following is None:
            break
        page = await read(scan)
    return page


async def _first_runs(store: Store, search: Search, sort: Sort, limit: int) -> Found:
    lists, wanted = store.run_lists, search.wanted
    if search.job_id is not None:
        before, since = (search.end or LATEST, FIRST_ID), search.begin or EARLIEST
        items, is_partial = await lists.first_job_runs(
            search.job_id, before, since, wanted, sort, limit=limit, scan=SCAN_MAX
        )
        return Found(items, None, None, is_partial=is_partial)
    where, _ = search.place
    items, is_partial = await lists.first_runs(where, search.span(), wanted, sort, limit=limit, scan=SCAN_MAX)
    return Found(items, None, search.since, is_partial=is_partial)


async def _filter_of(store: Store, namespace: Namespace, asked: Asked, family: Parent | None) -> RunFilter:
    attempt, priority = number_range(asked.attempt, "attempt"), number_range(asked.priority, "priority")
    seconds = length_range(asked.duration, "duration")
    return RunFilter(
        namespace=namespace,
        states=_states(asked),
        reasons=words_of(asked.reason, "reason"),
        not_reasons=words_of(asked.not_reason, "not_reason"),
        queues=_patterns(namespace, asked.queue, "queue"),
        not_queues=_patterns(namespace, asked.not_queue, "not_queue"),
        tasks=_patterns(namespace, asked.task, "task"),
        not_tasks=_patterns(namespace, asked.not_task, "not_task"),
        text=text_of(asked.text, "text"),
        not_text=text_of(asked.not_text, "not_text"),
        error=text_of(asked.error, "error"),
        not_error=text_of(asked.not_error, "not_error"),
        parent=family.id if family else None,
        tags=words_of(asked.tag, "tag"),
        not_tags=words_of(asked.not_tag, "not_tag"),
        workers=await _workers(store, namespace, asked.worker, "worker"),
        not_workers=await _workers(store, namespace, asked.not_worker, "not_worker"),
        attempt_from=attempt[0],
        attempt_to=attempt[1],
        priority_from=priority[0],
        priority_to=priority[1],
        seconds_from=seconds[0],
        seconds_to=seconds[1],
        payload=_payload_values(asked.payload),
    )


def _states(asked: Asked) -> list[str] | None:
    """The states without the excluded ones."""
    wanted, excluded = states_of(asked.state), states_of(asked.not_state, "not_state")
    if excluded is None:
        return wanted
    every = dict.fromkeys(state for states in WORDS.values() for state in states)
    return [state for state in wanted or every if state not in excluded]


def _patterns(namespace: Namespace, text: str, field: str) -> list[str] | None:
    """Patterns of LIKE for names, in which * is anything and ? is one character."""
    names = words_of(text, field)
    return None if names is None else [like(namespace.qualified(name)) for name in names]


async def _workers(store: Store, namespace: Namespace, text: str, field: str) -> list[UUID] | None:
    """Workers by id, or by the name of a live one."""
    if (words := words_of(text, field)) is None:
        return None
    found, names = [], []
    for word in words:
        try:
            found.append(UUID(word))
        except ValueError:
            names.append(word)
    if names:
        known = {worker.name: worker.id for worker in await store.workers.list_workers(namespace)}
        if unknown := [name for name in names if name not in known]:
            raise Invalid(
                f"{field}: there is no live worker {unknown[0]!r}; give the id of one that is gone", field=field
            )
        found.extend(known[name] for name in names)
    return found


def _payload_values(texts: Sequence[str]) -> list[PayloadValue] | None:
    if len(texts) > PAYLOAD_VALUES_MAX:
        raise Invalid(f"payload: at most {PAYLOAD_VALUES_MAX} values", field="payload")
    return [_payload_value(text) for text in texts] or None


def _payload_value(text: str) -> PayloadValue:
    path, separator, value = (text_of(text, "payload") or "").partition(":")
    if not separator or not 1 <= len(path) <= PATH_MAX:
        raise Invalid(f"payload: {text[:100]!r} has no value; write it like customer_id:7", field="payload")
    return PayloadValue(path.split("."), value)


def name_of(namespace: Namespace, text: str, field: str) -> str | None:
    """The qualified name; None for an empty text."""
    name = text_of(text, field)
    return None if name is None else namespace.qualified(name)


def place_of(wanted: RunFilter) -> tuple[Where, bool]:
    """The rows to read for the wanted states, and whether all of them match."""
    states = set(wanted.states or ())
    if states == {"running"}:
        return "running", wanted.is_only_by_state
    if wanted.tags is not None:
        return "tagged", False
    if states == {"failed"}:
        return "failed", wanted.is_only_by_state
    if states and states <= TERMINAL:
        return "history", False
    if states and not states & TERMINAL:
        return "live", False
    return "all", wanted.is_empty


async def _parent_named(store: Store, namespace: Namespace, reference: str) -> Parent:
    found = await store.workflow_lists.get_parent(id_of(reference, "parent"))
    if found is None or await find_run(store, namespace, found.run_id) is None:
        raise Invalid(f"parent: there is no workflow or map {reference!r} that has begun", field="parent")
    return found


async def job_named(store: Store, namespace: Namespace, reference: str) -> UUID:
    job_id = job_id_of(text_of(reference, "job") or "")
    job = await find_job(store, namespace, job_id, reference)
    found = job.id if job else job_id
    if found is None:
        raise Invalid(f"job: there is no recurring job {reference!r}", field="job")
    return found
