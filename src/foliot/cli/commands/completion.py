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
    """Print the script that makes a shell complete commands, options and names.

    Save it where the shell looks for such scripts, as in the examples, and start a new shell; or try it out at once:
    eval "$(foliot completion bash)". Names of jobs, queues and workers are asked of the server; without one there are
    none.
    """
    completion = get_completion_class(shell)
    assert completion is not None  # noqa: S101
    click.echo(completion(context.find_root().command, {}, "foliot", "_FOLIOT_COMPLETE").source())
