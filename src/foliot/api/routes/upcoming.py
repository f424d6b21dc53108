"""`GET /v1/upcoming`: all that will fire in a while, how much at once, and how many slots that takes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.pages import at_most
from foliot.api.requests.parameters import instant_of, text_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.api.upcoming_jobs import upcoming_jobs
from foliot.errors import Invalid
from foliot.model.job_request import LATEST
from foliot.model.namespace import bare
from foliot.model.roles import Permission
from foliot.model.schedule_words import in_words
from foliot.model.upcoming import TICKS_MAX, Coming, Fires, crowding, fires_of
from foliot.store.attention import DueSchedule
from foliot.store.store import Store
from foliot.triggers.base import to_datetime, to_instant

HOURS_MAX = 31 * 24
JOBS_MAX = 200
"""The jobs that are listed, and whose durations are looked up."""
FIRES_SHOWN = 200
EACH_MIN = 50
"""The ticks that are computed of each job at least."""
BUCKETS = 168
DURATIONS_WITHIN = timedelta(days=7)
STEPS = (300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 86_400)


class UpcomingJob(msgspec.Struct, frozen=True):
    name: str
    queue: str
    task: str
    tags: list[str]
    schedule_words: str
    timezone: str
    count: int
    is_estimate: bool
    """It has very many ticks: most of them are not computed one by one, but taken to come as often as the first."""
    fires: list[datetime]
    """The first 200, with their jitter."""
    seconds: float | None
    """The 95th percentile of the latest 30 runs. Null while none of the last week has ended."""


class UpcomingBucket(msgspec.Struct, frozen=True):
    at: datetime
    fires: int
    slots: int
    """The slots that are needed at the busiest moment, if runs take as long as they did lately."""


class Upcoming(msgspec.Struct, frozen=True):
    since: datetime
    until: datetime
    step: int
    """The seconds of a bucket."""
    slots: int
    """The slots of the workers that live now."""
    buckets: list[UpcomingBucket]
    jobs: list[UpcomingJob]
    """The next to fire first, up to 200."""
    more: bool
    """There are more jobs or ticks than were looked at."""


def upcoming_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["recurring jobs"], route_class=PermissionRoute)

    @router.get("/v1/upcoming", openapi_extra=described(200, Upcoming, problems=(422, 503)))
    @requires(Permission.VIEW)
    async def list_upcoming(
        namespace: Within, since: str = "", hours: int = 24, queue: str = "", tag: str = ""
    ) -> Response:
        """Lists all ticks that will fire from `since`, by default now, for a number of hours; of one queue or tag if
        given.

        `slots` of a bucket is a forecast: every run starts when its tick fires, and takes as long as 95 of 100 of its
        job's latest runs did.
        """
        now = await store.jobs.database_now()
        length = timedelta(hours=at_most(hours, HOURS_MAX, "hours"))
        begin = instant_of(since, "since", now=now) or now
        if not now - timedelta(minutes=5) <= begin < min(now + timedelta(days=366), LATEST - length):
            raise Invalid("since: must be within a year from now", field="since")
        step = next(step for step in STEPS if length.total_seconds() / step <= BUCKETS)
        first = to_instant(begin) // min(step, 3600) * min(step, 3600)
        last = first + -(-int(length.total_seconds()) // step) * step
        due, is_complete = await upcoming_jobs(
            store, namespace, to_datetime(last), queue=text_of(queue, "queue"), tag=text_of(tag, "tag")
        )
        jobs = {job.id: job for job, _ in due}
        each = max(EACH_MIN, TICKS_MAX // max(1, len(due)))
        fires = await asyncio.to_thread(fires_of, [_from(one, first) for _, one in due], last, each=each)
        listed = sorted((found[0], job_id) for job_id, found in fires.by_job.items() if found and found[0] < last)[
            :JOBS_MAX
        ]
        taken = await store.attention.job_durations([job_id for _, job_id in listed], now - DURATIONS_WITHIN)
        starts = [
            (at, taken[job_id][1] if job_id in taken else 0.0) for job_id, found in fires.by_job.items() for at in found
        ]
        steady = [(rest, taken[job_id][1] if job_id in taken else 0.0) for job_id, rest in fires.steady.items()]
        nodes = await store.overview.count_nodes(namespace)
        return json_response(
            Upcoming(
                to_datetime(first),
                to_datetime(last),
                step,
                nodes.slots,
                [
                    UpcomingBucket(to_datetime(bucket.at), bucket.fires, bucket.slots)
                    for bucket in crowding(starts, first, last, step, steady)
                ],
                [_shown(jobs[job_id], fires, last, taken.get(job_id, (0, None))[1]) for _, job_id in listed],
                not (is_complete and fires.is_complete) or len(listed) == JOBS_MAX,
            )
        )

    return router


def _from(job: Coming, instant: int) -> Coming:
    return replace(job, first_tick=max(job.first_tick, instant))


def _shown(job: DueSchedule, found: Fires, until: int, seconds: float | None) -> UpcomingJob:
    fires, rest = found.by_job[job.id], found.steady.get(job.id)
    return UpcomingJob(
        bare(job.name),
        bare(job.queue),
        bare(job.task),
        list(job.tags),
        in_words(job.schedule, str(job.id)),
        job.schedule.timezone,
        len(fires) + (0 if rest is None else round(rest.count(0, until))),
        rest is not None,
        [to_datetime(at) for at in fires[:FIRES_SHOWN]],
        seconds,
    )
