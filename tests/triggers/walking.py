"""Helpers of the cron tests: the instants at which a trigger fires."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from foliot.triggers.cron import CronTrigger, parse_cron
from foliot.triggers.dst import DstFold, DstGap
from tests.triggers import oracle
from tests.triggers.oracle import instant_of

GAPS: tuple[DstGap, ...] = ("shift", "skip")
FOLDS: tuple[DstFold, ...] = ("first", "last", "both")
UTC_ZONE = ZoneInfo("UTC")
NEW_YORK = ZoneInfo("America/New_York")
FIRST, LAST = instant_of(2024), instant_of(2032)


def walk(trigger: CronTrigger, start: int, end: int) -> Iterator[int]:
    """The instants of [start, end)."""
    found = trigger.next_after(start - 1)
    while found is not None and found < end:
        yield found
        found = trigger.next_after(found)


def times_of(
    expression: str, zone: str, day: date, *, days: int = 1, dst_gap: DstGap = "shift", dst_fold: DstFold = "first"
) -> list[str]:
    """The local times, with their offsets, at which an expression fires on a day."""
    local = ZoneInfo(zone)
    start = oracle.instant_at(datetime.combine(day, time()), local)
    end = oracle.instant_at(datetime.combine(day + timedelta(days=days), time()), local)
    trigger = parse_cron(expression, local, dst_gap=dst_gap, dst_fold=dst_fold)
    return [datetime.fromtimestamp(instant, local).strftime("%H:%M%z") for instant in walk(trigger, start, end)]
