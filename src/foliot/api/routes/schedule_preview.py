"""`POST /v1/schedules/preview`: a schedule tried out before it is saved."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter
from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.api.upcoming_jobs import upcoming_jobs
from foliot.errors import Invalid
from foliot.model.ids import new_id
from foliot.model.job import RecurringJob
from foliot.model.job_request import SCHEDULE_FIELDS, JobRequest, planned_from
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.model.schedule_words import in_words
from foliot.model.simulation import (
    DayCount,
    OddNight,
    PastReplay,
    PastRun,
    PreviewTick,
    fires_per_week,
    next_ticks,
    odd_nights,
    replay,
    year_of_days,
)
from foliot.model.upcoming import crowding, fires_of
from foliot.store.lookup import get_job
from foliot.store.store import Store
from foliot.submission.calendars import find_calendar
from foliot.submission.job_changes import apply_change
from foliot.triggers.base import to_datetime, to_instant
from foliot.triggers.cron import parse_cron
from foliot.triggers.description import notes_on

NEXT = 50
REPLAYED = timedelta(days=30)
PREVIEWED = frozenset({*SCHEDULE_FIELDS, "catchup_window", "max_runs", "queue"})
request_decoder = msgspec.json.Decoder(JobRequest)
given_decoder: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
Reference = Annotated[str, Meta(min_length=1, max_length=200, description="The job to compare with, by name or id.")]
# For the OpenAPI document, and to refuse unknown fields.
PreviewRequest: Any = msgspec.defstruct(
    "PreviewRequest",
    [
        *(
            (field.name, field.type, msgspec.field(default=UNSET))
            for field in msgspec.structs.fields(JobRequest)
            if field.name in PREVIEWED
        ),
        ("job", Reference | UnsetType, msgspec.field(default=UNSET)),
    ],
    frozen=True,
    forbid_unknown_fields=True,
)
EXAMPLES = {
    "every working day": {"cron": "30 9 * * MON-FRI", "timezone": "Europe/Zurich"},
    "a period": {"every": "15m", "jitter_seconds": 60},
}


class Crowding(msgspec.Struct, frozen=True):
    """How the runs of the next day meet those of other jobs in the same queue."""

    queue: str
    busiest_at: datetime | None
    """The minute with the most other ticks, of the minutes in which this schedule fires."""
    busiest: int
    """How many other ticks that minute has."""
    shared: int
    """How many of its fires share their minute with others."""
    fires: int
    more: bool


class SchedulePreview(msgspec.Struct, frozen=True):
    words: str
    notes: list[str]
    """Surprises in the expression."""
    timezone: str
    next: list[PreviewTick]
    odd_nights: list[OddNight]
    days: list[DayCount]
    """A year from today, in the zone of the schedule."""
    fires_per_week: float
    """The average of the next four weeks."""
    saved_fires_per_week: float | None
    """That of the job as it is saved. Null without a job."""
    replay: PastReplay | None
    """The last thirty days with the durations of the job's runs. Null without a job, and while none has run."""
    crowding: Crowding


class SchedulePreviewRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["recurring jobs"], route_class=PermissionRoute)
        previews = described(200, SchedulePreview, body=PreviewRequest, examples=EXAMPLES, problems=(404, 503))
        self.router.add_api_route(
            "/v1/schedules/preview", self.preview_schedule, methods=["POST"], openapi_extra=previews
        )

    @requires(Permission.VIEW)
    async def preview_schedule(self, request: Request, namespace: Within) -> Response:
        """Tries out a schedule and changes nothing: its words, its next ticks, the nights when clocks change, a year of
        days, the last thirty days with real durations, and the other ticks in its queue.

        With `job`, fields that are left out are those of the job.
        """
        body = await read(request, self._body_max_bytes)
        given = await decoded(body, given_decoder)
        if unknown := sorted(set(given) - PREVIEWED - {"job"}):
            raise Invalid(f"{unknown[0]}: is not part of a schedule", field=unknown[0])
        reference = given.pop("job", None)
        asked = await decoded(msgspec.json.encode(given), request_decoder)
        now = await self._store.jobs.database_now()
        saved = None
        if reference is not None:
            saved = await get_job(self._store, namespace, await decoded(bytes(reference), reference_decoder))
        job = await self._tried(namespace, asked, set(given), saved, now)
        return json_response(await self._shown(namespace, job, saved, now))

    async def _tried(
        self, namespace: Namespace, asked: JobRequest, given: set[str], saved: RecurringJob | None, now: datetime
    ) -> RecurringJob:
        """The job as it would be."""
        calendar = await find_calendar(self._store, namespace, asked.calendar) if asked.calendar else None
        if saved is None:
            asked = msgspec.structs.replace(asked, task="preview")
            return asked.new_job(new_id(), namespace=namespace, queue="default", now=now, calendar=calendar)
        return planned_from(apply_change(saved, asked, given, calendar, namespace), now)

    async def _shown(
        self, namespace: Namespace, job: RecurringJob, saved: RecurringJob | None, now: datetime
    ) -> SchedulePreview:
        at = to_instant(now)
        since = now - REPLAYED
        past = [] if saved is None else await self._store.attention.past_runs(saved.id, since)
        ticks, nights, days, saved_days, replayed = await asyncio.to_thread(
            _simulate, job, saved, past, to_instant(since), at
        )
        return SchedulePreview(
            in_words(job.schedule, str(job.id)),
            [
                note
                for expression in job.schedule.expressions
                for note in notes_on(parse_cron(expression, is_stored=True).fields)
            ],
            job.schedule.timezone,
            ticks,
            nights,
            days,
            fires_per_week(days),
            None if saved_days is None else fires_per_week(saved_days),
            replayed,
            await self._crowding(namespace, job, ticks, at),
        )

    async def _crowding(self, namespace: Namespace, job: RecurringJob, ticks: list[PreviewTick], now: int) -> Crowding:
        begin = now // 60 * 60
        end = begin + 86_400
        mine = {to_instant(tick.fires_at) // 60 * 60 for tick in ticks if tick.fires_at is not None}
        mine = {at for at in mine if begin <= at < end}
        queue = bare(job.queue)
        others, is_complete = await upcoming_jobs(self._store, namespace, to_datetime(end), queue=queue)
        fires = await asyncio.to_thread(fires_of, [one for other, one in others if other.id != job.id], end)
        starts = [(at, 0.0) for found in fires.by_job.values() for at in found]
        counts = {bucket.at: bucket.fires for bucket in crowding(starts, begin, end, 60) if bucket.at in mine}
        busiest = max(counts, key=lambda at: (counts[at], -at), default=None)
        return Crowding(
            queue,
            None if busiest is None or not counts[busiest] else to_datetime(busiest),
            0 if busiest is None else counts[busiest],
            sum(1 for count in counts.values() if count),
            len(mine),
            not (is_complete and fires.is_complete),
        )


reference_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Reference)


def _simulate(
    job: RecurringJob, saved: RecurringJob | None, past: list[PastRun], since: int, now: int
) -> tuple[list[PreviewTick], list[OddNight], list[DayCount], list[DayCount] | None, PastReplay | None]:
    return (
        next_ticks(job, now, NEXT),
        odd_nights(job, now),
        year_of_days(job.timetable, now),
        None if saved is None else year_of_days(saved.timetable, now),
        replay(job, past, since, now),
    )
