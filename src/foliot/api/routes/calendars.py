"""`/v1/calendars`: named sets of days on which recurring jobs do not fire."""

from __future__ import annotations

import asyncio
from datetime import date, datetime

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import CREATE_ONLY, IF_NONE_MATCH, described
from foliot.api.requests.bodies import read_json
from foliot.api.requests.etags import IfMatch, Version, if_match_of, is_create_only, tagged
from foliot.api.requests.names import stored_name
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import Conflict, Invalid, NotFound, PreconditionFailed
from foliot.model.calendar import CalendarDays, NamedCalendar, Weekday, calendar_of
from foliot.model.calendar_change import JobEffect, effects
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.store.store import Store
from foliot.triggers.base import to_instant

PREVIEWED_MAX = 100
"""The jobs that a preview looks at."""
days_decoder = msgspec.json.Decoder(CalendarDays)


class CalendarShown(msgspec.Struct, frozen=True):
    name: str
    version: int
    timezone: str
    dates: tuple[date, ...]
    weekdays: tuple[Weekday, ...]
    created_at: datetime
    updated_at: datetime
    jobs: int
    """How many jobs use it, counted up to 100."""


class CalendarPreview(msgspec.Struct, frozen=True):
    jobs: list[JobEffect]
    """At most 100 jobs that use the calendar: first those that would never fire again, then those that change most."""
    changed: int
    """How many of them fire at other times than before."""
    more: bool
    """Whether more jobs use the calendar."""


class CalendarList(msgspec.Struct, frozen=True):
    items: list[CalendarShown]


EXAMPLES = {
    "holidays": {"timezone": "Europe/Zurich", "dates": ["2026-12-25", "2027-01-01"]},
    "weekends": {"timezone": "America/New_York", "weekdays": ["SAT", "SUN"]},
}


def calendars_router(*, store: Store, body_max_bytes: int) -> APIRouter:
    router = APIRouter(tags=["calendars"], route_class=PermissionRoute)

    shows = described(200, CalendarShown, problems=(404, 422), tagged=True)
    puts = described(200, CalendarShown, body=CalendarDays, examples=EXAMPLES, matched=True, headers=(CREATE_ONLY,))
    deletes = described(204, problems=(404, 409, 422), matched=True)
    previews = described(200, CalendarPreview, body=CalendarDays, examples=EXAMPLES, problems=(404, 422))

    @router.get("/v1/calendars", openapi_extra=described(200, CalendarList))
    @requires(Permission.VIEW)
    async def list_calendars(namespace: Within) -> Response:
        """Lists all calendars by name."""
        found = await store.calendars.list_calendars(namespace)
        return _answer(CalendarList([shown(calendar) for calendar in found]))

    @router.get("/v1/calendars/{name}", openapi_extra=shows)
    @requires(Permission.VIEW)
    async def get_calendar(name: str, request: Request, namespace: Within) -> Response:
        """Shows the days that a calendar excludes."""
        found = await find(namespace, name)
        return tagged(request, shown(found), version_of(found))

    @router.put("/v1/calendars/{name}", openapi_extra=puts)
    @requires(Permission.OPERATE)
    async def put_calendar(name: str, request: Request, namespace: Within) -> Response:
        """Creates a calendar, or changes it for every job that uses it, from the next tick on.

        `If-None-Match: *` only creates, and If-Match only changes the matching version; otherwise the answer is 412.
        """
        days = await read_json(request, days_decoder, max_bytes=body_max_bytes)
        stored = stored_name(namespace, name)
        calendar_of(days)
        await put(store, stored, days, if_match_of(request), is_new=is_create_only(request))
        found = await find(namespace, name)
        return tagged(request, shown(found), version_of(found))

    @router.post("/v1/calendars/{name}/preview", openapi_extra=previews)
    @requires(Permission.VIEW)
    async def preview_calendar(name: str, request: Request, namespace: Within) -> Response:
        """Shows what a change to a calendar would do to each job that uses it, and changes nothing: its next fire, and
        the days of the next year on which it fires more or less often."""
        days = await read_json(request, days_decoder, max_bytes=body_max_bytes)
        calendar_of(days)
        calendar = await find(namespace, name)
        jobs = await store.jobs.list_calendar_jobs(calendar.name, "", PREVIEWED_MAX + 1)
        now = to_instant(await store.jobs.database_now())
        found = await asyncio.to_thread(effects, jobs[:PREVIEWED_MAX], calendar.days, days, now)
        changed = sum(one.is_changed for one in found)
        return _answer(CalendarPreview(found, changed, len(jobs) > PREVIEWED_MAX))

    @router.delete("/v1/calendars/{name}", status_code=204, openapi_extra=deletes)
    @requires(Permission.OPERATE)
    async def delete_calendar(name: str, request: Request, namespace: Within) -> Response:
        """Deletes a calendar that no job uses."""
        await delete(store, await find(namespace, name), if_match_of(request))
        return Response(status_code=204)

    async def find(namespace: Namespace, name: str) -> NamedCalendar:
        found = None if "\0" in name else await store.calendars.get_calendar(namespace.qualified(name))
        if found is None:
            raise NotFound(f"there is no calendar {name!r}")
        return found

    return router


async def put(store: Store, name: str, days: CalendarDays, if_match: IfMatch | None, *, is_new: bool) -> None:
    """Raises `PreconditionFailed`."""
    if is_new and if_match is not None:
        raise Invalid("If-None-Match: give either it or If-Match", field=IF_NONE_MATCH)
    if is_new:
        if not await store.calendars.make_calendar(name, days):
            raise PreconditionFailed(
                f"there is a calendar {bare(name)!r} already; leave out If-None-Match to change it"
            )
    elif if_match is not None:
        before = await store.calendars.get_calendar(name)
        if_match.check(f"calendar {bare(name)!r}", None if before is None else version_of(before))
        if before is None or not await store.calendars.change_calendar(before, days):
            raise changed_meanwhile(name)
    else:
        await store.calendars.put_calendar(name, days)


async def delete(store: Store, found: NamedCalendar, if_match: IfMatch | None) -> None:
    """Raises `PreconditionFailed`, or `Conflict` when a job uses the calendar."""
    name = found.name
    if if_match is not None:
        if_match.check(f"calendar {bare(name)!r}", version_of(found))
    deleted = await store.calendars.delete_calendar(name, None if if_match is None else found)
    if deleted is None:
        job = await store.calendars.first_job_with(name)
        raise Conflict(f"the job {bare(job or '')!r} uses the calendar {bare(name)!r}; change the job first")
    if if_match is not None and not deleted:
        raise changed_meanwhile(name)


def changed_meanwhile(name: str) -> PreconditionFailed:
    return PreconditionFailed(f"the calendar {bare(name)!r} was changed or deleted at the same time; GET it again")


def version_of(calendar: NamedCalendar) -> Version:
    return Version(calendar.version, calendar.created_at)


def shown(calendar: NamedCalendar) -> CalendarShown:
    days = calendar.days
    return CalendarShown(
        bare(calendar.name),
        calendar.version,
        days.timezone,
        days.dates,
        days.weekdays,
        calendar.created_at,
        calendar.updated_at,
        calendar.jobs,
    )


def _answer(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
