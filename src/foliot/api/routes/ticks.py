"""The ticks of a recurring job under `/v1/jobs/{reference}`: past and next ones, backfill, and a run outside the
schedule."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import BackfillRequest
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.pages import at_most, page_size
from foliot.api.requests.parameters import cursor_of, cursor_text, instant_of
from foliot.api.security.audit_log import NoteWithin
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import Invalid
from foliot.events import RunsSubmitted
from foliot.model.ids import new_id, tick_run_id
from foliot.model.namespace import bare
from foliot.model.roles import Permission
from foliot.model.simulation import DayCount, PreviewTick, odd_nights, preview_tick, year_of_days
from foliot.model.simulation import next_ticks as simulated_ticks
from foliot.model.states import RunState
from foliot.store.lookup import get_job, unknown_job
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.store.ticks import Tick
from foliot.submission.backfill import neighbours_of, ticks_between
from foliot.submission.known_tasks import KnownTasks
from foliot.triggers.base import fire_times, to_datetime, to_instant
from foliot.triggers.zones import zone_named

NEXT_MAX = 1000
NO_RUN = UUID(int=0)
HALF_A_YEAR = timedelta(days=182)
backfill_decoder = msgspec.json.Decoder(BackfillRequest)
BACKFILLS = {"dry run": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "dry_run": True}}


class Triggered(msgspec.Struct, frozen=True):
    id: UUID
    """The id of the run."""
    job_id: UUID


class TickList(msgspec.Struct, frozen=True):
    items: list[Tick]
    next: str | None
    """Pass it as `after` to get the next page."""


class TickDay(msgspec.Struct, frozen=True):
    date: str
    """The day in the job's time zone."""
    outcomes: dict[str, int]
    """How often each outcome came. A row that sums up ticks counts once."""


class TickDays(msgspec.Struct, frozen=True):
    timezone: str
    today: str
    days: list[TickDay]
    """Past days that had ticks, the oldest first."""
    counted_from: datetime | None
    """Set if the job had more ticks than the latest 20,000, which are counted."""
    ahead: list[DayCount]
    """Today and the next half year."""
    clock_changes: list[str]
    """The days ahead on which clocks change."""


class NextTicks(msgspec.Struct, frozen=True):
    items: list[PreviewTick]
    timezone: str


class Backfilled(msgspec.Struct, frozen=True):
    ticks: list[datetime]
    """The ticks that run, or in a dry run would run."""
    already_run: int
    is_dry_run: bool


class TickRoutes:
    def __init__(self, *, store: Store, known_tasks: KnownTasks, body_max_bytes: int) -> None:
        self._store = store
        self._known_tasks = known_tasks
        self._jobs = store.jobs
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["recurring jobs"], route_class=PermissionRoute)
        one = "/v1/jobs/{reference}"
        add = self.router.add_api_route
        triggers = described(201, Triggered, problems=(404,))
        add(f"{one}/trigger", self.trigger_job, methods=["POST"], status_code=201, openapi_extra=triggers)
        backfills = described(200, Backfilled, body=BackfillRequest, examples=BACKFILLS, problems=(404, 503))
        add(f"{one}/backfill", self.backfill, methods=["POST"], operation_id="backfill_job", openapi_extra=backfills)
        add(
            f"{one}/ticks",
            self.list_ticks,
            methods=["GET"],
            openapi_extra=described(200, TickList, problems=(404, 422)),
        )
        days = described(200, TickDays, problems=(404, 422))
        add(f"{one}/ticks/days", self.list_tick_days, methods=["GET"], openapi_extra=days)
        add(
            f"{one}/next",
            self.next_ticks,
            methods=["GET"],
            openapi_extra=described(200, NextTicks, problems=(404, 422)),
        )

    @requires(Permission.SUBMIT)
    async def trigger_job(self, reference: str, request: Request, namespace: Within) -> Response:
        """Runs a recurring job once now, outside its schedule."""
        run_id, job = new_id(), await get_job(self._store, namespace, reference)
        await self._known_tasks.refuse_disabled(namespace, bare(job.task))
        note = NoteWithin(request, "trigger_job", store=self._store)
        between = job.timetable.around(to_instant(await self._jobs.database_now()))

        async def work(within: Transaction) -> Triggered:
            if await self._jobs.insert_triggered_run(run_id, job.id, between=between, within=within) is None:
                raise unknown_job(reference)
            return Triggered(run_id, job.id)

        made = await self._store.database.in_transaction("trigger_job", note.around(work))
        note.committed()
        self._store.hints.send([job.queue])
        self._store.events.emit(RunsSubmitted(1))
        return _answer(made, status=201)

    @requires(Permission.OPERATE)
    async def backfill(self, reference: str, request: Request, namespace: Within) -> Response:
        """Runs the past ticks of a range that have not run yet, by default one after the other."""
        asked = await decoded(await read(request, self._body_max_bytes), backfill_decoder)
        job = await get_job(self._store, namespace, reference)
        await self._known_tasks.refuse_disabled(namespace, bare(job.task))
        instants = ticks_between(job, asked.start, asked.end)
        ticks = {tick_run_id(job.id, tick): to_datetime(tick) for tick in instants}
        if asked.end > await self._jobs.database_now():
            raise Invalid("to: must be in the past", field="to")
        fired = await self._store.backfill.find_fired(job.id, list(ticks.values()))
        missing = {run_id: tick for run_id, tick in ticks.items() if tick not in fired}
        if asked.dry_run:
            return _answer(Backfilled(list(missing.values()), len(ticks) - len(missing), is_dry_run=True))
        state = RunState.HELD if asked.overlap == "buffer_all" else RunState.READY
        between = dict(zip(ticks, neighbours_of(job, instants), strict=True))
        made = await self._store.backfill.insert_backfill(job.id, missing, state, between)
        self._store.hints.send([job.queue])
        self._store.events.emit(RunsSubmitted(len(made)))
        return _answer(Backfilled(sorted(made), len(ticks) - len(made), is_dry_run=False))

    @requires(Permission.VIEW)
    async def list_ticks(
        self, reference: str, namespace: Within, since: str = "", until: str = "", after: str = "", limit: int = 50
    ) -> Response:
        """Lists the past ticks with their outcomes, latest first; within a time if given."""
        job, now = await get_job(self._store, namespace, reference), await self._jobs.database_now()
        ticks = await self._store.ticks.list_ticks(
            job.id,
            page_size(limit),
            since=instant_of(since, "since", now=now),
            until=instant_of(until, "until", now=now),
            after=cursor_of(after) if after else None,
        )
        last = ticks[-1] if len(ticks) == limit else None
        return _answer(TickList(ticks, None if last is None else cursor_text(last.tick_at, last.run_id or NO_RUN)))

    @requires(Permission.VIEW)
    async def list_tick_days(self, reference: str, namespace: Within) -> Response:
        """Lists the days of the past half year with the outcomes of their ticks, and the days of the next half year
        with the ticks that are planned or excluded, in the job's time zone."""
        job = await get_job(self._store, namespace, reference)
        zone, now = job.schedule.timezone, await self._jobs.database_now()
        counted, counted_from = await self._store.ticks.count_days(job.id, now - HALF_A_YEAR, zone)
        days: dict[str, dict[str, int]] = {}
        for one in counted:
            days.setdefault(one.date.isoformat(), {})[one.outcome] = one.count
        at = to_instant(now)
        ahead = await asyncio.to_thread(year_of_days, job.timetable, at)
        nights = await asyncio.to_thread(odd_nights, job, at)
        return _answer(
            TickDays(
                zone,
                now.astimezone(zone_named(zone)).date().isoformat(),
                [TickDay(date, outcomes) for date, outcomes in days.items()],
                counted_from,
                ahead[: HALF_A_YEAR.days + 1],
                [night.at.date().isoformat() for night in nights],
            )
        )

    @requires(Permission.VIEW)
    async def next_ticks(self, reference: str, namespace: Within, count: int = 10, excluded: bool = False) -> Response:
        """Lists the next ticks in the job's time zone, with the time at which each fires after its jitter.

        `dst` marks a tick that a clock change affects, and `mark` one that the calendar moved. With `excluded`, the
        ticks that the calendar excludes are between them.
        """
        job = await get_job(self._store, namespace, reference)
        now = to_instant(await self._jobs.database_now())
        count = at_most(count, NEXT_MAX, "count")
        count = count if job.runs_left is None else min(count, job.runs_left)
        if excluded:
            items = await asyncio.to_thread(simulated_ticks, job, now, count)
        else:
            timetable = job.timetable
            items = [preview_tick(job, timetable, tick) for tick in fire_times(timetable.fires, now, count)]
        return _answer(NextTicks(items, job.schedule.timezone))


def _answer(body: object, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")
