"""`foliot import`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from foliot.cli.commands.import_crontab import command as import_crontab
from foliot.cli.imports.airflow_file import read_dags
from foliot.cli.imports.celery_schedule import load_celery_app, read_beat_schedule
from foliot.cli.imports.imported_jobs import Import, Imported, Note
from foliot.cli.options import json_option
from foliot.errors import Invalid


@click.group()
def command() -> None:
    """Import schedules of other schedulers. Without --apply, only show the jobs."""


def import_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        json_option,
        click.option("--adopt", is_flag=True, help="Take over jobs of the same name that were not imported from here."),
        click.option(
            "--yaml",
            "is_printing_yaml",
            is_flag=True,
            help="Print the jobs as YAML for foliot apply, without a server.",
        ),
        click.option("--queue", help="Queue for the jobs."),
        click.option(
            "--apply", "is_applying", is_flag=True, help="Create the jobs. Without this option, they are only shown."
        ),
    ):
        function = option(function)
    return function


@command.command("celery-beat")
@click.argument("module", metavar="MODULE[:APP]")
@import_options
def celery_beat(module: str, **options: Any) -> None:
    """Import the beat_schedule of a Celery app as recurring jobs.

    MODULE is imported, as by `celery -A MODULE`, so run this where your Celery app runs. Notes list your tasks, and
    each setting that has no equal. Importing the same app again changes only the jobs whose entries changed.

    Exit codes: 0 every entry became a job; 1 some entries did not; 2 the app can't be imported.
    """
    deliver(read_beat_schedule(load_celery_app(module)), module, "celery-beat", **options)


@command.command()
@click.argument("file", metavar="DAG.py")
@import_options
def airflow(file: str, **options: Any) -> None:
    """Import the DAGs of an Airflow file as scheduled workflows.

    The file is read and never executed, so Airflow need not be installed. Operators for commands, HTTP requests and
    files become built-in tasks; other operators become tasks that you write, and notes name them. A DAG without a
    schedule is only printed by --yaml; start it with `foliot workflows submit`.

    Exit codes: 0 everything was mapped; 1 something was left out; 2 the file can't be read.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except OSError as error:
        raise Invalid(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Invalid(f"{file}: invalid UTF-8 at byte {error.start}") from None
    found = read_dags(text, file)
    if not options["is_printing_yaml"]:
        leave_out_unscheduled(found)
    deliver(found, file if file == "-" else str(Path(file).resolve()), "airflow", **options)


def leave_out_unscheduled(found: Imported) -> None:
    """A workflow without a schedule would run as soon as it is applied."""
    for entry in list(found.entries):
        if not {"cron", "every"} & entry.fields.keys():
            found.entries.remove(entry)
            text = f"{entry.fields['name']} has no schedule: print it with --yaml, and start it by workflows submit"
            found.left_out.append(Note(entry.line, text))


def deliver(
    found: Imported,
    source: str,
    kind: str,
    *,
    queue: str | None,
    is_applying: bool,
    is_printing_yaml: bool,
    adopt: bool,
    as_json: bool,
) -> None:
    Import(
        found,
        source,
        kind,
        queue=queue,
        is_applying=is_applying,
        is_printing_yaml=is_printing_yaml,
        is_adopting=adopt,
        as_json=as_json,
    ).run()


command.add_command(import_crontab, "crontab")
