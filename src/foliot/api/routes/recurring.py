"""Recurring jobs under `/v1/jobs`: listed, changed, paused, resumed, triggered, deleted, and their ticks, past and to
come."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.lookup import find_job
from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import BackfillRequest, PauseRequest, RecurringShown, recurring
from foliot.api.requests.bodies import decoded, read
from foliot.api.requests.etags import IfMatch, Version, if_match_of, tagged
from foliot.api.requests.parameters import text_of
from foliot.api.security.audit_log import NoteWithin
from foliot.api.security.permissions import GuardedRoute, Within, requires
from foliot.api.workflow_definitions import WorkflowDefinitions
from foliot.config import did_you_mean
from foliot.errors import Conflict, Invalid, NotFound, PreconditionFailed
from foliot.events import RunsSubmitted
from foliot.model.calendar import NamedCalendar
from foliot.model.ids import new_id, tick_run_id
from foliot.model.job import RecurringJob, dst_flag, resumed
from foliot.model.job_request import LATEST, SCHEDULE_FIELDS, JobRequest, check_times, cron_is_over, planned_from
from foliot.model.namespace import Namespace, bare
from foliot.model.payloads import pointing
from foliot.model.permissions import Permission
from foliot.model.schedule import from_cron
from foliot.model.states import RunState
from foliot.model.workflow import WORKFLOW_TASK, check_payload
from foliot.store.hints import JOBS_TOPIC
from foliot.store.jobs import Tick
from foliot.store.known_tasks import KnownTasks
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.triggers.base import fire_times, to_datetime, to_instant
from foliot.triggers.zones import zone_named

PAGE_MAX = 200
# How many tagged jobs a page looks at in search of those with one tag.
SCAN_MAX = 10_000
NEXT_MAX = 1000
BACKFILL_MAX = 10_000
CHANGE_ATTEMPTS = 10
OPTION_FIELDS = frozenset({
    "retries", "max_retries", "timeout_seconds", "backoff", "retry_on", "never_on", "max_snoozes", "concurrency", "rate", "fairness_key",
    "guarantee", "metadata", "tags", "notify",
})  # fmt: skip
CHANGEABLE = frozenset(SCHEDULE_FIELDS) | OPTION_FIELDS | {"catchup_window", "max_runs", "priority", "queue", "payload"}
change_decoder: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
request_decoder = msgspec.json.Decoder(JobRequest)
pause_decoder = msgspec.json.Decoder(PauseRequest)
backfill_decoder = msgspec.json.Decoder(BackfillRequest)


# For the document only: the fields of a job that can be changed, as a job has them.
JobChange: Any = msgspec.defstruct(
    "JobChange",
    [
        (field.name, field.type, msgspec.field(default=UNSET))
        for field in msgspec.structs.fields(JobRequest)
        if field.name in CHANGEABLE
    ],
    frozen=True,
    forbid_unknown_fields=True,
)
PAUSES = {
    "for a while": {"reason": "maintenance of the warehouse", "until": "2099-01-01T00:00:00Z"},
    "until resumed": {},
}
CHANGES = {
    "another hour": {"cron": "0 4 * * *", "timezone": "Europe/Zurich"},
    "other arguments": {"payload": {"customer_id": 8}, "retries": 5},
}
BACKFILLS = {"which ticks it would be": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "dry_run": True}}


class RecurringPage(msgspec.Struct, frozen=True):
    items: list[RecurringShown]
    next: str | None
    """Give it as `after` for the next page."""


class Triggered(msgspec.Struct, frozen=True):
    id: UUID
    """Of the run."""
    job_id: UUID


class TickList(msgspec.Struct, frozen=True):
    items: list[Tick]


class NextTick(msgspec.Struct, frozen=True):
    at: datetime
    dst: str | None


class NextTicks(msgspec.Struct, frozen=True):
    items: list[NextTick]
    timezone: str


class RecurringRoutes:
    def __init__(
        self, *, store: Store, known_tasks: KnownTasks, definitions: WorkflowDefinitions, body_max_bytes: int
    ) -> None:
        self._store = store
        self._known_tasks = known_tasks
        self._definitions = definitions
        self._jobs = store.jobs
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["recurring jobs"], route_class=GuardedRoute)
        one = "/v1/jobs/{reference}"
        resumes = described(200, RecurringShown, problems=(404, 409, 422, 503), matched=True)
        changes = described(
            200, RecurringShown, body=JobChange, examples=CHANGES, problems=(404, 409, 503), matched=True
        )
        deletes = described(204, problems=(404, 409, 422), matched=True)
        pauses = described(
            200,
            RecurringShown,
            body=PauseRequest,
            examples=PAUSES,
            problems=(404, 503),
            is_body_optional=True,
            matched=True,
        )
        backfills = described(200, Backfilled, body=BackfillRequest, examples=BACKFILLS, problems=(404, 503))
        add = self.router.add_api_route
        add("/v1/jobs", self.list_jobs, methods=["GET"], openapi_extra=described(200, RecurringPage, problems=(422,)))
        add(one, self.change_job, methods=["PATCH"], openapi_extra=changes)
        add(one, self.delete_job, methods=["DELETE"], status_code=204, openapi_extra=deletes)
        add(f"{one}/pause", self.pause_job, methods=["POST"], openapi_extra=pauses)
        add(f"{one}/resume", self.resume_job, methods=["POST"], openapi_extra=resumes)
        triggers = described(201, Triggered, problems=(404,))
        add(f"{one}/trigger", self.trigger_job, methods=["POST"], status_code=201, openapi_extra=triggers)
        add(f"{one}/backfill", self.backfill, methods=["POST"], operation_id="backfill_job", openapi_extra=backfills)
        add(
            f"{one}/ticks",
            self.list_ticks,
            methods=["GET"],
            openapi_extra=described(200, TickList, problems=(404, 422)),
        )
        add(
            f"{one}/next",
            self.next_ticks,
            methods=["GET"],
            openapi_extra=described(200, NextTicks, problems=(404, 422)),
        )

    @requires(Permission.VIEW)
    async def list_jobs(self, namespace: Within, tag: str = "", after: str = "", limit: int = 50) -> Response:
        """Recurring jobs by name, all or those with a tag; `after` is the `next` of the page before."""
        if "\0" in after:
            raise Invalid("after: the character NUL (%00) is in no name", field="after")
        if (wanted := text_of(tag, "tag")) is not None:
            page = await self._jobs.list_tagged_jobs(
                namespace, wanted, after, limit=within(limit, PAGE_MAX, "limit"), scan=SCAN_MAX
            )
            return _answer(
                RecurringPage([recurring(job) for job in page.items], bare(page.following) if page.following else None)
            )
        jobs = await self._jobs.list_jobs(namespace, after, within(limit, PAGE_MAX, "limit"))
        following = bare(jobs[-1].name) if len(jobs) == limit else None
        return _answer(RecurringPage([recurring(job) for job in jobs], following))

    @requires(Permission.OPERATE)
    async def change_job(self, reference: str, request: Request, namespace: Within) -> Response:
        """Changes a recurring job. Ticks before the change stay what they were."""
        body = await read(request, self._body_max_bytes)
        given = set((await decoded(body, change_decoder)).keys())
        if unknown := sorted(given - CHANGEABLE):
            raise Invalid(
                f"{unknown[0]}: can't be changed; what can: {', '.join(sorted(CHANGEABLE))}", field=unknown[0]
            )
        asked, if_match = await decoded(body, request_decoder), if_match_of(request)
        for _ in range(CHANGE_ATTEMPTS):
            job = await self._meant(namespace, reference, if_match)
            if bare(job.task) == WORKFLOW_TASK and "payload" in given:
                asked = msgspec.structs.replace(
                    asked, payload=await self._definitions.of_payload(namespace, asked.payload)
                )
            elif "payload" in given:
                check_payload(
                    bare(job.task), asked.payload, unknown=pointing(asked.payload) if job.schedule.after else ()
                )
            if "tags" in given and asked.tags is None:
                asked = msgspec.structs.replace(asked, tags=await self._known_tasks.tags_of(namespace, bare(job.task)))
            now = await self._jobs.database_now()
            unchanged, first_missed, last_missed = resumed(job, now)
            calendar = await calendar_named(self._store, namespace, asked.calendar) if "calendar" in given else None
            changed = planned_from(apply_change(job, asked, given, calendar, namespace), now)
            if asked.cron is not None and asked.times is None and cron_is_over(changed.schedule, now):
                raise Invalid("cron: the job would never fire: its years are past", field="cron")
            # A job that fires every second may do so between our reading and our writing; then the change is made to
            # what it is now.
            if await self._jobs.change_job(job, changed, first_missed, last_missed, unchanged.next_at) is not None:
                self._store.hints.send([JOBS_TOPIC])
                return await self._shown(namespace, reference, request)
        raise _changed_meanwhile(reference)

    @requires(Permission.OPERATE)
    async def delete_job(self, reference: str, request: Request, namespace: Within) -> Response:
        """Deletes a recurring job. What it has run stays in history."""
        if_match = if_match_of(request)
        job = await self._meant(namespace, reference, if_match)
        if not await self._jobs.delete_job(job.id, None if if_match is None else job.version) and if_match is not None:
            raise _no_longer(reference)
        return Response(status_code=204)

    @requires(Permission.OPERATE)
    async def pause_job(self, reference: str, request: Request, namespace: Within) -> Response:
        """Stops firing. What falls into the pause is noted, not caught up."""
        asked = await decoded(await read(request, self._body_max_bytes) or b"{}", pause_decoder)
        if asked.until is not None and not await self._jobs.database_now() < asked.until < LATEST:
            raise Invalid(f"until: must be in the future and before the year {LATEST.year}", field="until")
        if_match = if_match_of(request)
        job = await self._meant(namespace, reference, if_match)
        version = None if if_match is None else job.version
        if not await self._jobs.pause_job(job.id, asked.reason, asked.until, version) and if_match is not None:
            raise _no_longer(reference)
        return await self._shown(namespace, reference, request)

    @requires(Permission.OPERATE)
    async def resume_job(self, reference: str, request: Request, namespace: Within) -> Response:
        """Goes on with the next tick from now."""
        if_match = if_match_of(request)
        job = await self._meant(namespace, reference, if_match)
        if job.paused_at is not None and not await self._jobs.resume_job(
            *resumed(job, await self._jobs.database_now())
        ):
            job = await self._meant(namespace, reference, if_match)
            if job.paused_at is not None:
                raise _changed_meanwhile(reference)
        self._store.hints.send([JOBS_TOPIC])
        return await self._shown(namespace, reference, request)

    @requires(Permission.SUBMIT)
    async def trigger_job(self, reference: str, request: Request, namespace: Within) -> Response:
        """Runs it once now, beside its schedule."""
        run_id, job = new_id(), await self._find(namespace, reference)
        await self._known_tasks.refuse_disabled(namespace, bare(job.task))
        note = NoteWithin(request, "trigger_job", store=self._store)

        async def work(within: Transaction) -> Triggered:
            if await self._jobs.insert_triggered_run(run_id, job.id, within=within) is None:
                raise _unknown(reference)
            return Triggered(run_id, job.id)

        made = await self._store.database.in_transaction("trigger_job", note.around(work))
        note.committed()
        self._store.hints.send([job.queue])
        self._store.events.emit(RunsSubmitted(1))
        return _answer(made, status=201)

    @requires(Permission.OPERATE)
    async def backfill(self, reference: str, request: Request, namespace: Within) -> Response:
        """Runs the ticks of a range of the past; those that have run already are left alone. By default one after the
        other."""
        asked = await decoded(await read(request, self._body_max_bytes), backfill_decoder)
        job = await self._find(namespace, reference)
        await self._known_tasks.refuse_disabled(namespace, bare(job.task))
        ticks = {tick_run_id(job.id, tick): to_datetime(tick) for tick in ticks_between(job, asked.start, asked.end)}
        if asked.end > await self._jobs.database_now():
            raise Invalid("to: must be in the past", field="to")
        fired = await self._jobs.find_fired(job.id, list(ticks.values()))
        missing = {run_id: tick for run_id, tick in ticks.items() if tick not in fired}
        if asked.dry_run:
            return _answer(Backfilled(list(missing.values()), len(ticks) - len(missing), is_dry_run=True))
        state = RunState.HELD if asked.overlap == "buffer_all" else RunState.READY
        made = await self._jobs.insert_backfill(job.id, missing, state)
        self._store.hints.send([job.queue])
        self._store.events.emit(RunsSubmitted(len(made)))
        return _answer(Backfilled(sorted(made), len(ticks) - len(made), is_dry_run=False))

    @requires(Permission.VIEW)
    async def list_ticks(self, reference: str, namespace: Within, limit: int = 50) -> Response:
        """Every due tick with its outcome, latest first."""
        ticks = await self._jobs.list_ticks(
            (await self._find(namespace, reference)).id, within(limit, PAGE_MAX, "limit")
        )
        return _answer(TickList(ticks))

    @requires(Permission.VIEW)
    async def next_ticks(self, reference: str, namespace: Within, count: int = 10) -> Response:
        """The next fire times, in the job's own zone; `dst` says where a change of the clocks had a hand in one."""
        job = await self._find(namespace, reference)
        zone, now = zone_named(job.schedule.timezone), to_instant(await self._jobs.database_now())
        count = within(count, NEXT_MAX, "count")
        ticks = fire_times(job.timetable.fires, now, count if job.runs_left is None else min(count, job.runs_left))
        items = [NextTick(to_datetime(tick).astimezone(zone), dst_flag(job, tick)) for tick in ticks]
        return _answer(NextTicks(items, job.schedule.timezone))

    async def _find(self, namespace: Namespace, reference: str) -> RecurringJob:
        job = await find_job(self._store, namespace, job_id_of(reference), reference)
        if job is None:
            raise _unknown(reference)
        return job

    async def _meant(self, namespace: Namespace, reference: str, if_match: IfMatch | None) -> RecurringJob:
        """The job, if it is what the request is meant for. Whatever is then written is fenced by its version."""
        job = await self._find(namespace, reference)
        if if_match is not None:
            if_match.check(f"job {reference!r}", version_of(job))
        return job

    async def _shown(self, namespace: Namespace, reference: str, request: Request) -> Response:
        job = await self._find(namespace, reference)
        return tagged(request, recurring(job), version_of(job))


class Backfilled(msgspec.Struct, frozen=True):
    ticks: list[datetime]
    """What was, or would be, run."""
    already_run: int
    is_dry_run: bool


def ticks_between(job: RecurringJob, start: datetime, end: datetime) -> list[int]:
    """The ticks from `start` to `end` that its schedule is done with: what is still to fire would run twice. Raises
    `Invalid` when there are too many for one request."""
    if start > end:
        raise Invalid("to: is before from", field="to")
    if max(start, end) >= LATEST or start.year < 1970:
        raise Invalid("from: must be between 1970 and 2200", field="from")
    first, last = to_instant(start) - (0 if start.microsecond else 1), to_instant(end)
    if job.fire_at is not None and job.next_at is not None:
        last = min(last, to_instant(job.next_at) - 1)
    found = [tick for tick in fire_times(job.timetable.fires, first, BACKFILL_MAX + 1) if tick <= last]
    if len(found) > BACKFILL_MAX:
        raise Invalid(f"to: more than {BACKFILL_MAX} ticks; take a smaller range", field="to")
    return found


def within(number: int, most: int, field: str) -> int:
    if not 1 <= number <= most:
        raise Invalid(f"{field}: must be between 1 and {most}", field=field)
    return number


async def calendar_named(store: Store, namespace: Namespace, name: str | None) -> NamedCalendar | None:
    """Raises `Invalid` for a name that no calendar has."""
    if name is None:
        return None
    calendar = await store.calendars.get_calendar(namespace.qualified(name))
    if calendar is None:
        hint = did_you_mean(name, [bare(known.name) for known in await store.calendars.list_calendars(namespace)])
        raise Invalid(f"calendar: there is no calendar named {name!r}{hint}", field="calendar")
    return calendar


def apply_change(
    job: RecurringJob, asked: JobRequest, given: set[str], calendar: NamedCalendar | None, namespace: Namespace
) -> RecurringJob:
    """The job with the given fields changed, and nothing else."""
    schedule = msgspec.structs.asdict(job.schedule)
    for name in given.intersection(SCHEDULE_FIELDS):
        schedule[name] = getattr(asked, name)
    if "catchup_window" in given:
        schedule["catchup_window_seconds"] = asked.catchup_window_seconds
    if "calendar" in given:
        schedule["calendar"] = calendar.name if calendar else None
        job = replace(
            job, calendar=calendar.days if calendar else None, calendar_version=calendar.version if calendar else None
        )
    if given.intersection(SCHEDULE_FIELDS):
        # Another schedule begins now; what the one before had put off is not its business.
        job = replace(job, next_at=None)
    if asked.cron is not None and asked.every is not None:
        raise Invalid("cron: give either cron or every", field="cron")
    check_times(asked.times)
    if "cron" in given and asked.cron is not None:
        schedule["every"] = None
        schedule |= from_cron(asked.cron, asked.timezone if asked.timezone is not UNSET else None)
    if "every" in given and asked.every is not None:
        schedule["cron"] = None
    return replace(
        job,
        schedule=msgspec.convert(schedule, type(job.schedule)),
        priority=asked.priority if "priority" in given else job.priority,
        queue=namespace.qualified(asked.queue) if asked.queue else job.queue,
        payload=asked.payload if "payload" in given else job.payload,
        options=changed_options(job, asked, given, namespace),
        runs_left=asked.max_runs if "max_runs" in given else job.runs_left,
    )


def changed_options(
    job: RecurringJob, asked: JobRequest, given: set[str], namespace: Namespace
) -> dict[str, object] | None:
    """A field given as null falls back to what the task says."""
    options = dict(job.options or {})
    wanted = msgspec.to_builtins(asked.run_options(namespace))
    for name in {"retries" if field == "max_retries" else field for field in given & OPTION_FIELDS}:
        options.pop(name, None)
        if name in wanted:
            options[name] = wanted[name]
    return options or None


def job_id_of(reference: str) -> UUID | None:
    """None when it can only be a name. Raises `NotFound` for what can't even be that: PostgreSQL would refuse to look
    for it."""
    if "\0" in reference:
        raise _unknown(reference)
    try:
        return UUID(reference)
    except ValueError:
        return None


def _answer(body: object, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def _unknown(reference: str) -> NotFound:
    return NotFound(f"there is no recurring job {reference!r}")


def version_of(job: RecurringJob) -> Version:
    return Version(job.version, job.created_at)


def _no_longer(reference: str) -> PreconditionFailed:
    return PreconditionFailed(f"the job {reference!r} was changed or deleted at the same time; GET it again")


def _changed_meanwhile(reference: str) -> Conflict:
    return Conflict(f"the job {reference!r} was changed or fired at the same time; look again")
