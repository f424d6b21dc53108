"""`foliot apply`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from foliot.cli.apply_plan import (
    Policy,
    as_items,
    carry_out,
    find_rule_steps,
    find_source_steps,
    find_steps,
    finish,
    show,
)
from foliot.cli.job_files import Declared, InvalidFiles, read_files
from foliot.cli.options import json_option
from foliot.cli.rule_files import DeclaredRule
from foliot.cli.server_check import ServerCheck
from foliot.cli.source_files import DeclaredSource
from foliot.sdk.alert_operations import AlertOperations
from foliot.sdk.source_operations import SourceOperations


class ApplyClient(AlertOperations, SourceOperations):
    """A client for everything that files declare."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@click.option(
    "--prune",
    is_flag=True,
    help="Delete jobs that an earlier apply of the same set created and that the files no longer declare.",
)
@click.option("--set", "set_name", help="Name of the set that these files form.  [default: their full paths]")
@click.option("--adopt", is_flag=True, help="Take over jobs that belong to another set.")
@json_option
def command(
    files: tuple[str, ...], dry_run: bool, prune: bool, set_name: str | None, adopt: bool, as_json: bool
) -> None:
    """Create, change and delete recurring jobs to match files; create and change alert rules and sources.

    FILE is a YAML or JSON file, a directory of such files, or - for standard input. Each document is a job with the
    fields of the API and a name, or a list of such jobs; with `kind: alert_rule` it is an alert rule, and with
    `kind: source` a source of jobs. Unchanged documents are left alone. The server checks every job before any change,
    also with --dry-run, and all errors are shown at once.

    Exit codes: 0 success; 1 the server rejected something; 2 the files are invalid and nothing was changed.
    """
    policy = Policy(set_name or default_set_name(files), is_pruning=prune, is_adopting=adopt)
    with ApplyClient.from_environment() as client:
        server_check = ServerCheck(client)
        try:
            declared = read_files(files, server_check.check)
        except InvalidFiles as error:
            if as_json:
                click.echo(msgspec.json.encode({"errors": error.errors}))
            for found in error.errors:
                click.echo(f"foliot: {found}", err=True)
            raise click.exceptions.Exit(2) from None
        jobs = [one for one in declared if isinstance(one, Declared)]
        steps = find_steps(client, jobs, server_check.answers(), policy, is_quiet=as_json)
        steps += find_rule_steps(client, [one for one in declared if isinstance(one, DeclaredRule)])
        steps += find_source_steps(client, [one for one in declared if isinstance(one, DeclaredSource)])
        if not dry_run:
            steps = carry_out(client, steps, is_quiet=as_json)
    if as_json:
        click.echo(msgspec.json.encode({"dry_run": dry_run, "set": policy.set_name, "items": as_items(steps)}))
    else:
        click.echo(show(steps, is_dry_run=dry_run))
    finish(steps)


def default_set_name(files: tuple[str, ...]) -> str:
    """A set name that depends only on the paths, so that it is stable and differs between projects."""
    return " ".join(sorted({"-" if file == "-" else str(Path(file).resolve()) for file in files}))
