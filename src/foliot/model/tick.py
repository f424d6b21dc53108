"""The tick of a schedule that a run is for: as it is stored among the options of the run, and as tasks see it.

The scheduler writes it when the tick becomes a run. Retries, reruns and replays keep it; the steps of a workflow and
the items of a map inherit it. So a run knows its tick however late it starts, and however its job has changed since.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from foliot.model.namespace import bare
from foliot.triggers.base import to_datetime
from foliot.triggers.zones import zone_named

Origin = Literal["schedule", "backfill", "trigger"]


class StoredTick(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Instants in seconds since the epoch. `foliot.with_tick` writes it."""

    at: float
    job: str
    """The name of the job, as it is stored."""
    job_id: UUID
    previous: float | None = None
    next: float | None = None
    zone: str = "UTC"
    origin: Origin = "schedule"


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick of a recurring job. Its times are in the time zone of the job."""

    at: datetime
    previous: datetime | None
    """The tick before it."""
    next: datetime | None
    """The tick after it."""
    timezone: str
    job: str
    job_id: UUID
    origin: Origin
    """`schedule`: it fired. `backfill`: it was run afterwards. `trigger`: it is the time at which somebody triggered
    the job by hand, between two ticks."""

    @property
    def is_backfill(self) -> bool:
        return self.origin == "backfill"


def tick_from(stored: StoredTick) -> Tick:
    """The tick as tasks see it. Raises `Invalid` for a time zone that this machine does not know."""
    zone = zone_named(stored.zone)

    def at(instant: float) -> datetime:
        return to_datetime(instant).astimezone(zone)

    return Tick(
        at(stored.at),
        None if stored.previous is None else at(stored.previous),
        None if stored.next is None else at(stored.next),
        stored.zone,
        bare(stored.job),
        stored.job_id,
        stored.origin,
    )


def tick_of(options: Any) -> StoredTick | None:
    """The tick among the decoded options of a run."""
    stored = options.get("tick") if isinstance(options, dict) else None
    return None if stored is None else msgspec.convert(stored, StoredTick)
