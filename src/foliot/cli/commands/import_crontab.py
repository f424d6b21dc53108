"""`foliot import-crontab`."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from pathlib import Path

import click
import msgspec

from foliot.cli.apply_plan import Policy, as_items, carry_out, find_steps, finish, show
from foliot.cli.crontab_file import Crontab, Note, parse_crontab
from foliot.cli.job_files import Declared, declared_job
from foliot.cli.options import json_option
from foliot.cli.server_check import ServerCheck
from foliot.cli.tables import clean
from foliot.errors import Invalid
from foliot.sdk.client import Client
from foliot.triggers.zones import zone_named

ZONE_FILES = "zoneinfo/"
LOCAL_TIME, ZONE_NAME = Path("/etc/localtime"), Path("/etc/timezone")


@click.command()
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--apply", "is_applying", is_flag=True, help="Create the jobs. Without this option, they are only shown.")
@click.option(
    "--system", "has_users", is_flag=True, help="Read the sixth column as a user, as in /etc/crontab and /etc/cron.d."
)
@click.option("--timezone", metavar="ZONE", help="Time zone of entries without CRON_TZ.  [default: this machine's]")
@click.option("--queue", help="Queue for the jobs.")
@click.option("--adopt", is_flag=True, help="Take over jobs of the same name that were not imported from this crontab.")
@json_option
def command(
    file: str | None,
    is_applying: bool,
    has_users: bool,
    timezone: str | None,
    queue: str | None,
    adopt: bool,
    as_json: bool,
) -> None:
    """Import a crontab as recurring jobs. Without --apply, only show the jobs.

    FILE is a crontab, or - for standard input. Without FILE, your own crontab is read (crontab -l). The comment right
    above an entry becomes the name of its job. Each line that can't be imported faithfully is reported. Importing the
    same crontab again changes only the jobs whose entries changed.

    Exit codes: 0 every entry became a job; 1 some entries did not; 2 the crontab can't be read.
    """
    zone = timezone or local_zone()
    zone_named(zone)
    text, source = _content(file)
    crontab = parse_crontab(text, zone=zone, has_users=has_users)
    with Client.from_environment() as client:
        server_check = ServerCheck(client)
        declared = _declared(crontab, source, {"queue": queue} if queue else {}, server_check)
        policy = Policy(f"crontab {source}", is_adopting=adopt, takes_unmarked=False)
        steps = find_steps(client, declared, server_check.answers(), policy, is_quiet=as_json)
        if is_applying:
            steps = carry_out(client, steps, is_quiet=as_json)
    if as_json:
        remarks = {"notes": crontab.notes, "left_out": crontab.left_out}
        click.echo(
            msgspec.json.encode({"dry_run": not is_applying, "timezone": zone, "items": as_items(steps), **remarks})
        )
    else:
        click.echo(show(steps, is_dry_run=not is_applying))
        for note in crontab.notes:
            click.echo(_remark("note", source, note), err=True)
        for note in crontab.left_out:
            click.echo(_remark("left out", source, note), err=True)
    finish(steps)
    if crontab.left_out:
        raise click.exceptions.Exit(1)


def local_zone() -> str:
    """The name of this machine's time zone, which its cron uses; UTC if it is unknown."""
    named = os.environ.get("TZ", "").lstrip(":")
    linked = str(LOCAL_TIME.resolve()).partition(ZONE_FILES)[2] if LOCAL_TIME.is_symlink() else ""
    written = ZONE_NAME.read_text(encoding="utf-8").strip() if ZONE_NAME.is_file() else ""
    for name in (named, linked, written):
        try:
            zone_named(name)
        except Invalid:
            continue
        return name
    return "UTC"


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


def _declared(crontab: Crontab, source: str, more: dict[str, str], server_check: ServerCheck) -> list[Declared]:
    """Leaves out entries that the server would reject."""
    found = []
    for entry in crontab.entries:
        try:
            job = declared_job({**entry.fields, **more}, source, entry.line)
            server_check.check(job, ())
            found.append(job)
        except Invalid as error:
            crontab.left_out.append(Note(entry.line, error.detail))
    return found


def _remark(what: str, source: str, note: Note) -> str:
    return f"{what}: {clean(source)}:{note.line}: {clean(note.text)}"
