"""`foliot apply`: jobs as files."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from foliot.cli.apply_plan import Policy, as_items, carry_out, find_steps, finish, show
from foliot.cli.job_files import Faulty, read_files
from foliot.cli.options import json_option
from foliot.cli.server_check import Checker
from foliot.sdk.client import Client


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option(
    "--prune",
    is_flag=True,
    help="Delete jobs that an earlier apply of the same set made and that are declared no more.",
)
@click.option(
    "--set", "set_name", help="The name under which these files belong together.  [default: their full paths]"
)
@click.option("--adopt", is_flag=True, help="Take over jobs that belong to another set.")
@json_option
def command(
    files: tuple[str, ...], dry_run: bool, prune: bool, set_name: str | None, adopt: bool, as_json: bool
) -> None:
    """Make the recurring jobs of the server what files say.

    FILE is YAML or JSON, a directory of such files, or - for standard input. A document is a job with the fields of the
    API, and a name; or a list of such. Jobs that are there and the same are left alone. The server checks every job
    before anything is done, with --dry-run too, and all errors are shown at once. Exit code 0: done; 1: the server
    refused something; 2: the files are wrong, and nothing was done.
    """
    policy = Policy(set_name or set_of(files), is_pruning=prune, is_adopting=adopt)
    with Client.from_environment() as client:
        checker = Checker(client)
        try:
            declared = read_files(files, checker.look)
        except Faulty as error:
            if as_json:
                click.echo(msgspec.json.encode({"errors": error.faults}))
            for fault in error.faults:
                click.echo(f"foliot: {fault}", err=True)
            raise click.exceptions.Exit(2) from None
        steps = find_steps(client, declared, checker.answers(), policy, is_quiet=as_json)
        if not dry_run:
            steps = carry_out(client, steps, is_quiet=as_json)
    if as_json:
        click.echo(msgspec.json.encode({"dry_run": dry_run, "set": policy.set_name, "items": as_items(steps)}))
    else:
        click.echo(show(steps, is_dry_run=dry_run))
    finish(steps)


def set_of(files: tuple[str, ...]) -> str:
    """The same for the same files, whatever they hold, and different for those of another project."""
    return " ".join(sorted({"-" if file == "-" else str(Path(file).resolve()) for file in files}))
