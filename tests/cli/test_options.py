"""Invalid options: every command reports them in a sentence with exit code 2, and suggests the nearest valid value."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator

import click
import pytest

from foliot.cli.main import COMMANDS, module_of
from tests.support.terminal import Shell

# Signs of a Python value that was printed as it is.
REPR = re.compile(r"<[A-Za-z_.]+[: ]|RunState|object at 0x|Traceback|\w+Error\(")


def commands() -> Iterator[tuple[list[str], click.Command]]:
    for name in COMMANDS:
        command = importlib.import_module(module_of(name)).command
        yield [name], command
        if isinstance(command, click.Group):
            for inner in command.list_commands(click.Context(command)):
                found = command.get_command(click.Context(command), inner)
                assert found is not None
                yield [name, inner], found


def limited_options() -> Iterator[tuple[list[str], str, list[str]]]:
    """Every option that takes one of a few words, or a number."""
    for path, command in commands():
        for option in command.params:
            if isinstance(option, click.Option) and isinstance(option.type, click.Choice):
                yield path, option.opts[-1], [str(choice) for choice in option.type.choices]
            elif isinstance(option, click.Option) and isinstance(
                option.type, click.types.IntParamType | click.types.FloatParamType
            ):
                yield path, option.opts[-1], []


@pytest.mark.parametrize(
    ("path", "option", "choices"),
    list(limited_options()),
    ids=lambda part: "-".join(part) if isinstance(part, list) else part,
)
def test_an_invalid_choice_or_number_is_refused_in_a_sentence(
    shell: Shell, path: list[str], option: str, choices: list[str]
) -> None:
    wrong = f"{choices[0]}x" if choices else "many"
    ended = shell.foliot(*path, option, wrong)
    assert (ended.code, ended.out) == (2, "")
    assert option in ended.err
    assert not REPR.search(ended.err)
    if choices:
        assert f"did you mean {choices[0]!r}?" in ended.err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["runs", "--state", "succes"], "completed"),
        (["runs", "--state", "failed,runing"], "running"),
        (["runs", "--state", "retryin"], "retrying"),
        (["workflows", "--state", "complete"], "completed"),
        (["events", "--state", "runing"], "running"),
        (["events", "-f", "--state", "runing"], "running"),
        (["cancel", "--state", "pendin", "--yes"], "pending"),
        (["rerun", "--state", "faild", "--yes"], "failed"),
        (["runs", "--state", "zzzzz"], ""),
    ],
)
def test_an_unknown_state_is_refused_in_a_sentence(shell: Shell, arguments: list[str], meant: str) -> None:
    refusal = shell.refusal(*arguments, code=2)
    assert refusal.startswith("foliot: state: ")
    assert not REPR.search(refusal)
    assert f"did you mean {meant!r}?" in refusal if meant else "completed" in refusal


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs", "--since", "yesterday"],
        ["runs", "--parent", "x"],
        ["events", "--since", "yesterday"],
        ["dead", "list", "--since", "yesterday"],
        ["audit", "--since", "yesterday"],
        ["jobs", "--limit", "0"],
        ["runs", "--limit", "-1"],
        ["cron", "next", "* * * * *", "--tz", "Mars/Phobos"],
        ["submit", "--command", "x", "--delay", "soon"],
        ["submit", "--command", "x", "--concurrency", "="],
        ["submit", "--command", "x", "--rate", "a=b"],
        ["submit", "simulate", "--payload", "{"],
        ["submit", "simulate", "--payload", '{"fail_rate": 2}'],
        ["submit", "simulate", "--tag", "two words"],
        ["submit", "simulat"],
    ],
)
def test_other_invalid_values_are_refused_in_a_sentence(shell: Shell, arguments: list[str]) -> None:
    ended = shell.foliot(*arguments)
    assert ended.code == 2, ended
    assert not REPR.search(ended.err)


@pytest.mark.parametrize(
    "arguments", [["events"], ["events", "-f"], ["runs"], ["logs", "0190c5c0-0000-7000-8000-000000000000", "-f"]]
)
def test_a_missing_server_is_reported_in_a_sentence(shell: Shell, closed_port: int, arguments: list[str]) -> None:
    ended = shell.foliot(*arguments, url=f"http://127.0.0.1:{closed_port}")
    assert (ended.code, ended.out) == (1, "")
    assert "no Foliot answers at" in ended.err
