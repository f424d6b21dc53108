"""The calendar that a recurring job names."""

from __future__ import annotations

from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.model.calendar import NamedCalendar
from foliot.model.namespace import Namespace, bare
from foliot.store.store import Store


async def find_calendar(store: Store, namespace: Namespace, name: str | None) -> NamedCalendar | None:
    """None when no calendar is named. Raises `Invalid` for an unknown name."""
    if name is None:
        return None
    calendar = await store.calendars.get_calendar(namespace.qualified(name))
    if calendar is None:
        hint = did_you_mean(name, [bare(known.name) for known in await store.calendars.list_calendars(namespace)])
        raise Invalid(f"calendar: there is no calendar named {name!r}{hint}", field="calendar")
    return calendar
