"""`foliot alerts channels` and `foliot alerts test`.

A secret in an argument could be read by everybody on the machine, so secrets come from a file, from standard input, or
from a prompt.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import yaml

from foliot.cli.columns import Column
from foliot.cli.options import json_option
from foliot.cli.tables import away, clean, facts, table
from foliot.clock import SystemClock
from foliot.config import did_you_mean
from foliot.errors import NotFound
from foliot.model.alert_channel import KINDS, is_reference
from foliot.sdk.operations import Operations

HEADERS = (Column("NAME", "text"), "KIND", Column("DESTINATION", "text", 1), "VERSION", Column("CHANGED", leaves=1))
ASKED = "-"
FILE_MAX_BYTES = 1_048_576
LISTS, NUMBERS = frozenset({"to"}), frozenset({"port"})
# A test may take as long as the delivery of a message.
TEST_SECONDS = 60.0


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def channels_command(context: click.Context, as_json: bool) -> None:
    """List alert channels; or show, set or delete one."""
    if context.invoked_subcommand is not None:
        context.default_map = {context.invoked_subcommand: {"as_json": as_json}}
        return
    list_channels(as_json=as_json)


@channels_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the channels."""
    list_channels(as_json=as_json)


def list_channels(*, as_json: bool) -> None:
    with Operations.from_environment() as client:
        answer = client.list_alert_channels()
    if as_json:
        click.echo(answer.content)
        return
    shown = channel_table(answer.document, SystemClock().now())
    click.echo(shown or "No alert channels.", err=not shown)


def channel_table(found: Mapping[str, Any], now: datetime) -> str:
    rows = [
        (
            one["name"], one["channel"]["kind"], clean(destination_of(one["channel"])), str(one["version"]),
            away(one["updated_at"], now),
        )
        for one in found["items"]
    ]  # fmt: skip
    return table(HEADERS, rows)


def destination_of(channel: Mapping[str, Any]) -> str:
    to = channel.get("to")
    if isinstance(to, list):
        return ", ".join(to)
    return str(to or channel.get("url") or channel.get("webhook_url") or channel.get("routing_key") or "")


@channels_command.command("show")
@click.argument("name")
@json_option
def show_command(name: str, as_json: bool) -> None:
    """Show a channel, with *** in place of its secrets."""
    with Operations.from_environment() as client:
        answer = client.get_alert_channel(name)
    click.echo(answer.content if as_json else described(answer.document))


def described(found: Mapping[str, Any]) -> str:
    fields = [("name", found["name"]), ("version", str(found["version"]))]
    for field, value in found["channel"].items():
        if value is not None:
            fields.append((field, clean(", ".join(value) if isinstance(value, list) else str(value))))
    return facts(fields)


@channels_command.command("set")
@click.argument("name")
@click.argument("fields", nargs=-1, metavar="[KIND] [FIELD=VALUE]...")
@click.option("--file", "path", metavar="FILE", help="YAML or JSON file with all fields of the channel; - is stdin.")
@json_option
def set_command(name: str, fields: Sequence[str], path: str | None, as_json: bool) -> None:
    """Create a channel, or change it.

    With a KIND (email, pagerduty, slack, teams, discord, sms, webhook, apprise), the fields are all that the channel
    has. Without one, the other fields of the channel stay as they are. FIELD= removes a field. FIELD=- asks for a
    secret, or reads it from standard input. env:NAME and file:/path refer to a secret of the server.
    """
    if (path is None) == (not fields):
        raise click.UsageError("give either fields or --file")
    with Operations.from_environment() as client:
        if path is not None:
            answer = client.put_alert_channel(name, from_file(path))
        else:
            has_kind = "=" not in fields[0]
            before, etag = ({"kind": fields[0]}, "") if has_kind else existing(client, name)
            channel = changed(before, fields[1:] if has_kind else fields)
            answer = client.put_alert_channel(name, channel, if_match=etag)
    if as_json:
        click.echo(answer.content)
        return
    click.echo(f"channel {clean(name)} is saved; try it: foliot alerts test {clean(name)}", err=True)


def existing(client: Operations, name: str) -> tuple[dict[str, Any], str]:
    try:
        answer = client.get_alert_channel(name)
    except NotFound:
        raise click.UsageError(f"there is no channel {name!r} yet; give its kind: {', '.join(KINDS)}") from None
    return dict(answer.document["channel"]), answer.etag


def changed(channel: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    kind = str(channel["kind"])
    if kind not in KINDS:
        raise click.UsageError(
            f"there is no kind {kind!r}{did_you_mean(kind, KINDS)}; the kinds are {', '.join(KINDS)}"
        )
    known, found = KINDS[kind].__struct_encode_fields__, dict(channel)
    for text in fields:
        field, is_pair, value = text.partition("=")
        if not is_pair:
            raise click.UsageError(f"{text!r} is not FIELD=VALUE")
        if field not in known:
            raise click.UsageError(
                f"{kind} has no field {field!r}{did_you_mean(field, known)}; the fields are {', '.join(known)}"
            )
        found[field] = value_of(field, value, is_secret=field in KINDS[kind].SECRETS, is_list=kind == "email")
    return {field: value for field, value in found.items() if value is not None}


def value_of(field: str, text: str, *, is_secret: bool, is_list: bool) -> Any:
    if not text:
        return None
    if is_secret and text == ASKED:
        return asked_for(field)
    if is_secret and not is_reference(text):
        # The text is not repeated: it may be the secret.
        raise click.UsageError(
            f"{field}: other users of this machine can read arguments; give {field}=-, which prompts for it, "
            "a reference such as env:NAME, or --file"
        )
    if field in LISTS and is_list:
        return [part.strip() for part in text.split(",")]
    if field in NUMBERS:
        return number(field, text)
    return text


def number(field: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise click.UsageError(f"{field}: {text!r} is not a number")
    return int(text)


def asked_for(field: str) -> str:
    if sys.stdin.isatty():
        return str(click.prompt(field, hide_input=True, err=True))
    return sys.stdin.readline(FILE_MAX_BYTES).rstrip("\r\n")


def from_file(path: str) -> dict[str, Any]:
    try:
        with click.open_file(path, encoding="utf-8") as file:
            found = yaml.safe_load(file.read(FILE_MAX_BYTES))
    except UnicodeDecodeError:
        raise click.UsageError(f"{path}: it is not UTF-8 text") from None
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        where = f"line {place.line + 1}" if place is not None else "it"
        # The content is not quoted: it has secrets.
        raise click.UsageError(f"{path}: {where} is not YAML or JSON") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"{path}: it must contain one object with the fields of a channel")
    return found


@channels_command.command("delete")
@click.argument("name")
def delete_command(name: str) -> None:
    """Delete a channel that no rule names. Messages that still wait for it fail."""
    with Operations.from_environment() as client:
        client.delete_alert_channel(name)
    click.echo(f"channel {clean(name)} is deleted", err=True)


@channels_command.command("seal")
@json_option
def seal_command(as_json: bool) -> None:
    """Encrypt all secrets with the first key of secret_key, so that older keys can go."""
    with Operations.from_environment() as client:
        answer = client.seal_alert_channels()
    click.echo(answer.content if as_json else f"{answer.document['changed']} channels changed", err=not as_json)


@click.command()
@click.argument("name")
@json_option
@click.pass_context
def test_command(context: click.Context, name: str, as_json: bool) -> None:
    """Send a test message by a channel. The exit code is 1 if the other side did not accept it."""
    with Operations.from_environment(answer_seconds=TEST_SECONDS) as client:
        answer = client.test_alert_channel(name)
    is_delivered = bool(answer.document["is_delivered"])
    if as_json:
        click.echo(answer.content)
    elif is_delivered:
        click.echo(f"the test message was delivered by {clean(name)}", err=True)
    else:
        click.secho(f"not delivered: {clean(answer.document['error'])}", fg="red", err=True)
    if not is_delivered:
        context.exit(1)
