"""`foliot ticks`: lists the ticks of a job and their outcomes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from foliot.cli.columns import Column
from foliot.cli.name_completion import job_names
from foliot.cli.output import Output, output_options
from foliot.cli.short_ids import job_reference
from foliot.cli.tables import Cell, away, table, word
from foliot.sdk.client import Client

# One column wide each, and distinct without colours.
MARKS = {
    "completed": "✓", "failed": "✗", "cancelled": "c", "running": "▶",
    "overlap": "o", "missed": "!", "superseded": "s", "paused": "‖", "skipped": "-", "excluded": "x",
}  # fmt: skip
HEADERS = (
    "TICK",
    Column("UNTIL", leaves=1),
    Column("WHEN", leaves=3),
    "OUTCOME",
    Column("DECIDED", leaves=2),
    Column("REASON", "text"),
    Column("BLOCKED BY", "id", 4),
    Column("RUN", "id"),
)
WAITING = "·"
ON_TIME = timedelta(seconds=1)
REASONS = {
    "overlap": "the previous run had not ended",
    "missed": "no scheduler was running",
    "superseded": "a later tick ran instead",
    "paused": "the job was paused",
    "excluded": "the calendar excludes that day",
    "held": "waits for the previous run",
}


@click.command()
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@click.option("--limit", type=int, default=50, show_default=True, help="Maximum number of ticks.")
@output_options
def command(reference: str, limit: int, output: Output) -> None:
    """List the ticks of a recurring job, newest first: the run of each tick, or why it has none.

    The strip above the table shows the same ticks, oldest first.
    """
    with Client.from_environment() as client:
        full = job_reference(client, reference)
        output.show(lambda: client.list_ticks(full, limit=limit), tick_table, nothing="No ticks yet.")


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
    return f"{strip(ticks)}\n\n{table(HEADERS, rows)}"


def reason_of(tick: dict[str, Any]) -> str:
    """Why the tick did not become a run. For a missed tick, also the time without a scheduler."""
    reason = REASONS.get(tick["outcome"], "")
    return f"{reason} from {tick['tick_at']} to {tick['decided_at']}" if tick["outcome"] == "missed" else reason


def decided_after(tick: dict[str, Any]) -> str:
    """The delay between the tick, or the last of several, and the decision about it; empty if it was on time."""
    at = datetime.fromisoformat(tick["until_at"] or tick["tick_at"])
    is_late = datetime.fromisoformat(tick["decided_at"]) - at >= ON_TIME
    return f"{away(tick['decided_at'], at).removeprefix('in ')} later" if is_late else ""


def strip(ticks: list[dict[str, Any]]) -> str:
    """One mark per tick, oldest first, and a legend. A mark with dots stands for a range of ticks."""
    oldest_first = [(word(tick["outcome"]), tick["until_at"] is not None) for tick in reversed(ticks)]
    marks = "".join(_mark(outcome, is_range=is_range) for outcome, is_range in oldest_first)
    legend = " ".join(f"{_mark(outcome)} {outcome.text}" for outcome in dict.fromkeys(cell for cell, _ in oldest_first))
    return f"{marks}   {legend}"


def _mark(outcome: Cell, *, is_range: bool = False) -> str:
    mark = MARKS.get(outcome.text, WAITING) + ("…" if is_range else "")
    return Cell(mark, outcome.colour).padded(0)
