"""`foliot doctor`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import click
import msgspec

from foliot.cli.doctor.database import database_report
from foliot.cli.doctor.findings import problem
from foliot.cli.doctor.machine import load_config, machine_report
from foliot.cli.doctor.redaction import redacted, secrets_of
from foliot.cli.doctor.server import server_report
from foliot.clock import SystemClock
from foliot.errors import Invalid

COLOURS = {"problem": "red", "notice": "yellow"}


@click.command()
@click.option(
    "--file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("foliot-doctor.json"),
    show_default=True,
    help="File for the report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report instead of writing a file.")
@click.pass_context
def command(context: click.Context, path: Path, as_json: bool) -> None:
    """Find out what is wrong with an installation, and gather what a maintainer needs to know in one file.

    Looks at this machine, at the database if it is configured here, and at the server at FOLIOT_URL. Any of them may be
    missing. The report has no passwords or tokens and no payloads; it has names of jobs and the last error messages, so
    look through it before you send it. The exit code is 1 if there are problems.
    """
    report = asyncio.run(gathered())
    problems = [finding for finding in report["findings"] if finding["severity"] == "problem"]
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
    else:
        show(report["findings"])
        write(path, report)
        click.echo(f"The report is in {path}.", err=True)
    context.exit(1 if problems else 0)


async def gathered() -> dict[str, Any]:
    config, findings = load_config()
    machine = machine_report(config)
    database, of_database = (None, []) if config is None else await database_report(config)
    server, of_server = await asyncio.to_thread(server_report)
    if config is not None and database is None and server is None:
        findings.append(problem("There is nothing to look at: neither a database nor a server can be found from here."))
    # A server that answers sees the same installation as the database does.
    known = {(finding.text, finding.action): finding for finding in (*findings, *of_database, *of_server)}
    report = {
        "at": SystemClock().now(),
        "findings": sorted(known.values(), key=lambda finding: finding.severity != "problem"),
        "machine": machine,
        "database": database,
        "server": server,
    }
    found: dict[str, Any] = redacted(msgspec.to_builtins(report), secrets_of(config))
    return found


def show(findings: list[dict[str, str]]) -> None:
    for finding in findings:
        click.echo(f"{click.style(finding['severity'], fg=COLOURS[finding['severity']])}: {finding['text']}")
        if finding["action"]:
            click.echo(f"    {finding['action']}")
    if not findings:
        click.echo("Nothing is wrong.")


def write(path: Path, report: dict[str, Any]) -> None:
    """Only its owner can read the file."""
    content = msgspec.json.format(msgspec.json.encode(report)) + b"\n"
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}") from None
