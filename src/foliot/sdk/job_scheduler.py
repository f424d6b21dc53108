"""`JobScheduler`: an alternative API with job definitions.

    scheduler = foliot.JobScheduler()
    scheduler.create_job(foliot.JobDefinition(
        job_id="daily_report", name="Daily report", schedule="0 0 * * *", command="python generate_report.py",
    ))
    foliot.add_job("send_invoice", datetime(2026, 12, 31, 23, 59, tzinfo=UTC), {"customer_id": 7})

`job_id` is the job's name in Foliot, which identifies it, also in the dependencies of other jobs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from foliot.clock import SystemClock
from foliot.errors import Invalid, InvalidScheduleError
from foliot.sdk.app import Task
from foliot.sdk.default_connection import Server
from foliot.sdk.handle import Handle
from foliot.sdk.task_submission import due
from foliot.triggers.base import to_instant
from foliot.triggers.cron import parse_cron
from foliot.triggers.notation import read_notation

# A year and a month; no cron expression begins like this.
LOOKS_LIKE_A_TIME = re.compile(r"\d{4}-\d{2}")


@dataclass
class JobDefinition:
    """The definition of a job for `JobScheduler.create_job`."""

    job_id: str
    name: str
    schedule: str
    """A cron expression (UTC, or the zone in its `CRON_TZ=` prefix), an interval such as `@every 5m`, or an ISO 8601
    time. A time without an offset is in this machine's zone."""
    command: str | Task
    """A shell command or a task."""
    dependencies: list[str] = field(default_factory=list)
    """Ids of jobs that must succeed first."""
    max_retries: int = 3
    timeout_seconds: float = 3600
    priority: int = 0
    """Jobs with a higher priority start first."""
    metadata: dict[str, Any] | None = None


class JobScheduler:
    """Creates jobs on a server. `url` and `token` default to FOLIOT_URL and FOLIOT_TOKEN."""

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self._server = Server(url, token)

    def create_job(self, job_def: JobDefinition) -> Handle:
        """Creates a job.

        Raises:
            InvalidScheduleError: The schedule is invalid.
            foliot.errors.Conflict: A job with this id already exists.
        """
        moment = time_of(job_def.schedule)
        # The name of a recurring job is unique. A one-off job needs a unique key, which holds until the job ends.
        once = {"unique": {"key": job_def.job_id, "on_conflict": "reject"}}
        when = {"cron": job_def.schedule} if moment is None else {"schedule_time": moment.isoformat(), **once}
        what = {"task": job_def.command.name} if isinstance(job_def.command, Task) else {"command": job_def.command}
        job: dict[str, Any] = {
            "name": job_def.job_id,
            "max_retries": job_def.max_retries,
            "timeout_seconds": job_def.timeout_seconds,
            "priority": job_def.priority,
            "metadata": {"name": job_def.name, **(job_def.metadata or {})},
        }
        if job_def.dependencies:
            job["dependencies"] = list(job_def.dependencies)
        return self._create(job | what | when)

    def validate_cron(self, schedule: str) -> bool:
        """Returns True if `create_job` accepts the schedule."""
        try:
            time_of(schedule)
        except InvalidScheduleError:
            return False
        return True

    def add_job(
        self, task_id: str, time: datetime | timedelta | str | None = None, payload: Mapping[str, Any] | None = None
    ) -> Handle:
        """Submits a one-off job of a task.

        `time` is a datetime, a delay, or an ISO 8601 time. Without it, the job starts now.
        """
        job: dict[str, Any] = {"task": task_id, "payload": dict(payload or {})}
        if isinstance(time, str):
            moment = time_of(time)
            if moment is None:
                raise InvalidScheduleError(
                    f"time: {time!r} is not an ISO 8601 time; use create_job for a recurring job", field="time"
                )
            time = moment
        return self._create(job if time is None else job | due(time))

    def close(self) -> None:
        """Closes the connection. The next job opens a new one."""
        self._server.close()

    def _create(self, job: Mapping[str, Any]) -> Handle:
        made = self._server.jobs().create_job(job).document
        return Handle(made["id"], server=self._server, is_new=made["created"])


def add_job(
    task_id: str, time: datetime | timedelta | str | None = None, payload: Mapping[str, Any] | None = None
) -> Handle:
    """Submits a one-off job to the server at FOLIOT_URL. See `JobScheduler.add_job`."""
    return _default.add_job(task_id, time, payload)


_default = JobScheduler()


def time_of(schedule: str) -> datetime | None:
    """The time that a schedule names; None for a cron expression. Raises `InvalidScheduleError` if it is neither."""
    try:
        if LOOKS_LIKE_A_TIME.match(schedule.strip()):
            moment = datetime.fromisoformat(schedule.strip())
            return moment.astimezone() if moment.tzinfo is None else moment
        if (
            read_notation(schedule).every is None
            and parse_cron(schedule).next_after(to_instant(SystemClock().now())) is None
        ):
            raise Invalid("the expression never fires again, because its years have passed")
    except (Invalid, ValueError, OverflowError, AttributeError) as error:
        raise InvalidScheduleError(f"schedule: {str(schedule)[:100]!r}: {error}", field="schedule") from None
    return None
