"""`foliot submit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import click

from foliot.cli.batch import submit_batch
from foliot.cli.commands.jobs import describe
from foliot.cli.name_completion import queue_names
from foliot.cli.options import (
    Choice,
    cause,
    concurrency,
    instant,
    json_option,
    json_value,
    notice,
    rate,
    seconds,
    unique,
)
from foliot.cli.tables import at, clean
from foliot.clock import SystemClock
from foliot.model.guarantee import Guarantee
from foliot.model.schedule import Catchup, Overlap
from foliot.model.unique import OnConflict
from foliot.sdk.client import Client
from foliot.sdk.http_protocol import Answer
from foliot.triggers.calendar import OnExcluded
from foliot.triggers.dst import DstFold, DstGap

ONLY_RECURRING = {
    "timezone": "--timezone", "dst_gap": "--dst-gap", "dst_fold": "--dst-fold", "start_at": "--start-at", "end_at": "--end-at",
    "max_runs": "--max-runs", "jitter_seconds": "--jitter", "overlap": "--overlap", "catchup": "--catchup",
    "catchup_window": "--catchup-window", "catchup_max": "--catchup-max", "calendar": "--calendar", "on_excluded": "--on-excluded",
}  # fmt: skip

AT_LIMIT = ("wait", "drop_new", "cancel_old")

# Each is named after the field of the API that it fills.
FIELDS = (
    click.option("--command", "command", metavar="LINE", help="A shell command line, in place of TASK."),
    click.option(
        "--payload", type=json_value, metavar="JSON", help="What the task gets: JSON, @FILE, or - for standard input."
    ),
    click.option("--name", help="A name of yours, for finding it again."),
    click.option(
        "--delay", "delay_seconds", type=seconds, metavar="DURATION", help="Start it so much later: 90, 5m, 1h30m."
    ),
    click.option("--at", "schedule_time", type=instant, metavar="ISO", help="Start it then."),
    click.option(
        "--cron",
        metavar="EXPR",
        multiple=True,
        help="Recurring, by a cron expression. Given again: whenever one of them is due.",
    ),
    click.option("--every", metavar="DURATION", help="Recurring, with that period: 90s, 5m, 1h30m."),
    click.option("--calendar", help="Not on the days that this calendar excludes."),
    click.option("--on-excluded", type=Choice(get_args(OnExcluded)), help="What to do on those.  [default: skip]"),
    click.option("--timezone", metavar="ZONE", help="IANA time zone of --cron, such as Europe/Berlin.  [default: UTC]"),
    click.option("--dst-gap", type=Choice(get_args(DstGap)), help="Times that a clock change skips.  [default: shift]"),
    click.option("--dst-fold", type=Choice(get_args(DstFold)), help="Times that it repeats.  [default: first]"),
    click.option("--start-at", type=instant, metavar="ISO", help="No ticks before."),
    click.option("--end-at", type=instant, metavar="ISO", help="No ticks after."),
    click.option("--max-runs", type=int, help="End after so many runs."),
    click.option(
        "--jitter", "jitter_seconds", type=seconds, metavar="DURATION", help="Delay each tick by up to that much."
    ),
    click.option(
        "--overlap", type=Choice(get_args(Overlap)), help="When the run before is still open.  [default: skip]"
    ),
    click.option(
        "--catchup", type=Choice(get_args(Catchup)), help="Which ticks to run after downtime.  [default: latest]"
    ),
    click.option("--catchup-window", metavar="DURATION", help="How old a tick to catch up may be.  [default: 1d]"),
    click.option("--catchup-max", type=int, help="How many ticks to catch up at the most.  [default: 100]"),
    click.option("--queue", help="The line it waits in.", shell_complete=queue_names),
    click.option("--priority", type=int, help="Higher first.  [default: 0]"),
    click.option("--retries", type=int, help="Further attempts after one that failed.  [default: 3]"),
    click.option(
        "--backoff",
        type=json_value,
        metavar="JSON",
        help='Waits between attempts, such as {"kind": "fixed", "base_seconds": 5}.',
    ),
    click.option(
        "--timeout",
        "timeout_seconds",
        type=seconds,
        metavar="DURATION",
        help="Time limit of an attempt.  [default: 1h]",
    ),
    click.option(
        "--retry-on",
        type=cause,
        multiple=True,
        metavar="ERROR",
        help="Retry only these: names of errors, or exit codes.",
    ),
    click.option("--never-on", type=cause, multiple=True, metavar="ERROR", help="Do not retry these."),
    click.option(
        "--guarantee", type=Choice(get_args(Guarantee)), help="What a lost attempt means.  [default: at_least_once]"
    ),
    click.option("--expires-at", type=instant, metavar="ISO", help="Do not start it any more from then on."),
    click.option("--unique", type=unique, metavar="KEY", help="Only one job with this key waits or runs at a time."),
    click.option(
        "--on-conflict", type=Choice(get_args(OnConflict)), help="If there is one.  [default: return_existing]"
    ),
    click.option("--idempotency-key", metavar="KEY", help="Submitted again with this key, it is still one job."),
    click.option(
        "--concurrency", type=concurrency, metavar="KEY=LIMIT", help="At most so many with this key run at once."
    ),
    click.option("--at-limit", type=Choice(AT_LIMIT), help="Else.  [default: wait]"),
    click.option(
        "--rate",
        type=rate,
        metavar="KEY=LIMIT/PERIOD",
        help="At most so many with this key start in a time: mail=100/1m.",
    ),
    click.option(
        "--tag", "tags", metavar="TAG", multiple=True, help="A word to find it and its runs by; can be given again."
    ),
    click.option(
        "--notify",
        type=notice,
        metavar="URL",
        multiple=True,
        help="Gets a POST when it has failed for good; or JSON, see docs.",
    ),
    click.option("--fairness-key", metavar="KEY", help="Take turns with the jobs of other keys."),
)


def field_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(FIELDS):
        function = option(function)
    return function


@click.command()
@click.argument("task", required=False)
@field_options
@click.option(
    "--batch", metavar="FILE", help="A job for each line of the file, or of - for standard input: a payload as JSON."
)
@click.option(
    "--wait", "is_waiting", is_flag=True, help="Wait until it has ended; exit with 0 if it completed, else with 1."
)
@json_option
def command(batch: str | None, is_waiting: bool, as_json: bool, **fields: Any) -> None:
    """Submit a job and print its id.

    TASK is the name of a task. With --cron or --every the job is recurring, else it runs once: now, after --delay, or
    --at an instant.
    """
    job = {name: value for name, value in fields.items() if value not in (None, ())}
    if len(fields["cron"]) == 1:
        job["cron"] = fields["cron"][0]
    _join(job, "unique", "on_conflict")
    _join(job, "concurrency", "at_limit")
    _check(job, is_waiting=is_waiting)
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
    click.echo(_sentence(answer, job), err=True)


def _join(job: dict[str, Any], field: str, detail: str) -> None:
    """Two options that are one field of the API."""
    said = {detail: job.pop(detail)} if detail in job else {}
    if field in job:
        job[field] |= said
    elif said:
        raise click.UsageError(f"--{detail.replace('_', '-')}: says what to do about --{field}; give that too")


def _check(job: dict[str, Any], *, is_waiting: bool) -> None:
    """What the server can't see: it does not know a default from the same value given."""
    if "cron" in job or "every" in job:
        if is_waiting:
            raise click.UsageError("--wait: a recurring job does not end; leave it out")
        return
    for field, option in ONLY_RECURRING.items():
        if field in job:
            raise click.UsageError(f"{option}: only a recurring job has one; give --cron or --every too")


def _wait(client: Client, job_id: str, *, as_json: bool) -> None:
    try:
        click.echo(f"{job_id} is submitted; waiting for its end", err=True)
        ended = client.wait_for_job(job_id)
    except KeyboardInterrupt:
        click.echo(f"\nThe job goes on. Look at it with: foliot jobs show {job_id}", err=True)
        raise
    click.echo(ended.content if as_json else describe(ended.document, SystemClock().now()))
    if ended.document["status"] != "completed":
        raise click.exceptions.Exit(1)


def _sentence(answer: Answer, asked: dict[str, Any]) -> str:
    job, now = answer.document, SystemClock().now()
    if "schedule" in job:
        return f"{clean(job['name'])} is {job['status']}; its first tick is at {at(job['next_at'], now)}"
    if not job["created"]:
        if asked.get("unique", {}).get("on_conflict") == "replace" and job["status"] in ("pending", "scheduled"):
            return f"it took the place of one that had not started, and is {job['status']}"
        return f"there is one already, and it is {clean(job['status'])}"
    if job["status"] == "scheduled":
        return f"{clean(job['task'])} starts at {at(job['scheduled_at'], now)} in queue {job['queue']}"
    return f"{clean(job['task'])} waits in queue {job['queue']} for a worker"
