"""`foliot jobs`."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import Any

import click
import msgspec

from foliot.cli.columns import Column
from foliot.cli.commands.pause import change_group, group_of, group_options
from foliot.cli.name_completion import job_names
from foliot.cli.output import Output, output_options
from foliot.cli.short_ids import any_reference, job_reference
from foliot.cli.tables import at, away, clean, facts, table, word
from foliot.cli.tracebacks import traceback_of
from foliot.sdk.client import Client

DST_WORDS = {
    "after_gap": "the clock skips this time",
    "first_of_two": "the clock shows this time twice: first",
    "second_of_two": "the clock shows this time twice: second",
}

HEADERS = (
    Column("NAME", "text"),
    "STATUS",
    Column("SCHEDULE", "text"),
    Column("TASK", "text", 1),
    Column("QUEUE", "text", 2),
    Column("NEXT", leaves=3),
    "WHEN",
)
HELD_WORDS = {
    "signal": "a signal",
    "condition": "its condition",
    "limit": "a limit on its key",
    "overlap": "the previous run",
    "pause": "its task is paused",
    "circuit": "the circuit breaker of its task is open",
    "no_worker": "no worker of its queue has its task",
}


@click.group(invoke_without_command=True)
@click.option("--tag", help="Only jobs with this tag.")
@output_options
@click.pass_context
def command(context: click.Context, tag: str | None, output: Output) -> None:
    """List recurring jobs; or show or delete a job, or list its next ticks."""
    if output.pass_to_subcommand(context):
        return
    with Client.from_environment() as client:
        nothing = "No matching recurring jobs." if tag else "No recurring jobs."
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
    return table(HEADERS, rows)


@command.command("show")
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@output_options
def show_command(reference: str, output: Output) -> None:
    """Show a recurring job by name or id, or a one-off job or run by id."""
    with Client.from_environment() as client:
        full = any_reference(client, reference)
        output.show(lambda: client.get_job(full), describe)


@command.command("next")
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@click.option("--count", type=int, default=10, show_default=True, help="Number of ticks to list.")
@output_options
def next_command(reference: str, count: int, output: Output) -> None:
    """List the next ticks of a recurring job, in its own time zone."""
    with Client.from_environment() as client:
        full = job_reference(client, reference)
        output.show(lambda: client.next_ticks(full, count=count), next_table, nothing="The job has no ticks left.")


def next_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [(item["at"], away(item["at"], now), DST_WORDS.get(item["dst"] or "", "")) for item in answer["items"]]
    return table(("NEXT", "WHEN", "CLOCK CHANGE"), rows)


@command.command("delete")
@click.argument("reference", metavar="[NAME_OR_ID]", required=False, shell_complete=job_names)
@group_options
def delete_command(reference: str | None, is_sure: bool, **filters: str | None) -> None:
    """Delete a recurring job, or all matching ones. Their finished runs stay in the history."""
    group = group_of(reference, filters)
    with Client.from_environment() as client:
        if reference is None:
            change_group(client.delete_jobs, "delete", group, is_sure=is_sure, as_json=False)
            return
        client.delete_job(job_reference(client, reference))
    click.echo(f"{clean(reference)} was deleted", err=True)


@command.command("versions")
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@click.option("--limit", type=int, default=50, show_default=True, help="Maximum number of versions.")
@output_options
def versions_command(reference: str, limit: int, output: Output) -> None:
    """List the versions of a recurring job, or of a deleted one: who changed what and when."""
    with Client.from_environment() as client:
        output.show(lambda: client.list_job_versions(reference, limit=limit), version_table)


def version_table(answer: dict[str, Any], now: datetime) -> str:
    versions = answer["items"]
    rows = [
        (
            str(version["version"]),
            version["made_at"],
            away(version["made_at"], now),
            version["made_by"] or "code",
            differences(version, before) if before else "created" if version["version"] == 1 else "",
        )
        for version, before in zip(versions, [*versions[1:], None], strict=True)
    ]
    shown = table(("VERSION", "MADE", Column("WHEN", leaves=1), "BY", Column("CHANGE", "text")), rows)
    last = versions[0] if versions else {}
    if not answer["is_deleted"]:
        return shown
    by = f" by {clean(last['deleted_by'])}" if last.get("deleted_by") else ""
    return f"{shown}\n\nThe job was deleted at {last.get('deleted_at')}{by}."


def differences(version: dict[str, Any], before: dict[str, Any]) -> str:
    """The fields that differ between two versions, with their new values."""
    new, old = _definition(version), _definition(before)
    names = [name for name in {**old, **new} if new.get(name) != old.get(name)]
    return ", ".join(f"{name} {_value(new.get(name))}" for name in names) or "nothing"


def _definition(version: dict[str, Any]) -> dict[str, Any]:
    shown = {name: version[name] for name in ("queue", "priority", "payload", "metadata", "tags")}
    return {**version["schedule"], **(version["options"] or {}), **shown}


def _value(value: Any) -> str:
    return "removed" if value is None else value if isinstance(value, str) else _json(value) or "removed"


@command.command("restore")
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@click.argument("version", type=int, required=False)
@output_options
def restore_command(reference: str, version: int | None, output: Output) -> None:
    """Make a version of a recurring job current again; without a version, make a deleted job again."""
    with Client.from_environment() as client:
        output.show(lambda: client.restore_job(reference, version), describe)


@command.command("deleted")
@output_options
def deleted_command(output: Output) -> None:
    """List recurring jobs that were deleted recently and can be restored."""
    with Client.from_environment() as client:
        output.show(client.list_deleted_jobs, deleted_table, nothing="No job was deleted recently.")


def deleted_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (job["name"], job["schedule_words"], away(job["deleted_at"], now), job["deleted_by"] or "", job["id"])
        for job in answer["items"]
    ]
    return table((Column("NAME", "text"), Column("SCHEDULE", "text"), "DELETED", "BY", Column("ID", "id", 1)), rows)


def describe(job: dict[str, Any], now: datetime) -> str:
    """Formats a job, recurring or not, as a list of facts."""
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
        ("held by", _held_by(job)),
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
    return "\n\n".join(part for part in (shown, output, traceback_of(job["error"])) if part)


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
        ("pause reason", job["paused_reason"]),
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


def _held_by(job: dict[str, Any]) -> str:
    words = HELD_WORDS.get(job["held_by"] or "", job["held_by"] or "")
    if job["held_by"] != "signal":
        return words
    # A durable function may wait for several signals.
    names = (job.get("awaits") or {}).get("signals", [""])
    return f"{words}: foliot signal {job['id']} {shlex.quote(clean(names[0])) if names[0] else ''}".rstrip()


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode() if value not in (None, {}) else ""


def _error(error: Any) -> str:
    if isinstance(error, dict) and "message" in error:
        return f"{error.get('kind', 'error')}: {error['message']}"
    return _json(error)
