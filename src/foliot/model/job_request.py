"""A request for a job: all its fields, and the run or the recurring job that it becomes."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.errors import Invalid
from foliot.model.calendar import NamedCalendar
from foliot.model.catchup import Catchup
from foliot.model.field_rules import Rule, all_of, any_of, field_is, given, not_given
from foliot.model.idempotency import IdempotencyKey
from foliot.model.ids import shard_of
from foliot.model.job import RecurringJob, check_name, scheduled_from
from foliot.model.map import MAP_TASK
from foliot.model.namespace import Namespace
from foliot.model.overlap import Overlap
from foliot.model.payloads import LEAVES, WORKFLOW_TASK, pointing
from foliot.model.rendering import check_templates
from foliot.model.run import NewRun
from foliot.model.run_request import SAYS_TASK, Name, RunRequest
from foliot.model.schedule import MAX_CATCHUP_WINDOW_SECONDS, Expressions, Schedule, Times, from_cron, timetable_of
from foliot.model.templates import Names
from foliot.model.text_patterns import CRON, DURATION, RECURRING_NAME, TIME, ZONE
from foliot.model.tracing import Traceparent, with_traceparent
from foliot.model.unique import Unique
from foliot.model.workflow import check_payload
from foliot.triggers.base import to_instant
from foliot.triggers.calendar import OnExcluded
from foliot.triggers.cron_fields import CronError
from foliot.triggers.dst import DstFold, DstGap
from foliot.triggers.durations import parse_duration

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
# The fields of a schedule that a request names as the schedule does.
SCHEDULE_FIELDS = (
    "cron", "every", "times", "timezone", "dst_gap", "dst_fold", "start_at", "end_at", "calendar", "on_excluded",
    "jitter_seconds",
    "overlap", "catchup", "catchup_max",
)  # fmt: skip
CHECKED = frozenset({*LEAVES, MAP_TASK})
"""Tasks whose payloads are looked into when a job is made."""
INSTANTS = ("delay_seconds", "schedule_time", "schedule")
ONLY_ONE_OFF = ("unique", "expires_at", "traceparent")
ONLY_RECURRING = (*SCHEDULE_FIELDS[3:], "catchup_window", "max_runs")

CRON_DESCRIPTION = (
    "A cron expression: makes the job recurring. Several: a list. Five fields, six with the second first, seven with "
    "a year last; `CRON_TZ=Europe/Berlin` before it is a time zone, `@every 5m` is `every`."
)

References = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...], Meta(min_length=1, max_length=1000)
]


ONCE = not_given("cron", "every", "times", *ONLY_RECURRING)
AGAIN = all_of(not_given("delay_seconds", "schedule_time", "signal", *ONLY_ONE_OFF), field_is("name", RECURRING_NAME))
# When it is due, each way with what can be said along with it. A job that depends on others is due once or again and
# again, as those are.
SAYS_WHEN = any_of(
    all_of(ONCE, not_given("delay_seconds", "schedule_time", "schedule")),
    all_of(ONCE, given("delay_seconds"), not_given("signal", "schedule_time", "schedule")),
    all_of(ONCE, given("schedule_time"), not_given("signal", "delay_seconds", "schedule")),
    all_of(
        ONCE,
        field_is("schedule", {"type": "string", **TIME}, required=True),
        not_given("signal", "delay_seconds", "schedule_time"),
    ),
    all_of(AGAIN, given("cron"), not_given("every", "schedule")),
    all_of(AGAIN, given("every"), not_given("cron", "schedule")),
    all_of(AGAIN, given("times"), not_given("cron", "every", "schedule")),
    all_of(
        AGAIN,
        field_is("schedule", {"type": "string", "not": {"pattern": r"^\s*[0-9]{4}-[0-9]{2}"}}, required=True),
        not_given("cron", "every"),
    ),
    given("dependencies"),
)


class JobRequest(RunRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job to create. `job_type` and `max_retries` are aliases of `task` and `retries`."""

    schedule_time: (
        Annotated[datetime, Meta(tz=True, description="ISO 8601 with an offset. In the past: now.")] | None
    ) = None
    cron: (
        Annotated[str, Meta(max_length=500, extra_json_schema=CRON, description=CRON_DESCRIPTION)] | Expressions | None
    ) = None
    every: (
        Annotated[
            str,
            Meta(
                max_length=100,
                extra_json_schema=DURATION,
                description="A period such as `90s` or `5m`: makes the job recurring.",
            ),
        ]
        | None
    ) = None
    times: (
        Annotated[Times, Meta(description="Single instants to fire at, alone or in addition to cron or every.")] | None
    ) = None
    schedule: Annotated[str, Meta(max_length=500, description="A cron expression or an ISO 8601 time.")] | None = None
    timezone: (
        Annotated[str, Meta(max_length=100, extra_json_schema=ZONE, description="IANA name; UTC by default.")]
        | UnsetType
    ) = UNSET
    dst_gap: DstGap | UnsetType = UNSET
    dst_fold: DstFold | UnsetType = UNSET
    start_at: Annotated[datetime, Meta(tz=True)] | None = None
    end_at: Annotated[datetime, Meta(tz=True)] | None = None
    calendar: Annotated[Name, Meta(description="The name of an exclusion calendar.")] | None = None
    on_excluded: (
        Annotated[
            OnExcluded,
            Meta(description="Whether to skip a tick on an excluded day, or move it to the next allowed day."),
        ]
        | UnsetType
    ) = UNSET
    jitter_seconds: Annotated[int, Meta(ge=0, le=86_400)] | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    catchup: Catchup | UnsetType = UNSET
    catchup_window: (
        Annotated[
            str,
            Meta(
                max_length=100,
                extra_json_schema=DURATION,
                description="Missed ticks older than this are not caught up.",
            ),
        ]
        | UnsetType
    ) = UNSET
    catchup_max: Annotated[int, Meta(ge=1, le=10_000)] | UnsetType = UNSET
    max_runs: Annotated[int, Meta(ge=1, le=9_007_199_254_740_991)] | None = None
    dependencies: Annotated[References, Meta(description="Names or ids of the jobs to wait for.")] | None = None
    unique: Unique | None = None
    expires_at: (
        Annotated[datetime, Meta(tz=True, description="A run that has not started by then is skipped.")] | None
    ) = None
    idempotency_key: IdempotencyKey | None = None
    traceparent: (
        Annotated[
            Traceparent,
            Meta(description="The trace and span that submit the job, as in the header `traceparent` of W3C."),
        ]
        | None
    ) = None

    RULES: ClassVar[tuple[Rule, ...]] = (SAYS_TASK, SAYS_WHEN)

    @property
    def is_recurring(self) -> bool:
        if self.cron is not None or self.every is not None or self.times is not None:
            return True
        return self.schedule is not None and not _is_time(self.schedule)

    def new_job(
        self,
        job_id: UUID,
        *,
        namespace: Namespace,
        queue: str,
        now: datetime,
        calendar: NamedCalendar | None,
        after: tuple[str, ...] | None = None,
    ) -> RecurringJob:
        """The recurring job, with its names as they are stored; `after` names the jobs that it depends on.

        Raises `Invalid` for a schedule that never fires.
        """
        if self.delay_seconds is not None or self.schedule_time is not None:
            field = "delay_seconds" if self.delay_seconds is not None else "schedule_time"
            raise Invalid(f"{field}: a recurring job has none; use start_at", field=field)
        if misplaced := [name for name in ONLY_ONE_OFF if getattr(self, name) is not None]:
            raise Invalid(f"{misplaced[0]}: a recurring job has none; see overlap and end_at", field=misplaced[0])
        if self.signal is not None:
            raise Invalid("signal: a recurring job has none; make it a workflow with a step that waits", field="signal")
        if self.name is not None:
            check_name(self.name)
        self._check_payload()
        job = RecurringJob(
            id=job_id,
            name=namespace.qualified(self.name or f"{self.task_name()[:187]}-{job_id.hex[-12:]}"),
            task=namespace.qualified(self.task_name()),
            queue=namespace.qualified(self.queue or queue),
            priority=self.priority,
            schedule=self._schedule(namespace, after),
            payload=self.payload_tree(),
            options=msgspec.to_builtins(self.run_options(namespace)) or None,
            version=1,
            runs_left=self.max_runs,
            next_at=None,
            fire_at=None,
            paused_at=None,
            paused_until=None,
            paused_reason=None,
            created_at=now,
            updated_at=now,
            shard=shard_of(job_id),
            calendar=calendar.days if calendar else None,
            calendar_version=calendar.version if calendar else None,
        )
        planned = planned_from(job, now, field="cron" if self.schedule is None else "schedule")
        if planned.schedule.has_ticks and planned.timetable.fires.next_after(to_instant(now)) is None:
            field = self._why_never(planned.schedule, now)
            raise Invalid(f"{field}: the job would never fire", field=field)
        return planned

    def _check_payload(self) -> None:
        """Raises `Invalid` for a payload that a built-in task can't use. `submission/workflow_definitions.py` checks
        workflows."""
        task, payload = self.task_name(), self.payload_tree()
        if task == WORKFLOW_TASK:
            check_templates(task, None, self.templates, self.template_names)
            return
        if task not in CHECKED and self.templates is None and not self.is_recurring:
            return
        unknown: Collection[str] = pointing(payload) if self.dependencies is not None else ()
        try:
            check_payload(task, payload, unknown=unknown, templates=self.templates, names=self.template_names)
        except Invalid as error:
            raise self.as_asked(error) from None

    @property
    def template_names(self) -> Names:
        """The names that placeholders may use. A job that depends on others is recurring if they are."""
        if self.dependencies is not None:
            return Names()
        return Names(has_tick=self.is_recurring, steps=())

    def _why_never(self, schedule: Schedule, now: datetime) -> str:
        if self.times is None and cron_is_over(schedule, now):
            return "cron" if self.schedule is None else "schedule"
        if self.end_at is not None:
            return "end_at"
        if self.times is not None and max(self.times) <= now:
            return "times"
        return "calendar" if self.calendar is not None else "start_at"

    def _schedule(self, namespace: Namespace, after: tuple[str, ...] | None) -> Schedule:
        given = [name for name in ("cron", "every", "schedule") if getattr(self, name) is not None]
        if len(given) > 1:
            raise Invalid(f"{given[1]}: give either {given[0]} or {given[1]}", field=given[1])
        given_fields = {
            name: getattr(self, name) for name in SCHEDULE_FIELDS if getattr(self, name) not in (None, UNSET)
        }
        check_times(self.times)
        timezone = None if self.timezone is UNSET else self.timezone
        if self.schedule is not None:
            given_fields |= from_cron(self.schedule, timezone, field="schedule")
        if self.cron is not None:
            given_fields |= from_cron(self.cron, timezone)
        if self.calendar is not None:
            given_fields["calendar"] = namespace.qualified(self.calendar)
        if self.catchup_window is not UNSET:
            given_fields["catchup_window_seconds"] = self.catchup_window_seconds
        if after and given_fields.get("overlap", "skip") not in ("skip", "allow_all"):
            raise Invalid("overlap: a job with dependencies has skip or allow_all", field="overlap")
        return Schedule(**given_fields, after=after)

    @property
    def catchup_window_seconds(self) -> int:
        window = parse_duration(str(self.catchup_window), field="catchup_window")
        if window > MAX_CATCHUP_WINDOW_SECONDS:
            raise Invalid("catchup_window: must be a year (365d) at most", field="catchup_window")
        return window

    def new_run(self, run_id: UUID, *, namespace: Namespace, queue: str) -> NewRun:
        """The run this job is, with its names as they are stored. Raises `Invalid` for fields that contradict each
        other."""
        given = [name for name in INSTANTS if getattr(self, name) is not None] if instants(self) != NO_INSTANT else []
        if len(given) > 1:
            raise Invalid(f"{given[1]}: give either {given[0]} or {given[1]}", field=given[1])
        if only_recurring(self) != NOTHING_RECURRING and (
            misplaced := [name for name in ONLY_RECURRING if getattr(self, name) not in (None, UNSET)]
        ):
            raise Invalid(
                f"{misplaced[0]}: only a recurring job has one; give cron, every or times too", field=misplaced[0]
            )
        if given and self.signal is not None:
            raise Invalid("signal: a job that waits for a signal has no start time; use a workflow", field="signal")
        due_at = self.schedule_time if self.schedule is None else _time_of(self.schedule)
        if due_at is not None and due_at >= LATEST:
            raise Invalid(f"{given[0]}: must be before the year {LATEST.year}", field=given[0])
        if self.expires_at is not None and not (due_at or EARLIEST) < self.expires_at < LATEST:
            raise Invalid(
                f"expires_at: must be after the job is due and before the year {LATEST.year}", field="expires_at"
            )
        if self.task is None or self.templates is not None or self.task in CHECKED:
            self._check_payload()
        return NewRun(
            id=run_id,
            task=namespace.qualified(self.task_name()),
            queue=namespace.qualified(self.queue or queue),
            name=self.name,
            priority=self.priority,
            # The past is now, however far back; the first day of the first year has no instant in UTC east of
            # Greenwich.
            due_at=due_at and max(due_at, EARLIEST),
            delay_seconds=self.delay_seconds,
            payload=self.payload_text(),
            options=with_traceparent(self.options_text(namespace), self.traceparent),
            unique_key=namespace.qualified_key(self.unique.key) if self.unique else None,
            on_conflict=self.unique.on_conflict if self.unique else "return_existing",
            expires_at=self.expires_at,
        )


def planned_from(job: RecurringJob, now: datetime, *, field: str = "cron") -> RecurringJob:
    """`scheduled_from`, but the field at fault is that of the request; that of the expression stays in the words."""
    try:
        return scheduled_from(job, now)
    except CronError as error:
        raise CronError(f"{field}: {error.detail}", field=field, start=error.start, end=error.end) from None


def check_times(times: tuple[datetime, ...] | None) -> None:
    """An instant beyond the last one that counts would be dropped without a word."""
    if times is not None and max(times) >= LATEST:
        raise Invalid(f"times: each must be before the year {LATEST.year}", field="times")


def cron_is_over(schedule: Schedule, now: datetime) -> bool:
    """Its expressions name years that are past."""
    alone = Schedule(cron=schedule.cron, timezone=schedule.timezone)
    return schedule.cron is not None and timetable_of(alone, "", 0, None).ticks.next_after(to_instant(now)) is None


def _is_time(text: str) -> bool:
    """`schedule` holds a cron expression or an ISO time; no cron field begins like a year and a month."""
    return re.match(r"\d{4}-\d{2}", text.strip()) is not None


def _time_of(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Invalid(f"schedule: {text!r} is not an ISO 8601 time", field="schedule") from None
    if moment.tzinfo is None:
        raise Invalid(f"schedule: {text!r} has no offset; write it like 2026-12-31T23:59:59Z", field="schedule")
    return moment


# Reads all of these at once, because one by one would take a third of the time that a run takes.
only_recurring = attrgetter(*ONLY_RECURRING)
NOTHING_RECURRING = only_recurring(JobRequest())
instants = attrgetter(*INSTANTS)
NO_INSTANT = instants(JobRequest())
