"""`foliot check`."""

from __future__ import annotations

import click
import msgspec

from foliot import config


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Check and show the configuration, and warn about likely mistakes."""
    loaded = config.load()
    values = {name: config.shown(name, value) for name, value in msgspec.to_builtins(loaded).items()}
    warnings = loaded.warnings()
    if as_json:
        click.echo(msgspec.json.encode({"settings": values, "warnings": warnings}))
        return
    for name, value in values.items():
        click.echo(f"{name} = {value!r}")
    for warning in warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)
