"""`foliot audit`: who changed what, and who was refused what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from foliot.cli.options import json_option
from foliot.cli.tables import Cell, clean, table
from foliot.sdk.http_protocol import given
from foliot.sdk.operations import Operations

DENIED = (401, 403, 429)


@click.command()
@click.option("--actor", help="Of tokens of this name, in whichever namespace.")
@click.option("--token", help="Of the token of this id.")
@click.option("--action", help="Of this kind, such as cancel_run.")
@click.option("--target", help="About this run, job or queue.")
@click.option("--since", metavar="TIME", help="Since: an ISO time, or a duration such as 2h.  [default: 7d]")
@click.option("--until", metavar="TIME", help="Before: an ISO time, or a duration.")
@click.option("--denied", is_flag=True, help="Refusals only.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many of the latest.")
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
    """Show who changed what, and who was refused what, the latest first."""
    filters = given(
        actor=actor, token=token, action=action, target=target, since=since, until=until, denied="1" if denied else None
    )
    with Operations.from_environment() as client:
        answer = client.list_audit(filters, limit=limit)
    if as_json:
        click.echo(answer.content)
        return
    rows = [
        (
            entry["at"], who(entry), entry["token_id"] or "", entry["role"] or "", entry["namespace"], entry["action"],
            entry["target"] or "", Cell(str(entry["status"]), "red" if entry["status"] in DENIED else None),
            clean(entry["code"] or ""), entry["address"] or "",
        )
        for entry in answer.document["items"]
    ]  # fmt: skip
    if not rows:
        click.echo("There is nothing of the kind in the record.", err=True)
        return
    click.echo(table(("AT", "WHO", "TOKEN", "ROLE", "NAMESPACE", "WHAT", "OF", "STATUS", "CODE", "FROM"), rows))


def who(entry: Mapping[str, Any]) -> str:
    """A token by its namespace and name, as in team/ci; somebody without one by a word that has no namespace."""
    return f"{entry['actor_namespace']}/{entry['actor']}" if entry["token_id"] else str(entry["actor"])
