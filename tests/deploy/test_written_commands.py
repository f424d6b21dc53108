"""The command lines of the pages that no test can follow: each parses, so its command and options exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from foliot.cli.main import cli
from tests.support.processes import ROOT

PLACES = ("README.md", "docs/*.md", "deploy/*/README.md", "examples/*/README.md", "clients/*/README.md")
CONSOLE = re.compile(r"^```(?:console|sh|shell)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SUBSTITUTED = re.compile(r"\$\([^)]*\)|\$\{?\w+\}?")
ENDS = re.compile(r"\s(?:[|&;<>]|&&|2>|#).*$")
STARTS = re.compile(r"(?:^|-- |\$\(|(?:docker|podman) run [^|;]*? )foliot (?=[a-z-])")


def commands(path: Path) -> Iterator[str]:
    """The words after `foliot` on each line of its console blocks."""
    for block in CONSOLE.findall(path.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            if found := STARTS.search(line.removeprefix("$ ")):
                yield ENDS.sub("", SUBSTITUTED.sub("x", line.removeprefix("$ ")[found.end() :]))


WRITTEN = [
    pytest.param(text, id=f"{path.relative_to(ROOT)}: {text}")
    for place in PLACES
    for path in sorted(ROOT.glob(place))
    for text in commands(path)
]


def test_there_are_commands_to_check() -> None:
    assert len(WRITTEN) > 20


@pytest.mark.parametrize("text", WRITTEN)
def test_a_written_command_parses(text: str) -> None:
    words = shlex.split(text)
    command: click.Command | None = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and (inner := command.get_command(context, words[0])):
        command, words = inner, words[1:]
    assert command is not None
    assert command is not cli, text
    try:
        # Parses the arguments, and runs nothing.
        command.make_context(command.name, list(words), resilient_parsing=False)
    except click.exceptions.Exit:
        pass
    except click.BadParameter as error:
        # A file of the reader's own is not here.
        if "does not exist" not in error.message:
            raise
