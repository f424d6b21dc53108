"""Jobs from another scheduler: shown as a dry run, compared with the server's, created, or printed as YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click
import msgspec
import yaml

from foliot.cli.apply_plan import Policy, Step, as_items, carry_out, find_steps, finish, show
from foliot.cli.job_files import Check, Declared, declared_document
from foliot.cli.server_check import ServerCheck
from foliot.cli.tables import clean
from foliot.errors import Invalid, Unreachable
from foliot.sdk.client import Client


class PlainDumper(yaml.SafeDumper):
    """Writes equal values out each time, because people read anchors badly."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Note:
    """A difference from the other scheduler."""

    line: int
    """The line of the source; 0 if it has no lines."""
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    line: int
    fields: Mapping[str, Any]
    """The fields of the job as in the API; those of a workflow have `kind` too."""


@dataclass(slots=True)
class Imported:
    entries: list[Entry] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    left_out: list[Note] = field(default_factory=list)
    """Parts of the source that become no job, with the reason."""


@dataclass(frozen=True, slots=True)
class Import:
    """An import from one source, with the choices of the command line."""

    found: Imported
    source: str
    kind: str
    """Such as "crontab". With the name of the source, it identifies the jobs of an earlier import."""
    queue: str | None = None
    is_applying: bool = False
    is_printing_yaml: bool = False
    is_adopting: bool = False
    as_json: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the JSON output."""

    def run(self) -> None:
        if self.is_printing_yaml and not self.is_applying:
            self._print_yaml()
            return
        try:
            steps = self._steps()
        except Unreachable as error:
            if self.is_applying or self.as_json:
                raise
            click.echo(f"foliot: {error.detail}", err=True)
            click.echo("These jobs are not compared with those of a server:", err=True)
            self._print_yaml()
            return
        if self.as_json:
            remarks = {"notes": self.found.notes, "left_out": self.found.left_out}
            document = {"dry_run": not self.is_applying, **self.more, "items": as_items(steps), **remarks}
            click.echo(msgspec.json.encode(document))
        else:
            click.echo(show(steps, is_dry_run=not self.is_applying))
            self._print_remarks()
        finish(steps)
        self._exit_if_incomplete()

    def _steps(self) -> list[Step]:
        """Compares the jobs with the server's, and makes the changes if wanted."""
        with Client.from_environment() as client:
            server_check = ServerCheck(client)
            declared = self._declared(server_check.check)
            policy = Policy(f"{self.kind} {self.source}", is_adopting=self.is_adopting, takes_unmarked=False)
            steps = find_steps(client, declared, server_check.answers(), policy, is_quiet=self.as_json)
            return carry_out(client, steps, is_quiet=self.as_json) if self.is_applying else steps

    def _print_yaml(self) -> None:
        """Prints the jobs as a file for `foliot apply`, without a server."""
        jobs = self._declared(lambda _job, _names: None)
        for job in jobs:
            kind = {"kind": "workflow"} if "steps" in (job.source or {}) else {}
            fields = {**kind, "name": job.name, **(job.source or job.fields)}
            click.echo(f"---\n{yaml.dump(fields, Dumper=PlainDumper, sort_keys=False, allow_unicode=True)}", nl=False)
        self._print_remarks()
        click.echo(f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}; to create them: foliot apply FILE", err=True)
        self._exit_if_incomplete()

    def _declared(self, check: Check) -> list[Declared]:
        """Leaves out jobs that the server would reject."""
        more = {"queue": self.queue} if self.queue else {}
        found = []
        for entry in self.found.entries:
            try:
                job = declared_document({**entry.fields, **more}, self.source, entry.line)
                check(job, ())
                found.append(job)
            except Invalid as error:
                self.found.left_out.append(Note(entry.line, f"{entry.fields['name']}: {error.detail}"))
        return found

    def _print_remarks(self) -> None:
        for what, notes in (("note", self.found.notes), ("left out", self.found.left_out)):
            for note in notes:
                place = f"{clean(self.source)}:{note.line}" if note.line else clean(self.source)
                click.echo(f"{what}: {place}: {clean(note.text)}", err=True)

    def _exit_if_incomplete(self) -> None:
        if self.found.left_out:
            raise click.exceptions.Exit(1)
