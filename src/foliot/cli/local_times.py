"""Times without a UTC offset: finds their zone, and shows it to the user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from foliot.errors import Invalid, NotFound
from foliot.sdk.client import Client
from foliot.triggers.zones import zone_named

ZONE_FILES = "zoneinfo/"
LOCAL_TIME, ZONE_NAME = Path("/etc/localtime"), Path("/etc/timezone")
LOCAL = "this machine's time zone"


def local_zone() -> str:
    """The name of this machine's time zone, which its cron uses; UTC if it is unknown."""
    named = os.environ.get("TZ", "").lstrip(":")
    linked = str(LOCAL_TIME.resolve()).partition(ZONE_FILES)[2] if LOCAL_TIME.is_symlink() else ""
    written = ZONE_NAME.read_text(encoding="utf-8").strip() if ZONE_NAME.is_file() else ""
    for name in (named, linked, written):
        try:
            zone_named(name)
        except Invalid:
            continue
        return name
    return "UTC"


def job_zone(client: Client, reference: str) -> tuple[str, str]:
    """The time zone of a recurring job, and whose it is; this machine's if there is no such job."""
    try:
        job = client.get_job(reference).document
    except NotFound:
        return local_zone(), LOCAL
    return str((job.get("schedule") or {}).get("timezone", "UTC")), "the job's time zone"


def has_offset(time: str) -> bool:
    return datetime.fromisoformat(time).tzinfo is not None


def located(option: str, time: str, zone: str, whose: str) -> str:
    """Adds an offset to a time that has none. The time is then read in the zone, and a message says so."""
    moment = datetime.fromisoformat(time)
    if moment.tzinfo is not None:
        return time
    there = zone_named(zone)
    try:
        # A time that the clock skips becomes the one that the clock shows instead.
        found = moment.replace(tzinfo=there).astimezone(UTC).astimezone(there)
    except OverflowError:
        raise click.BadParameter(f"{time!r} is out of range", param_hint=option) from None
    click.echo(f"{option}: {time} is {found.isoformat()} in {zone}, {whose}", err=True)
    return found.isoformat()


def locate_fields(fields: Mapping[str, Any], options: Mapping[str, str], zone: str, whose: str) -> dict[str, Any]:
    """The fields, with an offset for each time that `options` names."""
    return {
        name: located(options[name], value, zone, whose) if name in options and isinstance(value, str) else value
        for name, value in fields.items()
    }


def locate_range(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Filters whose `since` and `until` may be times without an offset. Durations stay as they are."""
    return {
        name: located(f"--{name}", value, local_zone(), LOCAL)
        if name in ("since", "until") and _is_time(value)
        else value
        for name, value in filters.items()
    }


def _is_time(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True
