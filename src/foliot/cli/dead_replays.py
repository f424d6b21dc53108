"""`foliot dead replays`: replays that begin with one run, and how far they are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from foliot.cli.columns import Column
from foliot.cli.options import given
from foliot.cli.output import Output, output_options
from foliot.cli.tables import Cell, at, away, facts, table
from foliot.sdk.operations import Operations

HEADERS = (
    Column("REPLAY", "id"),
    Column("GROUP", leaves=3),
    "STATE",
    "REPLAYED",
    Column("BY", "text", 4),
    Column("BEGAN", leaves=1),
    Column("CANARY", "id", 2),
    Column("WHY", "text"),
)
COLOURS = {"waiting": "yellow", "releasing": "cyan", "done": "green", "stopped": "red"}


@click.command("replays")
@click.argument("replay_id", metavar="[REPLAY_ID]", required=False)
@click.option("--group", help="Only replays of this group of dead letters.")
@output_options
def replays_command(replay_id: str | None, group: str | None, output: Output) -> None:
    """List the replays that began with --canary, or show one with the outcomes of its runs."""
    if replay_id is not None and group is not None:
        raise click.UsageError("give a REPLAY_ID or --group, not both")
    with Operations.from_environment() as client:
        if replay_id is not None:
            output.show(lambda: client.get_replay(replay_id), replay_facts)
            return
        output.show(lambda: client.list_replays(given(group=group)), replay_table, nothing="No replays.")


@click.command("stop")
@click.argument("replay_id", metavar="REPLAY_ID")
def stop_command(replay_id: str) -> None:
    """Stop a replay that began with --canary. Runs that it has started go on; the others stay dead letters."""
    with Operations.from_environment() as client:
        replay = client.stop_replay(replay_id).document
    click.echo(f"{replay['state']}: {_progress(replay)} replayed", err=True)


def replay_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            one["id"], one["fingerprint"], _state(one), _progress(one), one["actor"], away(one["created_at"], now),
            one["canary_id"], one["reason"] or "",
        )
        for one in answer["items"]
    ]  # fmt: skip
    return table(HEADERS, rows)


def replay_facts(replay: dict[str, Any], now: datetime) -> str:
    outcomes = ", ".join(f"{count} {state}" for state, count in sorted(replay["outcomes"].items()))
    return facts([
        ("replay", replay["id"]),
        ("group", replay["fingerprint"]),
        ("state", _state(replay)),
        ("why", replay["reason"]),
        ("replayed", _progress(replay)),
        ("outcomes", outcomes),
        ("canary", replay["canary_id"]),
        ("canary of", replay["canary_of"]),
        ("by", replay["actor"]),
        ("began", at(replay["created_at"], now)),
        ("ended", at(replay["finished_at"], now)),
    ])  # fmt: skip


def _progress(replay: dict[str, Any]) -> str:
    return f"{replay['started']} of {replay['total']}"


def _state(replay: dict[str, Any]) -> Cell:
    return Cell(replay["state"], COLOURS.get(replay["state"]))
