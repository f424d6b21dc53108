"""`foliot cancel`."""

from __future__ import annotations

from typing import Any

import click

from foliot.cli.bulk_runs import change_runs, filters_of, group_options
from foliot.cli.name_completion import run_ids
from foliot.cli.options import json_option
from foliot.cli.short_ids import full_id
from foliot.cli.tables import clean
from foliot.sdk.http_protocol import given
from foliot.sdk.operations import Operations


@click.command()
@click.argument("run_id", metavar="[RUN_ID]", required=False, shell_complete=run_ids)
@click.option("--reason", help="Reason to record.")
@click.option("--force", is_flag=True, help="End the run at once, without waiting for its worker to stop it.")
@group_options
@json_option
def command(run_id: str | None, reason: str | None, force: bool, as_json: bool, **options: Any) -> None:
    """Cancel a run or one-off job, or all matching runs.

    A waiting run is cancelled at once. A running one is asked to stop.
    """
    filters = filters_of(run_id, options)
    with Operations.from_environment() as client:
        if run_id is None:
            request = filters | given(reason=reason, force=force or None)
            change_runs(
                client.cancel_runs,
                "cancel",
                "cancelled",
                request,
                dry_run=options["dry_run"],
                is_sure=options["is_sure"],
                as_json=as_json,
            )
            return
        run_id = full_id(client, run_id)
        answer = client.cancel_run(run_id, reason=reason, force=force)
    if as_json:
        click.echo(answer.content)
        return
    status = answer.document["status"]
    sentence = "was asked to stop" if status == "running" else f"is {clean(status)}"
    click.echo(f"{clean(run_id)} {sentence}", err=True)
