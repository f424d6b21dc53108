"""Jobs as definitions, and a scheduler that they are handed to: another face of the same API, for code that thinks in
these words.

    scheduler = foliot.JobScheduler()
    scheduler.create_job(foliot.JobDefinition(
        job_id="daily_report", name="Daily report", schedule="0 0 * * *", command="python generate_report.py", dependencies=[],
    ))
    foliot.add_job("send_invoice", datetime(2026, 12, 31, 23, 59, tzinfo=UTC), {"customer_id": 7})

`job_id` is the job's name in Foliot, by which it is found and by which others depend on it.
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

# No cron field begins like a year and a month.
LOOKS_LIKE_A_TIME = re.compile(r"\d{4}-\d{2}")


@dataclass
class JobDefinition:
    job_id: str
    name: str
    schedule: str
    """A cron expression, in UTC unless it begins with `CRON_TZ=` and a zone; a period, as `@every 5m`; or an ISO 8601
    time, which is in the zone of this machine if it has no offset."""
    command: str | Task
    """A command line for the shell, or a task."""
    dependencies: list[str] = field(default_factory=list)
    """The ids of jobs that must have succeeded before."""
    max_retries: int = 3
    timeout_seconds: float = 3600
    priority: int = 0
    """Higher first."""
    metadata: dict[str, Any] | None = None


class JobScheduler:
    """`url` and `token` say where; by default, FOLIOT_URL and FOLIOT_TOKEN do."""

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self._server = Server(url, token)

    def create_job(self, job_def: JobDefinition) -> Handle:
        """Makes the job. Raises `InvalidScheduleError`, or `foliot.errors.Conflict` when there is a job of that id
        already."""
        moment = time_of(job_def.schedule)
        # A recurring job's name is unique by itself; of one that runs once, the id is, for as long as it has not ended.
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
        """Whether `create_job` would take it: a cron expression that fires, or an ISO 8601 time."""
        try:
            time_of(schedule)
        except InvalidScheduleError:
            return False
        return True

    def add_job(
        self, task_id: str, time: datetime | timedelta | str | None = None, payload: Mapping[str, Any] | None = None
    ) -> Handle:
        """Submits a job of a task that runs once: at an instant, so much later, at an ISO 8601 time, or, without a
        time, now."""
        job: dict[str, Any] = {"task": task_id, "payload": dict(payload or {})}
        if isinstance(time, str):
            moment = time_of(time)
            if moment is None:
                raise InvalidScheduleError(
                    f"time: {time!r} is not an ISO 8601 time; a job that recurs is made by create_job", field="time"
                )
            time = moment
        return self._create(job if time is None else job | due(time))

    def close(self) -> None:
        """Lets go of the connection. The next job makes a new one."""
        self._server.close()

    def _create(self, job: Mapping[str, Any]) -> Handle:
        made = self._server.jobs().create_job(job).document
        return Handle(made["id"], server=self._server, is_new=made["created"])


def add_job(
    task_id: str, time: datetime | timedelta | str | None = None, payload: Mapping[str, Any] | None = None
) -> Handle:
    """`JobScheduler().add_job`, on the server that FOLIOT_URL names."""
    return _default.add_job(task_id, time, payload)


_default = JobScheduler()


def time_of(schedule: str) -> datetime | None:
    """The instant that a schedule names; None when it is a cron expression. Raises `InvalidScheduleError` for what is
    neither."""
    try:
        if LOOKS_LIKE_A_TIME.match(schedule.strip()):
            moment = datetime.fromisoformat(schedule.strip())
            return moment.astimezone() if moment.tzinfo is None else moment
        if (
            read_notation(schedule).every is None
            and parse_cron(schedule).next_after(to_instant(SystemClock().now())) is None
        ):
            raise Invalid("it never fires again: its years are past")
    except (Invalid, ValueError, OverflowError, AttributeError) as error:
        raise InvalidScheduleError(f"schedule: {str(schedule)[:100]!r}: {error}", field="schedule") from None
    return None
