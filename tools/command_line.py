"""Generates docs/command-line.md from the commands: their arguments, options and examples."""

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

Made by `make docs` from the commands. Do not edit.

**Servers.** Commands for jobs, runs and operations send requests to the server at `FOLIOT_URL`
(`http://127.0.0.1:8000`), with the token in `FOLIOT_TOKEN` and the namespace in `FOLIOT_NAMESPACE` or
`foliot --namespace NAME ...`. The commands `up`, `server`, `scheduler`, `worker` and `migrate` read
[the settings](configuration.md).

**Output.** Results go to standard output, messages to standard error. `--json` prints the API's own JSON. Colours
and progress bars appear only on terminals; `NO_COLOR` turns off colours, and `--json` turns off progress bars.
`--watch` redraws in place on a terminal, and elsewhere prints one table or one line of JSON after the other. It
keeps trying while a server is down.

**Width.** Tables fit the terminal: ids are shortened, long names are cropped with `…`, and less important columns are
left out. A wider terminal, `COLUMNS=200` or a pipe shows more; `--json` shows everything.

**Ids.** The first eight digits of an id or more stand for the id of a run, a workflow, a job or a worker, if no other
id begins so. Otherwise the command lists the ids that do, and exits with 2.

**Exit codes.**

| code | meaning |
|---|---|
| 0 | Success. With `--wait` and `logs -f`: the run completed. |
| 1 | The server rejected the request or is unreachable, the run failed, or the output cannot be written. |
| 2 | The command line, the request or the configuration is wrong. Nothing was done. |
| 3 | The database schema does not fit this version of Foliot. Upgrade Foliot or run `foliot migrate`. |
| 130 | Ctrl-C. Submitted jobs keep running. |
| 141 | The reader of the output went away, as in `foliot runs \\| head -1`. |

**Completion.** `foliot completion bash`, `zsh` or `fish` prints a script that completes commands, options, and the
names of jobs, queues, workers and runs. [`foliot completion`](#foliot-completion) tells you where to put it.
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
            raise ValueError(f"no such command: {name}")
        parts.append(f"## foliot {name}\n\n" + "\n".join(describe(command, context, name)))
        parts.append("```text\n" + "\n".join(EXAMPLES[name]) + "\n```\n")
    return "\n".join(parts)


def describe(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
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
                yield from describe(found, context, below)


def prose(text: str) -> str:
    """Joins the lines of each paragraph."""
    return "\n\n".join(
        " ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text.replace("\b", "").strip())
    )


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
