"""`foliot jobs`: the recurring jobs, and one job at a time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
import msgspec

from foliot.cli.commands.pause import change_group, group_of, group_options
from foliot.cli.name_completion import job_names
from foliot.cli.output import Output, output_options
from foliot.cli.tables import at, away, clean, facts, table, word
from foliot.sdk.client import Client

DST_WORDS = {
    "after_gap": "its time is skipped that day",
    "first_of_two": "its time comes twice: the first",
    "second_of_two": "its time comes twice: the second",
}

HELD_WORDS = {
    "limit": "the limit of its key",
    "overlap": "the run before it",
    "pause": "the pause of its task",
    "circuit": "the open circuit of its task",
    "no_worker": "no worker of its queue knows its task",
}


@click.group(invoke_without_command=True)
@click.option("--tag", help="Only those with this tag.")
@output_options
@click.pass_context
def command(context: click.Context, tag: str | None, output: Output) -> None:
    """List the recurring jobs; or show, foretell or delete one."""
    if output.hand_on(context):
        return
    with Client.from_environment() as client:
        nothing = "There are no such recurring jobs." if tag else "There are no recurring jobs."
        output.show(lambda: client.list_jobs(tag=tag), job_table, nothing=nothing)


def job_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            job["name"],
            word(job["status"]),
            schedule_of(job),
            job["task"],
            job["queue"],
            job["next_at"] or "",
            away(job["next_at"], now),
        )
        for job in answer["items"]
    ]
    return table(("NAME", "STATUS", "SCHEDULE", "TASK", "QUEUE", "NEXT", "WHEN"), rows)


@command.command("show")
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@output_options
def show_command(reference: str, output: Output) -> None:
    """Show a job: a recurring one by name or id, a one-off job or a run by id."""
    with Client.from_environment() as client:
        output.show(lambda: client.get_job(reference), describe)


@command.command("next")
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@click.option("--count", type=int, default=10, show_default=True, help="How many.")
@output_options
def next_command(reference: str, count: int, output: Output) -> None:
    """Show when a recurring job fires next, in its own time zone."""
    with Client.from_environment() as client:
        output.show(lambda: client.next_ticks(reference, count=count), next_table, nothing="It fires no more.")


def next_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [(item["at"], away(item["at"], now), DST_WORDS.get(item["dst"] or "", "")) for item in answer["items"]]
    return table(("NEXT", "WHEN", "CLOCK CHANGE"), rows)


@command.command("delete")
@click.argument("reference", metavar="[NAME_OR_ID]", required=False, shell_complete=job_names)
@group_options
def delete_command(reference: str | None, is_sure: bool, **filters: str | None) -> None:
    """Delete a recurring job, or all that fit. What they have run stays in history."""
    group = group_of(reference, filters)
    with Client.from_environment() as client:
        if reference is None:
            change_group(client.delete_jobs, "delete", group, is_sure=is_sure, as_json=False)
            return
        client.delete_job(reference)
    click.echo(f"{clean(reference)} is deleted", err=True)


def describe(job: dict[str, Any], now: datetime) -> str:
    """All of a job, recurring or not."""
    if "schedule" in job:
        return _describe_recurring(job, now)
    shown = facts([
        ("id", job["id"]),
        ("name", job["name"]),
        ("status", word(job["status"])),
        ("reason", job["reason"]),
        ("task", job["task"]),
        ("queue", job["queue"]),
        ("priority", str(job["priority"])),
        ("attempt", str(job["attempt"])),
        ("worker", job["worker_id"]),
        ("created", at(job["created_at"], now)),
        ("due", at(job["scheduled_at"], now)),
        ("held by", HELD_WORDS.get(job["held_by"] or "", job["held_by"])),
        ("expires", at(job["expires_at"], now)),
        ("unique key", job["unique_key"]),
        ("started", at(job["started_at"], now)),
        ("finished", at(job["finished_at"], now)),
        ("payload", _json(job["payload"])),
        ("options", _json(job["options"])),
        ("metadata", _json(job["metadata"])),
        ("tags", ", ".join(job["tags"])),
        ("result", _json(job["result"])),
        ("error", _error(job["error"])),
    ])  # fmt: skip
    output = clean(job["output"] or "", keep="\n\t").rstrip("\n")
    return f"{shown}\n\n{output}" if output else shown


def schedule_of(job: dict[str, Any]) -> str:
    schedule = job["schedule"]
    cron = schedule.get("cron") or ()
    parts = [cron] if isinstance(cron, str) else list(cron)
    if "every" in schedule:
        parts.append(f"every {schedule['every']}")
    parts.extend(f"at {time}" for time in schedule.get("times", ()))
    when = " | ".join(parts)
    zone = schedule.get("timezone", "UTC")
    return when if zone == "UTC" else f"{when} ({zone})"


def _describe_recurring(job: dict[str, Any], now: datetime) -> str:
    policies = {
        name: value for name, value in job["schedule"].items() if name not in ("cron", "every", "times", "timezone")
    }
    return facts([
        ("id", job["id"]),
        ("name", job["name"]),
        ("status", word(job["status"])),
        ("paused for", job["paused_reason"]),
        ("paused until", at(job["paused_until"], now)),
        ("schedule", schedule_of(job)),
        ("policies", ", ".join(f"{name} {value}" for name, value in policies.items())),
        ("next", at(job["next_at"], now)),
        ("runs left", None if job["runs_left"] is None else str(job["runs_left"])),
        ("task", job["task"]),
        ("queue", job["queue"]),
        ("priority", str(job["priority"])),
        ("payload", _json(job["payload"])),
        ("options", _json(job["options"])),
        ("metadata", _json(job["metadata"])),
        ("tags", ", ".join(job["tags"])),
        ("created", at(job["created_at"], now)),
        ("changed", at(job["updated_at"], now)),
    ])  # fmt: skip


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode() if value not in (None, {}) else ""


def _error(error: Any) -> str:
    if isinstance(error, dict) and "message" in error:
        return f"{error.get('kind', 'error')}: {error['message']}"
    return _json(error)
