"""`foliot`: finds the command, loads only what it needs, and turns our errors into one line and an exit code.

Exit codes: 0 done, 1 it failed, 2 the command line, what it asks for or the configuration is wrong, 130 Ctrl-C.
"""

from __future__ import annotations

import importlib
import io
import os
import sys

import click

from foliot import __version__
from foliot.errors import ConfigurationError, FoliotError, Invalid

INTERRUPTED = 130

COMMANDS = {
    "up": "Run everything on this machine.",
    "server": "Run the HTTP API.",
    "scheduler": "Run a scheduler node.",
    "worker": "Run a worker node.",
    "submit": "Submit a job, one-off or recurring.",
    "apply": "Make the jobs what files say.",
    "import-crontab": "Turn a crontab into jobs.",
    "jobs": "List recurring jobs; show or delete a job.",
    "ticks": "Show what became of a job's ticks.",
    "pause": "Pause a job, a queue, a task or everything.",
    "resume": "Resume what is paused.",
    "trigger": "Run recurring jobs once now.",
    "backfill": "Run a job's ticks of the past.",
    "runs": "List runs; show one with its attempts.",
    "logs": "Show what a run writes.",
    "events": "Show what happens to runs.",
    "cancel": "Cancel a run, or all that fit.",
    "rerun": "Run once more what has ended.",
    "dead": "Show, list and replay failed runs.",
    "workflows": "List workflows; show, submit, cancel or redrive one.",
    "signal": "Let a run start that waits for a signal.",
    "workers": "List the workers; drain one.",
    "queues": "List the queues.",
    "explain": "Say why something does not run.",
    "token": "List, make and revoke tokens.",
    "audit": "Show who changed what.",
    "migrate": "Bring the database's schema up to date.",
    "cron": "Show what a cron expression means.",
    "check": "Check the configuration and show it.",
}


class LazyGroup(click.Group):
    """Imports a command's module only when it is called: help and errors stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"foliot.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def invoke(self, ctx: click.Context) -> object:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # As a shell says it of a program that Ctrl-C ended; 1 would say that a job failed.
            ctx.exit(INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="foliot")
def cli() -> None:
    """Foliot: cron, one-off and delayed jobs, a durable queue and workflows, on PostgreSQL."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can't show a character gets its number, not our traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        cli(prog_name="foliot")
    except FoliotError as error:
        click.echo(f"foliot: {error.detail}", err=True)
        sys.exit(2 if isinstance(error, ConfigurationError | Invalid) else 1)
