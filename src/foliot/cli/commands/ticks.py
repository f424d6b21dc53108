"""`foliot ticks`: every due tick of a job, and what became of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from foliot.cli.name_completion import job_names
from foliot.cli.output import Output, output_options
from foliot.cli.tables import COLOURS, Cell, away, table, word
from foliot.sdk.client import Client

# One column each, and told apart without colours too.
MARKS = {
    "succeeded": "✓", "failed": "✗", "cancelled": "c", "running": "▶",
    "overlap": "o", "missed": "!", "superseded": "s", "paused": "‖", "skipped": "-", "excluded": "x",
}  # fmt: skip
WAITING = "·"
ON_TIME = timedelta(seconds=1)
REASONS = {
    "overlap": "the run before it was still open",
    "missed": "no scheduler node was there",
    "superseded": "a later tick was run in its place",
    "paused": "the job was paused",
    "excluded": "the calendar excludes that day",
    "held": "waits for the run before it",
}


@click.command()
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@click.option("--limit", type=int, default=50, show_default=True, help="How many of the latest.")
@output_options
def command(reference: str, limit: int, output: Output) -> None:
    """Show the ticks of a recurring job, latest first: which became a run, and why the others did not.

    The strip above the table shows them from left to right as time went by.
    """
    with Client.from_environment() as client:
        output.show(lambda: client.list_ticks(reference, limit=limit), tick_table, nothing="No tick has been due yet.")


def tick_table(answer: dict[str, Any], now: datetime) -> str:
    ticks = answer["items"]
    if not ticks:
        return ""
    rows = [
        (
            tick["tick_at"],
            tick["until_at"] or "",
            away(tick["tick_at"], now),
            word(tick["outcome"]),
            decided_after(tick),
            reason_of(tick),
            tick["blocked_by"] or "",
            tick["run_id"] or "",
        )
        for tick in ticks
    ]
    return f"{strip(ticks)}\n\n{table(('TICK', 'UNTIL', 'WHEN', 'OUTCOME', 'DECIDED', 'REASON', 'BLOCKED BY', 'RUN'), rows)}"


def reason_of(tick: dict[str, Any]) -> str:
    """Why it became no run. For one that was missed, also from when to when nobody looked after it."""
    reason = REASONS.get(tick["outcome"], "")
    return f"{reason} from {tick['tick_at']} to {tick['decided_at']}" if tick["outcome"] == "missed" else reason


def decided_after(tick: dict[str, Any]) -> str:
    """How long after the tick, or after the last of several, it became a run or was noted; nothing where that is a
    matter of course."""
    at = datetime.fromisoformat(tick["until_at"] or tick["tick_at"])
    is_late = datetime.fromisoformat(tick["decided_at"]) - at >= ON_TIME
    return f"{away(tick['decided_at'], at).removeprefix('in ')} later" if is_late else ""


def strip(ticks: list[dict[str, Any]]) -> str:
    """A mark a tick, the oldest first, and what the marks mean. A mark with dots stands for all ticks of a time."""
    marks = "".join(_mark(tick["outcome"], is_range=tick["until_at"] is not None) for tick in reversed(ticks))
    outcomes = dict.fromkeys(tick["outcome"] for tick in reversed(ticks))
    return f"{marks}   {' '.join(f'{_mark(outcome)} {word(outcome).text}' for outcome in outcomes)}"


def _mark(outcome: str, *, is_range: bool = False) -> str:
    mark = MARKS.get(outcome, WAITING) + ("…" if is_range else "")
    return Cell(mark, COLOURS.get(outcome)).padded(0)
