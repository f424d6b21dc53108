"""`foliot`: finds the command, loads only what it needs, and turns whatever goes wrong into one line and an exit code.

Exit codes: 0 done, 1 it failed, 2 the command line, what it asks for or the configuration is wrong, 3 the database's
schema does not fit this version, 130 Ctrl-C, 141 whoever read the output went away.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from pathlib import Path
from typing import TextIO

import click
from click.shell_completion import CompletionItem

from foliot import __version__
from foliot.cli.examples import EXAMPLES
from foliot.concealment import conceal
from foliot.config import did_you_mean
from foliot.errors import ConfigurationError, FoliotError, Invalid, SchemaError

FAILED = 1
WRONG = 2
INTERRUPTED = 130
UNREAD = 141
COMPLETION = "_FOLIOT_COMPLETE"

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
    "tasks": "Disable and enable built-in tasks.",
    "token": "List, make and revoke tokens.",
    "audit": "Show who changed what.",
    "bench": "Measure this installation.",
    "migrate": "Bring the database's schema up to date.",
    "cron": "Show what a cron expression means.",
    "check": "Check the configuration and show it.",
    "completion": "Print what makes a shell complete commands.",
}
# The heading, and the command that its part of the list begins with.
HEADINGS = {"Start": "up", "Jobs": "submit", "Runs": "runs", "Operations": "workers"}
EPILOG = """\b
The commands for jobs, runs and operations ask the server at FOLIOT_URL
(http://127.0.0.1:8000) with the token in FOLIOT_TOKEN, in the namespace
FOLIOT_NAMESPACE. `foliot COMMAND --help` has examples.
"""


class LazyGroup(click.Group):
    """Imports a command's module only when it is called: help and errors stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"foliot.cli.commands.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)  # noqa: S101
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in EXAMPLES.get(cmd_name, ()))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}{did_you_mean(name, COMMANDS) or '; see foliot --help'}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The same as click's own, without loading every command for its help."""
        commands = [CompletionItem(name, help=does) for name, does in COMMANDS.items() if name.startswith(incomplete)]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> object:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        firsts = {first: heading for heading, first in HEADINGS.items()}
        parts: dict[str, list[tuple[str, str]]] = {}
        heading = ""
        longest = max(map(len, COMMANDS))
        for name, does in COMMANDS.items():
            heading = firsts.get(name, heading)
            parts.setdefault(heading, []).append((name.ljust(longest), does))
        for heading, commands in parts.items():
            with formatter.section(heading):
                formatter.write_dl(commands)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.version_option(__version__, prog_name="foliot")
@click.option("--namespace", metavar="NAME", help="Work in this namespace, as FOLIOT_NAMESPACE says it.")
def cli(namespace: str | None) -> None:
    """Foliot: cron, one-off and delayed jobs, a durable queue and workflows, on PostgreSQL."""
    if namespace is not None:
        os.environ["FOLIOT_NAMESPACE"] = namespace


def main() -> None:
    conceal()
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can't show a character gets its number, not our traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _exit_code()
    except OSError:
        # There is nobody left who could be told.
        _give_up(sys.stderr)
        code = FAILED
    sys.exit(code)


def _code_of(error: FoliotError) -> int:
    if isinstance(error, SchemaError):
        return error.exit_code
    return WRONG if isinstance(error, ConfigurationError | Invalid) else FAILED


def _exit_code() -> int:
    try:
        if COMPLETION in os.environ:
            cli.main(prog_name="foliot", complete_var=COMPLETION)
        # Not `cli.main`: it has its own words for what goes wrong, and 1 for a reader that went away.
        with cli.make_context("foliot", sys.argv[1:]) as context:
            cli.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except KeyboardInterrupt:
        # As a shell says it of a program that Ctrl-C ended; 1 would say that a job failed.
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        # A question that was answered with no, or not at all.
        click.echo("foliot: nothing was done", err=True)
        return FAILED
    except FoliotError as error:
        click.echo(f"foliot: {error.detail}", err=True)
        return _code_of(error)
    except OSError as error:
        if error.filename is None:
            _give_up(sys.stdout)
        if error.errno == errno.EPIPE:
            return UNREAD
        where = error.filename or "the output can't be written"
        click.echo(f"foliot: {where}: {error.strerror or error}", err=True)
        return FAILED
    return 0


def _give_up(stream: TextIO) -> None:
    """What is still to be written there would fail again when Python ends, and with a traceback."""
    if isinstance(stream, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_what_is_closed() -> None:
    """A program may be started without a standard stream. Then the first file or socket would be opened as that, and be
    written to."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
