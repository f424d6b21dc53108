"""`foliot backfill`: shows the ticks that would run, asks for confirmation, and submits them."""

from __future__ import annotations

import sys
from typing import Any

import click

from foliot.cli.local_times import has_offset, job_zone, locate_fields
from foliot.cli.name_completion import job_names
from foliot.cli.options import Choice, instant, json_option
from foliot.cli.progress import spinner
from foliot.cli.short_ids import job_reference
from foliot.cli.tables import away, clean, table
from foliot.clock import SystemClock
from foliot.sdk.client import Client

SHOWN_MAX = 20


@click.command()
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@click.option("--from", "start", type=instant, metavar="ISO", required=True, help="Start of the range, inclusive.")
@click.option("--to", "end", type=instant, metavar="ISO", required=True, help="End of the range, inclusive.")
@click.option("--dry-run", is_flag=True, help="Show the ticks without running them.")
@click.option(
    "--overlap",
    type=Choice(["buffer_all", "allow_all"]),
    help="Run the ticks one after another (buffer_all) or all at once (allow_all).  [default: buffer_all]",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def command(reference: str, start: str, end: str, dry_run: bool, overlap: str | None, yes: bool, as_json: bool) -> None:
    """Run the past ticks of a recurring job that have not run yet.

    The ticks are shown first. On a terminal, you are asked to confirm. A time without an offset is in the job's time
    zone.
    """
    needs_confirmation = not (yes or dry_run) and sys.stdin.isatty()
    with Client.from_environment() as client:
        reference = job_reference(client, reference)
        request: dict[str, Any] = {"from": start, "to": end} | ({"overlap": overlap} if overlap else {})
        if not (has_offset(start) and has_offset(end)):
            request = locate_fields(request, {"from": "--from", "to": "--to"}, *job_zone(client, reference))
        planned = client.backfill_job(reference, request | {"dry_run": True})
        if dry_run and as_json:
            click.echo(planned.content)
            return
        # The preview of a real backfill is not part of the result.
        click.echo(_preview(planned.document), err=not dry_run)
        if dry_run:
            return
        ticks = len(planned.document["ticks"])
        if (
            ticks
            and needs_confirmation
            and not click.confirm(f"Run {_counted(ticks)} of {clean(reference)}?", err=True)
        ):
            click.echo("No ticks were run.", err=True)
            raise click.exceptions.Exit(1)
        with spinner(f"submitting {_counted(ticks)}", is_quiet=as_json):
            result = client.backfill_job(reference, request)
    if as_json:
        click.echo(result.content)
        return
    click.echo(f"{_counted(len(result.document['ticks']))} submitted", err=True)


def _preview(backfill: dict[str, Any]) -> str:
    ticks, now = backfill["ticks"], SystemClock().now()
    total = f"{_counted(len(ticks))} to run; {backfill['already_run']} already ran"
    if not ticks:
        return total
    rows = [(tick, away(tick, now)) for tick in ticks[:SHOWN_MAX]]
    more = f"\n... and {len(ticks) - SHOWN_MAX} more, up to {ticks[-1]}" if len(ticks) > SHOWN_MAX else ""
    return f"{table(('TICK', 'WHEN'), rows)}{more}\n{total}"


def _counted(number: int) -> str:
    return "1 tick" if number == 1 else f"{number} ticks"
