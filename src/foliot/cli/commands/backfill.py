"""`foliot backfill`: shows which ticks would run, asks, and runs them."""

from __future__ import annotations

import sys
from typing import Any

import click

from foliot.cli.name_completion import job_names
from foliot.cli.options import Choice, instant, json_option
from foliot.cli.progress import working
from foliot.cli.tables import away, clean, table
from foliot.clock import SystemClock
from foliot.sdk.client import Client

SHOWN_MAX = 20


@click.command()
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@click.option("--from", "start", type=instant, metavar="ISO", required=True, help="The first instant, included.")
@click.option("--to", "end", type=instant, metavar="ISO", required=True, help="The last instant, included.")
@click.option("--dry-run", is_flag=True, help="Only show which ticks would run.")
@click.option(
    "--overlap",
    type=Choice(["buffer_all", "allow_all"]),
    help="One after the other, or all at once.  [default: buffer_all]",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def command(reference: str, start: str, end: str, dry_run: bool, overlap: str | None, yes: bool, as_json: bool) -> None:
    """Run a recurring job's ticks of the past that have not run yet.

    They are shown first. On a terminal you are asked before they run.
    """
    asked: dict[str, Any] = {"from": start, "to": end} | ({"overlap": overlap} if overlap else {})
    is_asking = not (yes or dry_run) and sys.stdin.isatty()
    with Client.from_environment() as client:
        planned = client.backfill_job(reference, asked | {"dry_run": True})
        if dry_run and as_json:
            click.echo(planned.content)
            return
        # What is shown before the question is no part of the answer that a program reads.
        click.echo(_preview(planned.document), err=not dry_run)
        if dry_run:
            return
        ticks = len(planned.document["ticks"])
        if ticks and is_asking and not click.confirm(f"Run {_counted(ticks)} of {clean(reference)} now?", err=True):
            click.echo("Nothing was run.", err=True)
            raise click.exceptions.Exit(1)
        with working(f"submitting {_counted(ticks)}", is_quiet=as_json):
            done = client.backfill_job(reference, asked)
    if as_json:
        click.echo(done.content)
        return
    click.echo(f"{_counted(len(done.document['ticks']))} submitted", err=True)


def _preview(backfill: dict[str, Any]) -> str:
    ticks, now = backfill["ticks"], SystemClock().now()
    total = f"{_counted(len(ticks))} to run; {backfill['already_run']} have run already"
    if not ticks:
        return total
    rows = [(tick, away(tick, now)) for tick in ticks[:SHOWN_MAX]]
    more = f"\n... and {len(ticks) - SHOWN_MAX} more, up to {ticks[-1]}" if len(ticks) > SHOWN_MAX else ""
    return f"{table(('TICK', 'WHEN'), rows)}{more}\n{total}"


def _counted(number: int) -> str:
    return "1 tick" if number == 1 else f"{number} ticks"
