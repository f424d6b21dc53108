"""`foliot import-crontab`."""

from __future__ import annotations

import getpass
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import click

from foliot.cli.imports.crontab_file import parse_crontab
from foliot.cli.imports.imported_jobs import Entry, Import, Imported, Note
from foliot.cli.local_times import local_zone
from foliot.cli.options import json_option
from foliot.errors import Invalid
from foliot.triggers.zones import zone_named


@click.command()
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--apply", "is_applying", is_flag=True, help="Create the jobs. Without this option, they are only shown.")
@click.option(
    "--system", "has_users", is_flag=True, help="Read the sixth column as a user, as in /etc/crontab and /etc/cron.d."
)
@click.option("--timezone", metavar="ZONE", help="Time zone of entries without CRON_TZ.  [default: this machine's]")
@click.option("--queue", help="Queue for the jobs.")
@click.option(
    "--yaml", "is_printing_yaml", is_flag=True, help="Print the jobs as YAML for foliot apply, without a server."
)
@click.option("--adopt", is_flag=True, help="Take over jobs of the same name that were not imported from this crontab.")
@json_option
def command(
    file: str | None,
    is_applying: bool,
    has_users: bool,
    timezone: str | None,
    queue: str | None,
    is_printing_yaml: bool,
    adopt: bool,
    as_json: bool,
) -> None:
    """Import a crontab as recurring jobs. Without --apply, only show the jobs.

    FILE is a crontab, or - for standard input. Without FILE, your own crontab is read (crontab -l). The comment right
    above an entry, or else its program, becomes the name of its job. Each line that can't be imported faithfully is
    reported. Importing the same crontab again changes only the jobs whose entries changed.

    If no server answers, the jobs are printed as YAML for `foliot apply`.

    Exit codes: 0 every entry became a job; 1 some entries did not; 2 the crontab can't be read.
    """
    zone = timezone or local_zone()
    zone_named(zone)
    text, source = _content(file)
    crontab = parse_crontab(text, zone=zone, has_users=has_users)
    crontab.notes.extend(user_notes(crontab) if not has_users else [])
    Import(
        crontab,
        source,
        "crontab",
        queue=queue,
        is_applying=is_applying,
        is_printing_yaml=is_printing_yaml,
        is_adopting=adopt,
        as_json=as_json,
        more={"timezone": zone},
    ).run()


def _content(file: str | None) -> tuple[str, str]:
    """The text of the crontab and a name for it."""
    try:
        if file is None:
            return _own_crontab(), f"of {getpass.getuser()}"
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return content.decode(), "-" if file == "-" else str(Path(file).resolve())
    except OSError as error:
        raise Invalid(f"{file or 'crontab -l'}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Invalid(f"{file or 'crontab -l'}: invalid UTF-8 at byte {error.start}") from None


def _own_crontab() -> str:
    try:
        listed = subprocess.run(["crontab", "-l"], capture_output=True, check=False)  # noqa: S607
    except FileNotFoundError:
        raise Invalid("the program crontab is not installed; give a FILE, or - for standard input") from None
    if listed.returncode:
        raise Invalid(f"crontab -l: {listed.stderr.decode('utf-8', 'replace').strip()}")
    return listed.stdout.decode()


def user_notes(crontab: Imported) -> list[Note]:
    """Warns of commands that begin with the name of a user, as they do in /etc/crontab."""
    return [
        Note(
            entry.line,
            f"the command begins with {first!r}, which is a user of this machine: use --system if this is a crontab "
            "with a column for users, such as /etc/crontab",
        )
        for entry in crontab.entries
        for first, *rest in [command_of(entry).split()]
        if rest and not rest[0].startswith("-") and is_user(first)
    ]


def command_of(entry: Entry) -> str:
    payload = entry.fields["payload"]
    return str(payload["command"] if "command" in payload else payload["argv"][-1])


def is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except (KeyError, ValueError):
        return False
    return shutil.which(name) is None
