"""`/v1/calendars`: named days on which the jobs that refer to them do not fire."""

from __future__ import annotations

from datetime import date, datetime

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.access import GuardedRoute, Within, requires
from foliot.api.bodies import read_json
from foliot.api.openapi import described
from foliot.errors import Conflict, Invalid, NotFound
from foliot.model.access import Permission
from foliot.model.asked import Name
from foliot.model.calendar import CalendarDays, NamedCalendar, Weekday, calendar_of
from foliot.model.namespace import Namespace, bare
from foliot.store.store import Store

days_decoder = msgspec.json.Decoder(CalendarDays)


class CalendarShown(msgspec.Struct, frozen=True):
    name: str
    version: int
    timezone: str
    dates: tuple[date, ...]
    weekdays: tuple[Weekday, ...]
    created_at: datetime
    updated_at: datetime


def calendars_router(*, store: Store, body_max_bytes: int) -> APIRouter:
    router = APIRouter(tags=["calendars"], route_class=GuardedRoute)

    @router.get("/v1/calendars")
    @requires(Permission.VIEW)
    async def list_calendars(namespace: Within) -> Response:
        """All calendars, by name."""
        found = await store.calendars.list_calendars(namespace)
        return _answer({"items": [shown(calendar) for calendar in found]})

    @router.get("/v1/calendars/{name}", openapi_extra=described(200, CalendarShown, problems=(404, 503)))
    @requires(Permission.VIEW)
    async def get_calendar(name: str, namespace: Within) -> Response:
        return _answer(shown(await find(namespace, name)))

    @router.put("/v1/calendars/{name}", openapi_extra=described(200, CalendarShown, body=CalendarDays, problems=(422, 503)))
    @requires(Permission.OPERATE)
    async def put_calendar(name: str, request: Request, namespace: Within) -> Response:
        """Makes a calendar, or changes it for every job that refers to it: from their next tick on."""
        days = await read_json(request, days_decoder, max_bytes=body_max_bytes)
        try:
            msgspec.convert(name, Name)
        except msgspec.ValidationError:
            raise Invalid("name: letters, digits and _ . : - only, 200 at most", field="name") from None
        calendar_of(days)
        await store.calendars.put_calendar(namespace.qualified(name), days)
        return _answer(shown(await find(namespace, name)))

    @router.delete("/v1/calendars/{name}", status_code=204)
    @requires(Permission.OPERATE)
    async def delete_calendar(name: str, namespace: Within) -> Response:
        """Deletes a calendar that no job refers to."""
        await find(namespace, name)
        if await store.calendars.delete_calendar(namespace.qualified(name)) is None:
            job = await store.calendars.first_job_with(namespace.qualified(name))
            raise Conflict(f"the job {bare(job or '')!r} refers to the calendar {name!r}: change it first")
        return Response(status_code=204)

    async def find(namespace: Namespace, name: str) -> NamedCalendar:
        found = None if "\0" in name else await store.calendars.get_calendar(namespace.qualified(name))
        if found is None:
            raise NotFound(f"there is no calendar {name!r}")
        return found

    return router


def shown(calendar: NamedCalendar) -> CalendarShown:
    days = calendar.days
    return CalendarShown(
        bare(calendar.name), calendar.version, days.timezone, days.dates, days.weekdays, calendar.created_at, calendar.updated_at
    )


def _answer(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
