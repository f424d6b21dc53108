"""`foliot trigger`."""

from __future__ import annotations

import click

from foliot.cli.commands.pause import change_group, group_of, group_options
from foliot.cli.name_completion import job_names
from foliot.cli.options import json_option
from foliot.cli.short_ids import job_reference
from foliot.cli.tables import clean
from foliot.model.ids import new_id
from foliot.sdk.client import Client


@click.command()
@click.argument("reference", metavar="[NAME_OR_ID]", required=False, shell_complete=job_names)
@group_options
@json_option
def command(reference: str | None, is_sure: bool, as_json: bool, **filters: str | None) -> None:
    """Run a recurring job now, in addition to its schedule, and print the id of the run; or run all matching jobs."""
    group = group_of(reference, filters)
    with Client.from_environment() as client:
        if reference is None:
            # With a key, the request can be repeated if its answer gets lost.
            keyed = {**group, "idempotency_key": f"trigger:{new_id()}"}
            change_group(client.trigger_jobs, "trigger", keyed, is_sure=is_sure, as_json=as_json, past="triggered")
            return
        answer = client.trigger_job(job_reference(client, reference))
    if as_json:
        click.echo(answer.content)
        return
    click.echo(answer.document["id"])
    click.echo(f"{clean(reference)} was triggered; see: foliot jobs show {answer.document['id']}", err=True)
