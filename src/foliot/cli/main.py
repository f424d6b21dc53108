"""The `foliot` program: finds the command, imports only that, and turns every error into one line and an exit code.

Exit codes: 0 success, 1 failure, 2 invalid command line, request or configuration, 3 the database schema does not fit
this version, 130 Ctrl-C, 141 the reader of the output went away.
"""

from __future__ import annotations

import errno
import importlib
import io
import keyword
import os
import sys
from pathlib import Path
from typing import TextIO

import click
from click.shell_completion import CompletionItem

from foliot import __version__
from foliot.cli.examples import EXAMPLES
from foliot.config import did_you_mean
from foliot.errors import ApplicationError, ConfigurationError, FoliotError, Invalid, SchemaError
from foliot.process_hardening import harden

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
    "apply": "Create, change and delete jobs to match files.",
    "import": "Import schedules of Celery beat and Airflow.",
    "import-crontab": "Import a crontab as recurring jobs.",
    "jobs": "List recurring jobs; show or delete a job.",
    "ticks": "Show the outcome of each tick of a job.",
    "pause": "Pause a job, a queue, a task or everything.",
    "resume": "Resume a job, a queue, a task or everything.",
    "pauses": "List all pauses, and how to end them.",
    "trigger": "Run a recurring job now.",
    "backfill": "Run past ticks of a job.",
    "runs": "List runs; show a run and its attempts.",
    "logs": "Show the output of a run.",
    "history": "List, query and export history in the archive.",
    "events": "Show or follow the events of runs.",
    "cancel": "Cancel a run, or all matching runs.",
    "rerun": "Rerun a finished run, or all matching runs.",
    "dead": "Inspect and replay runs that failed for good.",
    "workflows": "List workflows; show, submit, cancel or redrive one.",
    "signal": "Send a signal to a waiting run.",
    "workers": "List workers; drain a worker.",
    "queues": "List queues; set the limits of a queue.",
    "explain": "Explain why a run, job or queue is not running.",
    "sources": "List and pause sources of jobs; retry dead messages.",
    "alerts": "Show and silence alerts; manage their rules and channels.",
    "tasks": "List tasks and show their arguments; disable built-in tasks.",
    "token": "List, create and revoke tokens.",
    "audit": "Show the audit log.",
    "bench": "Measure the throughput and latency of this installation.",
    "migrate": "Migrate the database schema to this version.",
    "cron": "Explain a cron expression; list its next times.",
    "check": "Check and show the configuration.",
    "doctor": "Find out what is wrong; gather a report.",
    "completion": "Print a shell completion script.",
}
# Each heading of the help, and the first command below it.
HEADINGS = {"Start": "up", "Jobs": "submit", "Runs": "runs", "Operations": "workers"}
EPILOG = """\b
Commands for jobs, runs and operations call the server at FOLIOT_URL (default:
http://127.0.0.1:8000), with the token in FOLIOT_TOKEN, in the namespace
FOLIOT_NAMESPACE. See `foliot COMMAND --help` for options and examples.
"""


def module_of(command: str) -> str:
    return f"foliot.cli.commands.{command.replace('-', '_')}" + ("_" if keyword.iskeyword(command) else "")


class LazyGroup(click.Group):
    """Imports a command's module only when it is called, so that help and errors are quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(module_of(cmd_name)).command
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
        """Completes as click does, but does not import every command to read its help."""
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
@click.option("--namespace", metavar="NAME", help="Namespace to work in; overrides FOLIOT_NAMESPACE.")
def cli(namespace: str | None) -> None:
    """Foliot: recurring, delayed and one-off jobs, a durable queue and workflows, on PostgreSQL."""
    if namespace is not None:
        os.environ["FOLIOT_NAMESPACE"] = namespace


def main() -> None:
    harden()
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can't show a character gets its escape sequence, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _exit_code()
    except OSError:
        # Standard error is gone too, so there is nowhere to report the error.
        _silence(sys.stderr)
        code = FAILED
    sys.exit(code)


def _code_of(error: FoliotError) -> int:
    if isinstance(error, SchemaError):
        return error.exit_code
    return WRONG if isinstance(error, ApplicationError | ConfigurationError | Invalid) else FAILED


def _exit_code() -> int:
    try:
        if COMPLETION in os.environ:
            cli.main(prog_name="foliot", complete_var=COMPLETION)
        # Not `cli.main`: it words errors in its own way, and exits with 1 for a broken pipe.
        with cli.make_context("foliot", sys.argv[1:]) as context:
            cli.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except KeyboardInterrupt:
        # The shell's code for Ctrl-C; 1 would mean that a job failed.
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        # The user declined a confirmation, or standard input ended.
        click.echo("foliot: aborted; nothing was changed", err=True)
        return FAILED
    except FoliotError as error:
        click.echo(f"foliot: {error.detail}", err=True)
        return _code_of(error)
    except OSError as error:
        if error.filename is None:
            _silence(sys.stdout)
        if error.errno == errno.EPIPE:
            return UNREAD
        where = error.filename or "can't write output"
        click.echo(f"foliot: {where}: {error.strerror or error}", err=True)
        return FAILED
    return 0


def _silence(stream: TextIO) -> None:
    """Redirects the stream to /dev/null. Otherwise Python's flush at exit fails again, with a traceback."""
    if isinstance(stream, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_missing_streams() -> None:
    """Opens /dev/null for each closed standard stream. Otherwise the next file or socket takes its descriptor."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
