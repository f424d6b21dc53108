"""docs/command-line.md, made from the commands themselves: every one with its arguments, its options and its
examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from foliot.cli.examples import EXAMPLES
from foliot.cli.main import COMMANDS, cli

TARGET = Path(__file__).resolve().parent.parent / "docs" / "command-line.md"
HEADER = """\
# The command line

Made by `make docs` from the commands themselves. Do not edit.

**Where.** Commands that work on jobs, runs and operations ask a server, as your own code does: the one at `FOLIOT_URL`
(`http://127.0.0.1:8000`), with the token in `FOLIOT_TOKEN`, in the namespace `FOLIOT_NAMESPACE` or `foliot --namespace NAME ...`. The
parts of an installation (`up`, `server`, `scheduler`, `worker`, `migrate`) read [their settings](configuration.md).

**What is printed.** Results go to standard output, all that is said about them to standard error. `--json` prints the API's own JSON.
Colours are for terminals, and `NO_COLOR` turns them off; so are progress bars, which `--json` turns off. `--watch` draws in place on a
terminal; elsewhere each look is one table, or one line of JSON, after the other. It outlives a server that is away for a while.

**Exit codes.**

| code | means |
|---|---|
| 0 | It is done. With `--wait` and `logs -f`: the run completed. |
| 1 | It failed: the server refused or can't be reached, the run did not complete, the output can't be written. |
| 2 | The command line, what it asks for, or the configuration is wrong; nothing was done. |
| 3 | The database's schema does not fit this version of Foliot: a start again would not help, a newer version or `foliot migrate` does. |
| 130 | Ctrl-C. What was submitted goes on. |
| 141 | Whoever read the output went away, as in `foliot runs \\| head -1`. |

**Completion.** `foliot completion bash`, `zsh` or `fish` prints a script that completes commands, options, and the names of jobs, queues,
workers and runs; see [below](#foliot-completion) for where to put it.
"""


def page() -> str:
    context = click.Context(cli, info_name="foliot")
    parts = [
        HEADER,
        "## Commands\n\n"
        + "\n".join(f"- [`foliot {name}`](#foliot-{name}): {does}" for name, does in COMMANDS.items())
        + "\n",
    ]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        if command is None:
            raise ValueError(f"there is no command {name}")
        parts.append(f"## foliot {name}\n\n" + "\n".join(described(command, context, name)))
        parts.append("```text\n" + "\n".join(EXAMPLES[name]) + "\n```\n")
    return "\n".join(parts)


def described(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"`{usage}`\n"
    yield f"{prose(command.help or '')}\n"
    records = [option.get_help_record(context) for option in command.params if isinstance(option, click.Option)]
    if rows := [f"| `{cell(record[0])}` | {cell(record[1])} |" for record in records if record is not None]:
        yield "| option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield f"### {context.command_path} {below}\n"
                yield from described(found, context, below)


def prose(text: str) -> str:
    """Each paragraph in one line; Markdown needs no more."""
    return "\n\n".join(
        " ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text.replace("\b", "").strip())
    )


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
