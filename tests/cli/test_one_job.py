"""Every command that takes the name of a recurring job: odd names, unknown jobs, and servers that do not answer."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

import httpx
import pytest

from foliot.sdk import client as sdk_client
from tests.support.terminal import Shell

pytestmark = pytest.mark.process

Recurring = Callable[..., str]
# Names with special meanings in paths, patterns or terminals.
ODD_NAMES = [
    "a b",
    "100%",
    "%41",
    "über 日本",
    "a?b=c&d#e",
    "-dash",
    "a+b;c",
    "...",
    "\U0001f468‍\U0001f469‍\U0001f467",
    "'\"`$(x)",
    "show",
]
RANGE = ("--from", "2026-03-01T00:00:00Z", "--to", "2026-03-01T05:59:59+00:00")
ON_ONE_JOB = [
    ["jobs", "show"],
    ["jobs", "next"],
    ["jobs", "delete"],
    ["ticks"],
    ["pause"],
    ["resume"],
    ["trigger"],
    ["backfill", *RANGE],
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_found_by_every_command(shell: Shell, recurring: Recurring, name: str) -> None:
    recurring(name=name)
    assert json.loads(shell.done("jobs", "show", "--json", "--", name))["name"] == name
    for arguments in (
        ["pause"],
        ["resume"],
        ["ticks"],
        ["jobs", "next"],
        ["backfill", *RANGE],
        ["trigger"],
        ["jobs", "delete"],
    ):
        shell.done(*arguments, "--", name)


@pytest.mark.parametrize("arguments", ON_ONE_JOB, ids=" ".join)
def test_an_unknown_job_is_reported(shell: Shell, arguments: list[str]) -> None:
    said = shell.refusal(*arguments, "nobody's", code=1)
    assert said.startswith("foliot: there is no ")
    assert said.endswith('job "nobody\'s"\n')


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../jobs", "\udc80", "x\0y"])
@pytest.mark.parametrize("arguments", ON_ONE_JOB, ids=" ".join)
def test_an_impossible_name_is_not_found(shell: Shell, arguments: list[str], name: str) -> None:
    said = shell.refusal(*arguments, name, code=1)
    assert said.startswith("foliot: there is no ")
    assert said.endswith(f"job {name!r}\n")


def test_commands_for_schedules_refuse_a_one_off_job(shell: Shell) -> None:
    job_id = shell.done("submit", "simulate").strip()
    for arguments in ON_ONE_JOB[1:]:
        assert shell.refusal(*arguments, job_id, code=1) == f"foliot: there is no recurring job '{job_id}'\n"


@pytest.mark.parametrize(
    "arguments", [["submit", "simulate"], ["jobs"], *([*command, "x"] for command in ON_ONE_JOB)], ids=" ".join
)
def test_a_missing_server_is_reported_in_one_line(shell: Shell, closed_port: int, arguments: list[str]) -> None:
    url = f"http://127.0.0.1:{closed_port}"
    assert shell.refusal(*arguments, code=1, url=url) == (
        f"foliot: no Foliot answers at {url}; start one with `foliot up`, or set FOLIOT_URL to its address\n"
    )


def test_ctrl_c_ends_a_command_quietly_while_the_server_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = os.environ | {"FOLIOT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        asking = subprocess.Popen(
            [sys.executable, "-m", "foliot", "jobs"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(4) == b"GET "
            asking.send_signal(signal.SIGINT)
            assert (*asking.communicate(timeout=60), asking.returncode) == (b"", b"", 130)


def test_an_answer_of_another_server_is_reported_in_one_line(
    shell: Shell, recurring: Recurring, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = recurring()
    foreign = httpx.Response(200, content=b'{"items": [{}], "next": null}')
    monkeypatch.setattr(sdk_client.Client, "_exchange", lambda *_, **__: foreign)
    on_one = [[*command, name] for command in ON_ONE_JOB if command[-1] not in ("next", "delete")]
    for arguments in (["submit", "simulate"], ["jobs"], *on_one):
        assert shell.refusal(*arguments, code=1).startswith("foliot: the server's response has no field '")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://localhost",
        "http://",
        "http://host:port",
        "http://[::1",
        "x",
        "http://h/?q",
        "http://a b",
    ],
)
def test_an_invalid_address_is_a_configuration_error(shell: Shell, url: str) -> None:
    assert (
        shell.refusal("jobs", code=2, url=url) == f"foliot: FOLIOT_URL {url!r}: must look like http://127.0.0.1:8000\n"
    )


def test_a_malformed_token_is_refused_and_not_shown(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_TOKEN", "hunter\n2")
    said = shell.refusal("jobs", code=2)
    assert said.startswith("foliot: FOLIOT_TOKEN: ")
    assert "hunter" not in said
