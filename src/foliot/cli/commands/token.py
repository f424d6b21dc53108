"""`foliot token`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from foliot import config
from foliot.assembly import run_create_token, with_a_database
from foliot.cli.columns import Column
from foliot.cli.options import Choice, json_option
from foliot.cli.tables import Cell, away, clean, table
from foliot.clock import SystemClock
from foliot.model.roles import EVERYWHERE, Role
from foliot.model.tokens import DEFAULT_LIFE, life_of
from foliot.sdk.http_protocol import given
from foliot.sdk.operations import Operations

HEADERS = (
    Column("NAME", "text"),
    Column("ID", "id"),
    "ROLE",
    Column("NAMESPACE", "text", 2),
    "STATUS",
    "EXPIRES",
    Column("LAST USED", leaves=1),
    Column("CREATED BY", "text", 3),
)
COLOURS = {"active": "green", "expired": "yellow", "revoked": "magenta"}


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List tokens; or create or revoke a token."""
    if context.invoked_subcommand is not None:
        context.default_map = {context.invoked_subcommand: {"as_json": as_json}}
        return
    with Operations.from_environment() as client:
        answer = client.list_tokens()
    if as_json:
        click.echo(answer.content)
        return
    tokens, now = answer.document["items"], SystemClock().now()
    if not tokens:
        click.echo("No tokens.", err=True)
        return
    rows = [
        (
            token["name"],
            token["id"],
            token["role"],
            token["namespace"],
            Cell(clean(token["status"]), COLOURS.get(token["status"])),
            away(token["expires_at"], now) or "never",
            away(token["last_used_at"], now),
            creator_of(token),
        )
        for token in tokens
    ]
    click.echo(table(HEADERS, rows))


def creator_of(token: Mapping[str, Any]) -> str:
    return f"{token['created_by']} ({token['created_by_id']})" if token["created_by_id"] else str(token["created_by"])


@command.command("create")
@click.argument("name")
@click.option("--role", type=Choice([str(role) for role in Role]), required=True, help="Role of the token.")
@click.option("--namespace", help="Namespace of the token.  [default: FOLIOT_NAMESPACE, or default]")
@click.option("--everywhere", is_flag=True, help="Valid in all namespaces.")
@click.option(
    "--expires",
    metavar="DURATION",
    default=DEFAULT_LIFE,
    show_default=True,
    help="Lifetime, such as 30d; or never.",
)
@click.option("--database", is_flag=True, help="Create the token directly in the database; needed for the first one.")
@click.option(
    "--data", help="With --database: data directory of `foliot up`, whose PostgreSQL to use. It need not be running."
)
@json_option
def create_command(
    name: str,
    role: str,
    namespace: str | None,
    everywhere: bool,
    expires: str,
    database: bool,
    data: str | None,
    as_json: bool,
) -> None:
    """Create a token and print it on standard output. It can't be shown again."""
    if everywhere and namespace is not None:
        raise click.UsageError("--everywhere can't be combined with --namespace")
    scope = EVERYWHERE if everywhere else namespace
    if database:
        loaded = config.load({"data": data, "namespace": namespace})
        made = create_in_database(
            loaded, may_start=data is not None, name=name, role=Role(role), namespace=scope or loaded.namespace,
            lives_seconds=life_of(expires),
        )  # fmt: skip
        text = asyncio.run(made)
        click.echo(msgspec.json.encode({"token": text}) if as_json else text)
        return
    with Operations.from_environment() as client:
        answer = client.create_token(given(name=name, role=role, namespace=scope, expires_in=expires))
    if as_json:
        click.echo(answer.content)
        return
    click.echo(answer.document["token"])
    click.echo(
        "Save this token; it can't be shown again. Pass it as FOLIOT_TOKEN, or in the header Authorization: Bearer.",
        err=True,
    )


async def create_in_database(loaded: config.Config, *, may_start: bool, **token: Any) -> str:
    """Only who names a data directory means the PostgreSQL in it, even if it does not run."""
    if not may_start:
        return await run_create_token(loaded, **token)
    async with with_a_database(loaded) as running:
        return await run_create_token(running, **token)


@command.command("revoke")
@click.argument("reference", metavar="NAME_OR_ID")
@json_option
def revoke_command(reference: str, as_json: bool) -> None:
    """Revoke a token. Within a few seconds, every server rejects it."""
    with Operations.from_environment() as client:
        answer = client.revoke_token(reference)
    click.echo(answer.content if as_json else f"{clean(answer.document['name'])} was revoked", err=not as_json)
