"""`foliot rerun`."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from foliot.cli.bulk_runs import change_runs, filters_of, group_options
from foliot.cli.name_completion import run_ids
from foliot.cli.options import json_option, json_value
from foliot.cli.short_ids import full_id
from foliot.cli.tables import clean
from foliot.sdk.operations import Operations


@click.command()
@click.argument("run_id", metavar="[RUN_ID]", required=False, shell_complete=run_ids)
@click.option(
    "--payload",
    type=json_value,
    metavar="JSON",
    help="New payload: JSON, @FILE, or - for standard input.",
)
@click.option("--keep-checkpoints", is_flag=True, help="Continue after the recorded steps of a durable function.")
@group_options
@json_option
def command(
    run_id: str | None, payload: msgspec.Raw | None, keep_checkpoints: bool, as_json: bool, **options: Any
) -> None:
    """Rerun a finished run, whatever its outcome, and print the id of the new run; or rerun all matching runs.

    With filters, runs that have been rerun are left out.
    """
    filters = filters_of(run_id, options)
    if run_id is None and payload is not None:
        raise click.UsageError("--payload: can be used only with a RUN_ID")
    if run_id is None and keep_checkpoints:
        raise click.UsageError("--keep-checkpoints: can be used only with a RUN_ID")
    with Operations.from_environment() as client:
        if run_id is None:
            change_runs(
                client.rerun_runs,
                "rerun",
                "rerun",
                filters,
                dry_run=options["dry_run"],
                is_sure=options["is_sure"],
                as_json=as_json,
            )
            return
        run_id = full_id(client, run_id)
        answer = client.rerun(run_id, payload=payload, keep_checkpoints=keep_checkpoints)
    if as_json:
        click.echo(answer.content)
        return
    click.echo(answer.document["id"])
    click.echo(f"{clean(run_id)} was submitted again; see: foliot runs show {answer.document['id']}", err=True)
