"""Help, examples, completion, and commands that do not exist."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from foliot.cli.examples import EXAMPLES
from foliot.cli.main import COMMANDS, HEADINGS, cli
from foliot.cli.name_completion import TIMEOUT_SECONDS
from tests.support.cluster import Cluster
from tests.support.terminal import Shell, Terminal

LOOKS_MAX = 10


def test_every_command_has_examples_and_every_example_a_command() -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    assert set(HEADINGS.values()) <= set(COMMANDS)


def examples() -> Iterator[tuple[str, str]]:
    for name, lines in EXAMPLES.items():
        yield from ((name, line) for line in lines)


@pytest.mark.parametrize(("name", "line"), list(examples()))
def test_every_example_is_a_valid_command_line(name: str, line: str) -> None:
    words = [
        word
        for word in shlex.split(line.split(" > ")[0] if name == "completion" else line)
        if not word.startswith("FOLIOT_")
    ]
    assert words[:2] == ["foliot", name]
    context = click.Context(cli, info_name="foliot")
    command, rest = cli.get_command(context, name), words[2:]
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        command, rest = command.commands[rest[0]], rest[1:]
    assert command is not None
    assert command.make_context(command.name, rest, parent=context).args == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_ends_with_its_examples(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    text = command.get_help(click.Context(command, info_name=name, parent=click.Context(cli, info_name="foliot")))
    assert "Examples:\n" in text
    for example in EXAMPLES[name]:
        assert example in text


def test_help_groups_the_commands_and_names_the_server(terminal: Terminal) -> None:
    shown = terminal.foliot("--help").out
    for word in ("FOLIOT_URL", "FOLIOT_TOKEN", "FOLIOT_NAMESPACE", *(f"\n{heading}:\n" for heading in HEADINGS)):
        assert word in shown
    alone = terminal.foliot()
    assert alone.code == 2
    assert "Jobs:" in alone.err


@pytest.mark.parametrize(
    ("typed", "meant"), [("rusn", "runs"), ("wokers", "workers"), ("import-cron", "import-crontab")]
)
def test_an_unknown_command_gets_a_suggestion(terminal: Terminal, typed: str, meant: str) -> None:
    ended = terminal.foliot(typed)
    assert ended.code == 2
    assert f"No such command {typed!r}, did you mean {meant!r}?" in ended.err


def test_an_unknown_command_without_a_similar_one_gets_the_help(terminal: Terminal) -> None:
    assert "No such command 'xyzzy'; see foliot --help" in terminal.foliot("xyzzy").err


def completed(url: str, *words: str, shell: str = "bash") -> list[str]:
    """The completions that a shell would offer for the last word."""
    asked = {
        "_FOLIOT_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": shlex.join(["foliot", *words]),
        "COMP_CWORD": str(len(words)),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
    done = subprocess.run(
        [sys.executable, "-m", "foliot"],
        env=kept | {"FOLIOT_URL": url} | asked,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stderr == ""
    return [line.split(",", 1)[1] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_every_shell(terminal: Terminal, shell: str) -> None:
    ended = terminal.foliot("completion", shell)
    assert ended.code == 0
    assert f"_FOLIOT_COMPLETE={shell}_complete" in ended.out
    assert terminal.foliot("completion", "tcsh").code == 2


@pytest.mark.process
def test_bash_accepts_the_script(terminal: Terminal) -> None:
    script = terminal.foliot("completion", "bash").out
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.process
def test_commands_options_and_names_are_completed(shell: Shell, cluster: Cluster) -> None:
    shell.done("submit", "simulate", "--name", "tab-1", "--cron", "0 0 1 1 *")
    shell.done("submit", "simulate", "--name", "tab-2", "--cron", "0 0 1 1 *")
    assert completed(cluster.url, "work") == ["worker", "workflows", "workers"]
    assert completed(cluster.url, "--names") == ["--namespace"]
    assert "--interval" in completed(cluster.url, "runs", "--i")
    assert completed(cluster.url, "completion", "z") == ["zsh"]
    (worker,) = json.loads(shell.done("workers", "--json"))["items"]
    for words, names in {
        ("jobs", "show", "tab-"): ["tab-1", "tab-2"],
        ("runs", "--queue", "defau"): ["default"],
        ("workers", "drain", ""): [worker["id"]],
    }.items():
        # Completion does not wait for a slow server, and this one may be slow just now.
        found = next((found for _ in range(LOOKS_MAX) if (found := completed(cluster.url, *words))), [])
        assert found == names


@pytest.mark.process
def test_completion_is_silent_without_a_server(closed_port: int) -> None:
    assert TIMEOUT_SECONDS <= 1
    assert completed(f"http://127.0.0.1:{closed_port}", "jobs", "show", "") == []
    assert completed("no address", "jobs", "show", "") == []
