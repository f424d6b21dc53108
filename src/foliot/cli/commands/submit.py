"""`foliot submit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import click

from foliot.cli.batch import submit_batch
from foliot.cli.commands.jobs import describe
from foliot.cli.local_times import LOCAL, local_zone, locate_fields
from foliot.cli.name_completion import queue_names
from foliot.cli.options import (
    Choice,
    cause,
    concurrency,
    instant,
    json_option,
    json_value,
    notification,
    rate,
    seconds,
    unique,
)
from foliot.cli.tables import at, clean
from foliot.cli.waiting import situation, wait_for_job
from foliot.clock import SystemClock
from foliot.model.catchup import Catchup
from foliot.model.guarantee import Guarantee
from foliot.model.overlap import Overlap
from foliot.model.unique import OnConflict
from foliot.sdk.client import Client
from foliot.sdk.http_protocol import Answer
from foliot.triggers.calendar import OnExcluded
from foliot.triggers.dst import DstFold, DstGap

ONLY_RECURRING = {
    "timezone": "--timezone",
    "dst_gap": "--dst-gap",
    "dst_fold": "--dst-fold",
    "start_at": "--start-at",
    "end_at": "--end-at",
    "max_runs": "--max-runs",
    "jitter_seconds": "--jitter",
    "overlap": "--overlap",
    "catchup": "--catchup",
    "catchup_window": "--catchup-window",
    "catchup_max": "--catchup-max",
    "calendar": "--calendar",
    "on_excluded": "--on-excluded",
}

OF_THE_RUN = {"schedule_time": "--at", "expires_at": "--expires-at"}
OF_THE_SCHEDULE = {"start_at": "--start-at", "end_at": "--end-at"}
AT_LIMIT = ("wait", "drop_new", "cancel_old")

# Each parameter has the name of the API field that it fills.
FIELDS = (
    click.option("--command", "command", metavar="LINE", help="Run this shell command instead of a TASK."),
    click.option(
        "--payload", type=json_value, metavar="JSON", help="Payload of the task: JSON, @FILE, or - for standard input."
    ),
    click.option("--name", help="Name of the job."),
    click.option(
        "--delay", "delay_seconds", type=seconds, metavar="DURATION", help="Start after this delay: 90, 5m, 1h30m."
    ),
    click.option("--at", "schedule_time", type=instant, metavar="ISO", help="Start at this time."),
    click.option(
        "--cron",
        metavar="EXPR",
        multiple=True,
        help="Cron expression of a recurring job; repeat to combine several.",
    ),
    click.option("--every", metavar="DURATION", help="Interval of a recurring job: 90s, 5m, 1h30m."),
    click.option("--calendar", help="Calendar whose excluded days have no ticks."),
    click.option(
        "--on-excluded",
        type=Choice(get_args(OnExcluded)),
        help="Skip ticks on excluded days, or move them to the next allowed day.  [default: skip]",
    ),
    click.option(
        "--timezone", metavar="ZONE", help="IANA time zone of the schedule, such as Europe/Berlin.  [default: UTC]"
    ),
    click.option(
        "--dst-gap",
        type=Choice(get_args(DstGap)),
        help="How to treat times that a clock change skips.  [default: shift]",
    ),
    click.option(
        "--dst-fold",
        type=Choice(get_args(DstFold)),
        help="How to treat times that a clock change repeats.  [default: first]",
    ),
    click.option("--start-at", type=instant, metavar="ISO", help="No ticks before this time."),
    click.option("--end-at", type=instant, metavar="ISO", help="No ticks after this time."),
    click.option("--max-runs", type=int, help="End the job after this number of runs."),
    click.option(
        "--jitter",
        "jitter_seconds",
        type=seconds,
        metavar="DURATION",
        help="Delay each tick by a random time up to this.",
    ),
    click.option(
        "--overlap",
        type=Choice(get_args(Overlap)),
        help="The overlap policy, if the previous run has not ended.  [default: skip]",
    ),
    click.option(
        "--catchup", type=Choice(get_args(Catchup)), help="Which ticks to run after downtime.  [default: latest]"
    ),
    click.option("--catchup-window", metavar="DURATION", help="Maximum age of a tick to catch up.  [default: 1d]"),
    click.option("--catchup-max", type=int, help="Maximum number of ticks to catch up.  [default: 100]"),
    click.option("--queue", help="Queue of the job.", shell_complete=queue_names),
    click.option("--priority", type=int, help="Jobs with a higher priority start first.  [default: 0]"),
    click.option("--retries", type=int, help="Maximum number of retries.  [default: 3]"),
    click.option(
        "--backoff",
        type=json_value,
        metavar="JSON",
        help='Delays between attempts, such as {"kind": "fixed", "base_seconds": 5}.',
    ),
    click.option(
        "--timeout",
        "timeout_seconds",
        type=seconds,
        metavar="DURATION",
        help="Timeout of each attempt.  [default: 1h]",
    ),
    click.option(
        "--retry-on",
        type=cause,
        multiple=True,
        metavar="ERROR",
        help="Retry only this error name or exit code; repeatable.",
    ),
    click.option(
        "--never-on",
        type=cause,
        multiple=True,
        metavar="ERROR",
        help="Never retry this error name or exit code; repeatable.",
    ),
    click.option(
        "--guarantee",
        type=Choice(get_args(Guarantee)),
        help="Whether to repeat an attempt whose worker is lost.  [default: at_least_once]",
    ),
    click.option("--expires-at", type=instant, metavar="ISO", help="Do not start the job after this time."),
    click.option("--unique", type=unique, metavar="KEY", help="Allow only one unfinished job with this key."),
    click.option(
        "--on-conflict",
        type=Choice(get_args(OnConflict)),
        help="The answer if --unique finds such a job.  [default: return_existing]",
    ),
    click.option("--idempotency-key", metavar="KEY", help="Submitting again with this key creates no second job."),
    click.option(
        "--concurrency",
        type=concurrency,
        metavar="KEY=LIMIT",
        help="Maximum number of jobs with this key that run at once.",
    ),
    click.option(
        "--at-limit", type=Choice(AT_LIMIT), help="The behavior when --concurrency is reached.  [default: wait]"
    ),
    click.option(
        "--rate",
        type=rate,
        metavar="KEY=LIMIT/PERIOD",
        help="Maximum number of jobs with this key that start per period: mail=100/1m.",
    ),
    click.option("--tag", "tags", metavar="TAG", multiple=True, help="Tag of the job and its runs; repeatable."),
    click.option(
        "--notify",
        type=notification,
        metavar="URL",
        multiple=True,
        help="URL that gets a POST when the job fails for good; or JSON, see the docs. Repeatable.",
    ),
    click.option(
        "--templates/--no-templates",
        "templates",
        default=None,
        help="Render placeholders such as {{ scheduled_for | date }} in the payload.  [default: only in commands and "
        "in payloads of shell and http]",
    ),
    click.option("--fairness-key", metavar="KEY", help="Share workers fairly between jobs with different keys."),
)


def field_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(FIELDS):
        function = option(function)
    return function


@click.command()
@click.argument("task", required=False)
@field_options
@click.option(
    "--batch",
    metavar="FILE",
    help="Submit one job per line of the file, or of - for standard input. Each line is a JSON payload.",
)
@click.option(
    "--wait", "is_waiting", is_flag=True, help="Wait for the job to end; exit with 0 if it completed, else with 1."
)
@json_option
def command(batch: str | None, is_waiting: bool, as_json: bool, **fields: Any) -> None:
    """Submit a job and print its id.

    TASK is the name of a task. A job with --cron or --every is recurring. Any other job runs once: now, after --delay,
    or --at a time.
    """
    job = {name: value for name, value in fields.items() if value not in (None, ())}
    if len(fields["cron"]) == 1:
        job["cron"] = fields["cron"][0]
    _join(job, "unique", "on_conflict")
    _join(job, "concurrency", "at_limit")
    _check(job, is_waiting=is_waiting)
    job = locate_fields(job, OF_THE_RUN, local_zone(), LOCAL)
    job = locate_fields(job, OF_THE_SCHEDULE, job.get("timezone", "UTC"), "the job's time zone")
    if batch is not None:
        submit_batch(batch, job, is_waiting=is_waiting, as_json=as_json)
        return
    with Client.from_environment() as client:
        answer = client.create_job(job)
        if is_waiting:
            _wait(client, answer.document["id"], as_json=as_json)
            return
        if as_json:
            click.echo(answer.content)
            return
        click.echo(answer.document["id"])
        click.echo(_sentence(client, answer, job), err=True)


def _join(job: dict[str, Any], field: str, detail: str) -> None:
    """Moves an option into the API field that it is a part of."""
    part = {detail: job.pop(detail)} if detail in job else {}
    if field in job:
        job[field] |= part
    elif part:
        raise click.UsageError(f"--{detail.replace('_', '-')}: requires --{field}")


def _check(job: dict[str, Any], *, is_waiting: bool) -> None:
    """Rejects misplaced options. The server can't tell an option from its default."""
    if "cron" in job or "every" in job:
        if is_waiting:
            raise click.UsageError("--wait: can't be used with a recurring job, which does not end")
        return
    for field, option in ONLY_RECURRING.items():
        if field in job:
            raise click.UsageError(f"{option}: requires a recurring job; add --cron or --every")


def _wait(client: Client, job_id: str, *, as_json: bool) -> None:
    try:
        click.echo(f"{job_id} was submitted; waiting for it to end", err=True)
        ended = wait_for_job(client, job_id)
    except KeyboardInterrupt:
        click.echo(f"\nThe job keeps running. To see it: foliot jobs show {job_id}", err=True)
        raise
    click.echo(ended.content if as_json else describe(ended.document, SystemClock().now()))
    if ended.document["status"] != "completed":
        raise click.exceptions.Exit(1)


def _sentence(client: Client, answer: Answer, request: dict[str, Any]) -> str:
    job, now = answer.document, SystemClock().now()
    if "schedule" in job:
        return f"{clean(job['name'])} is {job['status']}; its first tick is at {at(job['next_at'], now)}"
    if not job["created"]:
        if request.get("unique", {}).get("on_conflict") == "replace" and job["status"] in ("pending", "scheduled"):
            return f"the job replaced one that had not started, and is {job['status']}"
        return f"the job already exists and is {clean(job['status'])}"
    if job["status"] == "scheduled":
        return f"{clean(job['task'])} starts at {at(job['scheduled_at'], now)} in queue {job['queue']}"
    where = f"{clean(job['task'])} was submitted to queue {clean(job['queue'])}"
    now_what = situation(client, job["id"])
    return f"{where}; it {now_what}" if now_what else where
