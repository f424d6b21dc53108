"""`foliot completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from foliot.cli.options import Choice

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print a shell script that completes commands, options and names.

    Save the script where your shell looks for completions, as in the examples, and start a new shell. To try it in the
    current shell, run: eval "$(foliot completion bash)". The names of jobs, queues, workers and runs come from the
    server; while it can't be reached, none are completed.
    """
    completion = get_completion_class(shell)
    assert completion is not None  # noqa: S101
    click.echo(completion(context.find_root().command, {}, "foliot", "_FOLIOT_COMPLETE").source())
