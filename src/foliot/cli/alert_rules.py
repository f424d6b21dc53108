"""`foliot alerts rules`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
import msgspec

from foliot.cli.columns import Column
from foliot.cli.options import json_option, json_value
from foliot.cli.output import Output, output_options
from foliot.cli.tables import Cell, away, clean, facts, table
from foliot.sdk.alert_operations import AlertOperations

HEADERS = (
    Column("RULE", "text"),
    "CONDITION",
    "SEVERITY",
    Column("SCOPE", "text", 2),
    Column("CHANNELS", "text"),
    Column("CHANGED", leaves=1),
)


@click.group("rules", invoke_without_command=True)
@output_options
@click.pass_context
def rules(context: click.Context, output: Output) -> None:
    """List alert rules; show, put or delete one. `foliot apply` reads them from files."""
    if output.pass_to_subcommand(context):
        return
    with AlertOperations.from_environment() as client:
        output.show(client.list_alert_rules, rule_table, nothing="No alert rules.")


def rule_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            one["name"],
            one["rule"]["condition"]["kind"],
            one["rule"]["severity"] if one["rule"]["enabled"] else Cell("off", "yellow"),
            scope_of(one["rule"]),
            ", ".join(one["rule"]["channels"]),
            away(one["updated_at"], now),
        )
        for one in answer["items"]
    ]
    return table(HEADERS, rows) if rows else ""


def scope_of(rule: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in rule["scope"].items() if value)


@rules.command("show")
@click.argument("name")
@output_options
def show_command(name: str, output: Output) -> None:
    """Show a rule."""
    with AlertOperations.from_environment() as client:
        output.show(lambda: client.get_alert_rule(name), rule_text)


def rule_text(one: dict[str, Any], now: datetime) -> str:
    rule, condition = one["rule"], one["rule"]["condition"]
    return facts([
        ("rule", one["name"]),
        ("condition", condition["kind"]),
        *[(f"  {name}", _shown(value)) for name, value in condition.items() if name != "kind" and value is not None],
        ("scope", scope_of(rule)),
        ("severity", rule["severity"]),
        ("channels", ", ".join(rule["channels"])),
        ("for", rule["for"]),
        ("repeat", rule["repeat"] or "never"),
        ("enabled", "yes" if rule["enabled"] else "no"),
        ("description", rule["description"]),
        ("changed", f"{away(one['updated_at'], now)} by {one['updated_by']}"),
    ])  # fmt: skip


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@rules.command("put")
@click.argument("name")
@click.argument("rule", type=json_value, metavar="JSON")
@json_option
def put_command(name: str, rule: msgspec.Raw, as_json: bool) -> None:
    """Create a rule, or replace it. JSON is the rule as in the API, @FILE, or - for standard input."""
    fields = msgspec.json.decode(rule)
    if not isinstance(fields, dict):
        raise click.BadParameter("a rule is a JSON object", param_hint="JSON")
    with AlertOperations.from_environment() as client:
        answer = client.put_alert_rule(name, fields)
    stored = f"{clean(name)}: version {answer.document['version']}"
    click.echo(answer.content if as_json else stored, err=not as_json)


@rules.command("delete")
@click.argument("name")
def delete_command(name: str) -> None:
    """Delete a rule. Its alerts resolve without a message."""
    with AlertOperations.from_environment() as client:
        client.delete_alert_rule(name)
    click.echo(f"{clean(name)} was deleted", err=True)
