"""Finds runs by the filters of `GET /v1/runs` and of bulk actions on runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from foliot.api.requests.parameters import cursor_of, cursor_text, id_of, instant_of, states_of, text_of
from foliot.errors import Invalid
from foliot.model.ids import CLOCK_TOLERANCE, first_id_of, not_finished_before
from foliot.model.job_request import EARLIEST, LATEST
from foliot.model.namespace import Namespace
from foliot.model.states import TERMINAL
from foliot.store.lookup import find_job, find_run, job_id_of
from foliot.store.run_lists import RunFilter, RunItem, Span, Where
from foliot.store.store import Store
from foliot.store.workflows import Parent

LOOK_BACK = timedelta(days=7)
# The finished runs that overviews count.
FINISHED_WITHIN = timedelta(days=1)
# The rows that a page reads at most to find matching runs.
SCAN_MAX = 10_000
# Up to this number, the children of a parent are read by parent and sorted. Beyond it, they are most of the runs
# between their ids.
FEW = 20_000
FIRST_ID, LAST_ID = UUID(int=0), UUID(int=(1 << 128) - 1)


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters as a request gives them; an empty one is not set."""

    state: str = ""
    queue: str = ""
    task: str = ""
    job: str = ""
    since: str = ""
    until: str = ""
    text: str = ""
    parent: str = ""
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    items: list[RunItem]
    next: str | None
    """The cursor of the next page."""
    since: datetime | None
    """Finished runs are listed from here on; None: from the beginning."""


async def find_runs(store: Store, namespace: Namespace, asked: Asked, *, after: str, limit: int) -> Found:
    """A page of runs, latest first. Raises `Invalid` for filters that contradict each other."""
    family = await _parent_named(store, namespace, asked.parent) if asked.parent else None
    wanted = RunFilter(
        namespace,
        states_of(asked.state),
        name_of(namespace, asked.queue, "queue"),
        name_of(namespace, asked.task, "task"),
        text_of(asked.text, "text"),
        family.id if family else None,
        text_of(asked.tag, "tag"),
    )
    now = await store.jobs.database_now()
    begin, end = instant_of(asked.since, "since", now=now), instant_of(asked.until, "until", now=now)
    if begin and end and begin > end:
        raise Invalid("until: is before since", field="until")
    if asked.job:
        if family is not None:
            raise Invalid("parent: give either job or parent", field="parent")
        job_id = await job_named(store, namespace, asked.job)
        return await find_job_runs(store, job_id, wanted, begin or EARLIEST, end or LATEST, after=after, limit=limit)
    looked_from = begin or (family.created_at - CLOCK_TOLERANCE if family else now - LOOK_BACK)
    last = (
        end
        if family is None or family.finished_at is None
        else min(end or LATEST, family.finished_at + CLOCK_TOLERANCE)
    )
    first = first_id_of(looked_from)
    before = min(id_of(after, "after") if after else LAST_ID, first_id_of(last) if last else LAST_ID)
    span = Span(before, first_id_of(begin) if begin else FIRST_ID, first, not_finished_before(first))
    where, is_exact = place_of(wanted) if family is None or family.total > FEW else ("children", False)
    page = await store.run_lists.list_runs(where, span, wanted, limit=limit, scan=limit + 1 if is_exact else SCAN_MAX)
    return Found(page.items, str(page.following) if page.following else None, looked_from)


async def find_job_runs(
    store: Store, job_id: UUID, wanted: RunFilter, since: datetime, until: datetime, *, after: str, limit: int
) -> Found:
    before = min(cursor_of(after), (until, FIRST_ID)) if after else (until, FIRST_ID)
    scan = limit + 1 if wanted.is_empty else SCAN_MAX
    page = await store.run_lists.list_job_runs(job_id, before, since, wanted, limit=limit, scan=scan)
    return Found(page.items, cursor_text(*page.following) if page.following else None, None)


def name_of(namespace: Namespace, text: str, field: str) -> str | None:
    """The qualified name; None for an empty text."""
    name = text_of(text, field)
    return None if name is None else namespace.qualified(name)


def place_of(wanted: RunFilter) -> tuple[Where, bool]:
    """The rows to read for the wanted states, and whether all of them match."""
    states, is_only_by_state = set(wanted.states or ()), wanted == RunFilter(wanted.namespace, wanted.states)
    if states == {"running"}:
        return "running", is_only_by_state
    if wanted.tag is not None:
        return "tagged", False
    if states == {"failed"}:
        return "failed", is_only_by_state
    if states and states <= TERMINAL:
        return "history", False
    if states and not states & TERMINAL:
        return "live", False
    return "all", wanted.is_empty


async def _parent_named(store: Store, namespace: Namespace, reference: str) -> Parent:
    found = await store.workflows.get_parent(id_of(reference, "parent"))
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
