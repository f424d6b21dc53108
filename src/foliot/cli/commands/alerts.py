"""`foliot alerts`: open and past alerts, silences and heartbeats. Rules and channels have files of their own."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from foliot.cli.alert_channels import channels_command, test_command
from foliot.cli.alert_rules import rules
from foliot.cli.columns import Column
from foliot.cli.local_times import LOCAL, local_zone, located
from foliot.cli.options import Choice, given, instant, json_option, seconds
from foliot.cli.output import Output, output_options
from foliot.cli.tables import Cell, at, away, clean, facts, table
from foliot.clock import SystemClock
from foliot.sdk.alert_operations import AlertOperations

HEADERS = (
    Column("ID", "id"),
    "SEVERITY",
    "STATE",
    Column("RULE", "text"),
    Column("SUBJECT", "text"),
    Column("SINCE", leaves=1),
    Column("SUMMARY", "wrapped"),
)
DELIVERIES = ("CHANNEL", "EVENT", "STATE", "TRIES", Column("MADE", leaves=1), Column("ERROR", "wrapped"))
SILENCES = (
    Column("ID", "id"), Column("RULE", "text"), Column("SUBJECT", "text"), "UNTIL", Column("BY", "text", 2),
    Column("REASON", "wrapped"),
)  # fmt: skip
HEARTBEATS = (Column("HEARTBEAT", "text"), "LAST", "COUNT", Column("BY", "text", 2))
COLOURS = {"critical": "red", "warning": "yellow", "info": "cyan", "sent": "green", "failed": "red", "dropped": "red"}


@click.group(invoke_without_command=True)
@click.option(
    "--state", type=Choice(["open", "pending", "resolved"]), help="Only this state.  [default: pending and open]"
)
@click.option("--rule", help="Only alerts of this rule.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of alerts."
)
@output_options
@click.pass_context
def command(context: click.Context, state: str | None, rule: str | None, limit: int, output: Output) -> None:
    """List alerts; show, acknowledge, resolve or silence them; or manage their rules and channels."""
    if output.pass_to_subcommand(context):
        return
    filters = given(state=state, rule=rule)
    with AlertOperations.from_environment() as client:
        output.show(lambda: client.list_alerts(filters, limit=limit), alert_table, nothing="No alerts.")


command.add_command(rules)
command.add_command(channels_command, "channels")
command.add_command(test_command, "test")


def alert_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            alert["id"], Cell(alert["severity"], COLOURS.get(alert["severity"])), state_of(alert), alert["rule"],
            alert["subject"], away(alert["since"], now), alert["summary"],
        )
        for alert in answer["items"]
    ]  # fmt: skip
    return table(HEADERS, rows) if rows else ""


def state_of(alert: dict[str, Any]) -> str:
    return "acknowledged" if alert["state"] == "open" and alert["acknowledged_at"] else str(alert["state"])


@command.command("show")
@click.argument("alert_id", metavar="ALERT_ID")
@output_options
def show_command(alert_id: str, output: Output) -> None:
    """Show an alert and the messages about it."""
    with AlertOperations.from_environment() as client:
        output.show(lambda: client.get_alert(alert_id), alert_text)


def alert_text(answer: dict[str, Any], now: datetime) -> str:
    alert = answer["alert"]
    shown = facts([
        ("alert", alert["id"]),
        ("rule", alert["rule"]),
        ("subject", alert["subject"]),
        ("severity", Cell(alert["severity"], COLOURS.get(alert["severity"]))),
        ("state", state_of(alert)),
        ("since", at(alert["since"], now)),
        ("opened", at(alert["opened_at"], now)),
        ("acknowledged", at(alert["acknowledged_at"], now)),
        ("by", alert["acknowledged_by"]),
        ("note", alert["note"]),
        ("resolved", at(alert["resolved_at"], now)),
        ("resolved by", alert["resolved_by"]),
        ("summary", alert["summary"]),
        ("about", ", ".join(alert["subjects"])),
    ])  # fmt: skip
    rows = [
        (
            one["channel"], one["event"], Cell(one["state"], COLOURS.get(one["state"])), str(one["attempt"]),
            away(one["created_at"], now), one["error"] or "",
        )
        for one in answer["deliveries"]
    ]  # fmt: skip
    output = "\n".join(clean(line) for line in alert["log_tail"].splitlines())
    return "\n\n".join(part for part in (shown, output, table(DELIVERIES, rows) if rows else "") if part)


@command.command("acknowledge")
@click.argument("alert_id", metavar="ALERT_ID")
@click.option("--note", help="A note for others.")
@json_option
def acknowledge_command(alert_id: str, note: str | None, as_json: bool) -> None:
    """Note that somebody takes care of an open alert. Its messages are no longer repeated."""
    with AlertOperations.from_environment() as client:
        answer = client.acknowledge_alert(alert_id, given(note=note))
    click.echo(
        answer.content if as_json else f"{clean(answer.document['alert']['title'])}: acknowledged", err=not as_json
    )


@command.command("resolve")
@click.argument("alert_id", metavar="ALERT_ID")
@json_option
def resolve_command(alert_id: str, as_json: bool) -> None:
    """Resolve an open alert. If its condition still holds, another alert opens."""
    with AlertOperations.from_environment() as client:
        answer = client.resolve_alert(alert_id)
    title = clean(answer.document["alert"]["title"])
    click.echo(answer.content if as_json else f"{title}: resolved within a few seconds", err=not as_json)


@command.command("silence")
@click.argument("rule", required=False)
@click.option("--subject", help="Only alerts of the rule about this job, task or queue.")
@click.option("--all", "is_all", is_flag=True, help="Silence all rules of the namespace.")
@click.option("--reason", required=True, help="Why.")
@click.option("--for", "lasting", type=seconds, metavar="DURATION", help="For how long, such as 2h.")
@click.option("--until", type=instant, metavar="TIME", help="Until an ISO 8601 time.")
@json_option
def silence_command(
    rule: str | None,
    subject: str | None,
    is_all: bool,
    reason: str,
    lasting: float | None,
    until: str | None,
    as_json: bool,
) -> None:
    """Keep the messages of a rule back until a time. Its alerts still open and resolve."""
    if (rule is None) != is_all:
        raise click.UsageError("give either the name of a rule or --all")
    if (lasting is None) == (until is None):
        raise click.UsageError("give either --for or --until")
    if until is not None:
        end = located("--until", until, local_zone(), LOCAL)
    else:
        end = (SystemClock().now() + timedelta(seconds=lasting or 0)).isoformat()
    with AlertOperations.from_environment() as client:
        answer = client.create_silence(given(rule=rule, subject=subject, reason=reason, until=end))
    if as_json:
        click.echo(answer.content)
        return
    made = answer.document
    what = clean(rule) if rule else "all rules"
    click.echo(f"{what}: silent until {at(made['until'], SystemClock().now())}; silence {made['id']}", err=True)


@command.command("silences")
@output_options
def silences_command(output: Output) -> None:
    """List the silences that have not ended."""
    with AlertOperations.from_environment() as client:
        output.show(client.list_silences, silence_table, nothing="No silences.")


def silence_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            one["id"], one["rule"] or "all", one["subject"] or "", away(one["until"], now), one["created_by"],
            one["reason"],
        )
        for one in answer["items"]
    ]  # fmt: skip
    return table(SILENCES, rows) if rows else ""


@command.command("unsilence")
@click.argument("silence_id", metavar="SILENCE_ID")
def unsilence_command(silence_id: str) -> None:
    """End a silence. Open alerts that were kept back are sent."""
    with AlertOperations.from_environment() as client:
        client.delete_silence(silence_id)
    click.echo(f"silence {clean(silence_id)} has ended", err=True)


@command.command("heartbeats")
@output_options
def heartbeats_command(output: Output) -> None:
    """List the heartbeats that rules wait for."""
    with AlertOperations.from_environment() as client:
        output.show(client.list_heartbeats, heartbeat_table, nothing="No rule waits for a heartbeat.")


def heartbeat_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (one["name"], away(one["at"], now) or "never", str(one["number"]), one["by"] or "") for one in answer["items"]
    ]
    return table(HEARTBEATS, rows) if rows else ""
