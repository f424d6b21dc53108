"""Counts the endings of tagged jobs in the database, where `/metrics` of any server reads them.

Unlike an export to another system, the counts and the place advance in one statement: an ending is counted once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, ExportDropped
from foliot.exporters.exporter import HOLD_SECONDS, LEASE_SECONDS, LOOK_SECONDS, Exporter
from foliot.model.histogram import BOUNDS, histogram_of
from foliot.model.states import RunState
from foliot.store.exports import FIRST_ID
from foliot.store.job_series import JobEnding, JobSeries
from foliot.store.store import Store

JOBS_MAX = 100
ENDINGS = 5_000
# Longer than a month, so that the series of a monthly job stay.
KEEP = timedelta(days=40)
FORGET_SECONDS = 3600.0


class JobSeriesExporter(Exporter[JobEnding]):
    export_name = "job_series"

    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(store=store, clock=clock, events=events)
        self._tag = config.job_metrics_tag
        self._forgot_at: float | None = None

    async def run_once(self) -> float:
        began_at = self.clock.monotonic()
        horizon = await self._store.run_events.ending_horizon(HOLD_SECONDS)
        place = await self._store.exports.take_export(self.export_name, self._owner, LEASE_SECONDS, horizon)
        if place is None:
            return LOOK_SECONDS
        now = self.clock.monotonic()
        if self._forgot_at is None or now - self._forgot_at >= FORGET_SECONDS:
            self._forgot_at = now
            await self._store.job_series.forget_job_series(horizon - KEEP)
        endings = await self._store.job_series.list_tagged_endings(place, horizon, ENDINGS, self._tag)
        is_behind = bool(endings) and endings[-1].looked_at == ENDINGS
        reached = endings[-1].place if is_behind else max(place, (horizon, FIRST_ID))
        dropped = await self._store.job_series.add_to_job_series(
            self._owner, place, reached, counted(endings), JOBS_MAX
        )
        if dropped:
            self.events.emit(ExportDropped(self.export_name, dropped, f"{JOBS_MAX} jobs have series already"))
        return self.pause(began_at, horizon - reached[0]) if is_behind else LOOK_SECONDS


def counted(endings: Iterable[JobEnding]) -> list[JobSeries]:
    """Sums up the endings of each tagged job. Pure."""
    by_job: defaultdict[str, list[JobEnding]] = defaultdict(list)
    for ending in endings:
        if ending.is_tagged:
            by_job[ending.job].append(ending)
    return [_of_job(job, found) for job, found in by_job.items()]


def _of_job(job: str, endings: Sequence[JobEnding]) -> JobSeries:
    durations = histogram_of(ending.seconds for ending in endings if ending.seconds is not None)
    states = [ending.state for ending in endings]
    return JobSeries(
        job=job,
        succeeded=states.count(RunState.SUCCEEDED),
        failed=states.count(RunState.FAILED),
        cancelled=states.count(RunState.CANCELLED),
        skipped=states.count(RunState.SKIPPED),
        seconds=durations.seconds,
        buckets=durations.counts or (0,) * (len(BOUNDS) + 1),
        succeeded_at=max((ending.at for ending in endings if ending.state is RunState.SUCCEEDED), default=None),
        ended_at=max(ending.at for ending in endings),
    )
