"""`foliot audit`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from foliot.cli.columns import Column
from foliot.cli.local_times import locate_range
from foliot.cli.options import json_option
from foliot.cli.tables import Cell, clean, table, to_second
from foliot.sdk.http_protocol import given
from foliot.sdk.operations import Operations

HEADERS = (
    "TIME",
    Column("ACTOR", "text"),
    Column("TOKEN", "id", 5),
    Column("ROLE", leaves=4),
    Column("NAMESPACE", "text", 3),
    Column("ACTION", "text"),
    Column("TARGET", "id"),
    "STATUS",
    Column("CODE", "text", 1),
    Column("ADDRESS", leaves=2),
)
DENIED = (401, 403, 429)


@click.command()
@click.option("--actor", help="Only actions by tokens with this name, in any namespace.")
@click.option("--token", help="Only actions by the token with this id.")
@click.option("--action", help="Only this action, such as cancel_run.")
@click.option("--target", help="Only actions on this run, job or queue.")
@click.option(
    "--since", metavar="TIME", help="Only entries since an ISO time, or within a duration such as 2h.  [default: 7d]"
)
@click.option("--until", metavar="TIME", help="Only entries before an ISO time, or a duration ago.")
@click.option("--denied", is_flag=True, help="Only denied requests.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of entries."
)
@json_option
def command(
    actor: str | None,
    token: str | None,
    action: str | None,
    target: str | None,
    since: str | None,
    until: str | None,
    denied: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Show who changed what, and which requests were denied, newest first."""
    filters = locate_range(
        given(
            actor=actor,
            token=token,
            action=action,
            target=target,
            since=since,
            until=until,
            denied="1" if denied else None,
        )
    )
    with Operations.from_environment() as client:
        answer = client.list_audit(filters, limit=limit)
    if as_json:
        click.echo(answer.content)
        return
    rows = [
        (
            to_second(entry["at"]),
            actor_of(entry),
            entry["token_id"] or "",
            entry["role"] or "",
            entry["namespace"],
            entry["action"],
            entry["target"] or "",
            Cell(str(entry["status"]), "red" if entry["status"] in DENIED else None),
            clean(entry["code"] or ""),
            entry["address"] or "",
        )
        for entry in answer.document["items"]
    ]
    if not rows:
        click.echo("No matching audit entries.", err=True)
        return
    click.echo(table(HEADERS, rows))


def actor_of(entry: Mapping[str, Any]) -> str:
    """Formats an actor: a token as namespace/name, such as team/ci; any other actor as a single word."""
    return f"{entry['actor_namespace']}/{entry['actor']}" if entry["token_id"] else str(entry["actor"])
