"""`foliot token`: who may use this Foliot."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from foliot import config
from foliot.assembly import run_create_token
from foliot.cli.options import Choice, json_option
from foliot.cli.tables import Cell, away, clean, table
from foliot.clock import SystemClock
from foliot.model.permissions import DEFAULT_LIFE, EVERYWHERE, Role, life_of
from foliot.sdk.http_protocol import given
from foliot.sdk.operations import Operations

COLOURS = {"active": "green", "expired": "yellow", "revoked": "magenta"}


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the tokens; or make or revoke one.

    \b
    foliot token create ci --role submitter --expires 30d
    foliot token revoke ci
    """
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
        click.echo("There are no tokens.", err=True)
        return
    rows = [
        (
            token["name"], token["id"], token["role"], token["namespace"], Cell(clean(token["status"]), COLOURS.get(token["status"])),
            away(token["expires_at"], now) or "never", away(token["last_used_at"], now), made_by(token),
        )
        for token in tokens
    ]  # fmt: skip
    click.echo(table(("NAME", "ID", "ROLE", "NAMESPACE", "STATUS", "EXPIRES", "LAST USED", "MADE BY"), rows))


def made_by(token: Mapping[str, Any]) -> str:
    return f"{token['created_by']} ({token['created_by_id']})" if token["created_by_id"] else str(token["created_by"])


@command.command("create")
@click.argument("name")
@click.option("--role", type=Choice([str(role) for role in Role]), required=True, help="What its holder may do.")
@click.option("--namespace", help="Whose jobs it is for.  [default: that of FOLIOT_NAMESPACE, or default]")
@click.option("--everywhere", is_flag=True, help="For all namespaces.")
@click.option(
    "--expires",
    metavar="DURATION",
    default=DEFAULT_LIFE,
    show_default=True,
    help="How long it lives, such as 30d; or never.",
)
@click.option("--database", is_flag=True, help="Make it in the database itself, as for the first token.")
@click.option("--data", help="Directory of an embedded PostgreSQL, with --database.")
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
    """Make a token. It is printed once, alone on standard output, and can't be shown again."""
    if everywhere and namespace is not None:
        raise click.UsageError("--everywhere and --namespace exclude each other")
    scope = EVERYWHERE if everywhere else namespace
    if database:
        loaded = config.load({"data": data, "namespace": namespace})
        made = run_create_token(
            loaded, name=name, role=Role(role), namespace=scope or loaded.namespace, lives_seconds=life_of(expires)
        )
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
        "Keep it: it can't be shown again. Give it as FOLIOT_TOKEN, or in the header Authorization: Bearer.", err=True
    )


@command.command("revoke")
@click.argument("reference", metavar="NAME_OR_ID")
@json_option
def revoke_command(reference: str, as_json: bool) -> None:
    """Revoke a token: within a few seconds it is refused everywhere."""
    with Operations.from_environment() as client:
        answer = client.revoke_token(reference)
    click.echo(answer.content if as_json else f"{clean(answer.document['name'])} is revoked", err=not as_json)
