"""`foliot pauses`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click
import msgspec

from foliot.cli.columns import Column
from foliot.cli.output import Output, output_options
from foliot.cli.tables import Cell, away, table
from foliot.sdk.client import Client
from foliot.sdk.http_protocol import Answer, Document

HEADERS = (
    "PAUSED",
    "SINCE",
    Column("UNTIL", leaves=1),
    Column("BY", "text", 2),
    Column("REASON", "text", 3),
    Column("END IT WITH", "wrapped"),
)


@click.command()
@output_options
def command(output: Output) -> None:
    """List all pauses of queues, tasks, recurring jobs or everything, and all tasks whose circuit breaker is open.

    The last column shows the command that ends the pause.
    """
    with Client.from_environment() as client:
        output.show(lambda: all_pauses(client), pause_table, nothing="Nothing is paused.")


def all_pauses(client: Client) -> Answer:
    """The answers of three routes as one document."""
    found = {
        "pauses": [one for one in client.list_pauses().document["items"] if one["kind"] != "job"],
        "circuits": [one for one in client.list_circuits().document["items"] if one["open_until"]],
        "jobs": [
            {name: job[name] for name in ("id", "name", "paused_until", "paused_reason")}
            for job in client.list_jobs(paused=True).document["items"]
        ],
    }
    return Answer(msgspec.json.encode(found), Document(found))


def pause_table(found: Mapping[str, Any], now: datetime) -> str:
    rows = [
        (
            Cell("everything" if pause["kind"] == "everything" else f"{pause['kind']} {pause['name']}", "yellow"),
            away(pause["paused_at"], now), away(pause["until_at"], now), pause["actor"] or "", pause["reason"] or "",
            "foliot resume --everything" if pause["kind"] == "everything"
            else f"foliot resume --{pause['kind']} {shlex.quote(pause['name'])}",
        )
        for pause in found["pauses"]
    ]  # fmt: skip
    rows += [
        (
            Cell(f"circuit of {one['task']}", "red"), "", away(one["open_until"], now), "",
            f"{one['failures']} failures in a row", f"foliot resume --circuit {shlex.quote(one['task'])}",
        )
        for one in found["circuits"]
    ]  # fmt: skip
    rows += [
        (
            Cell(f"job {job['name']}", "yellow"), "", away(job["paused_until"], now), "",
            job["paused_reason"] or "", f"foliot resume {shlex.quote(job['name'])}",
        )
        for job in found["jobs"]
    ]  # fmt: skip
    return table(HEADERS, rows)
