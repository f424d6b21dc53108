"""`foliot` in difficult environments: closed, full or broken streams, odd locales, and terminals without a size."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.cluster import Cluster
from tests.support.http import answer, answering
from tests.support.terminal import Screen, Shell

pytestmark = pytest.mark.process

Stream = int | IO[bytes] | None


def foliot(
    cluster: Cluster,
    *arguments: str,
    stdout: Stream = subprocess.PIPE,
    stderr: Stream = subprocess.PIPE,
    closed: int | None = None,
    **more: str,
) -> subprocess.CompletedProcess[bytes]:
    """A real process. `closed` is a standard stream that it starts without."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("FOLIOT_", "LC_", "LANG", "PYTHON"))
    }
    environment = kept | {"FOLIOT_URL": cluster.url} | more
    command: list[str] = [sys.executable, "-m", "foliot", *arguments]
    if closed is not None:
        command = ["sh", "-c", f'exec "$@" {closed}>&-', "sh", *command]
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, timeout=50, check=False
    )  # fmt: skip


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        ("401 Unauthorized", "unauthenticated", b"set FOLIOT_TOKEN to a token of this server"),
        ("403 Forbidden", "forbidden", b"set FOLIOT_TOKEN to a token with a sufficient role"),
        ("429 Too Many Requests", "rate_limited", b"not now"),
    ],
)
async def test_a_refusal_says_what_to_do(cluster: Cluster, status: str, code: str, advice: bytes) -> None:
    async with answering() as server:
        server.answers["/v1/workers"] = answer(status, json.dumps({"code": code, "detail": "not now"}).encode())
        url = server.url
        ended = await asyncio.to_thread(
            lambda: foliot(cluster, "--namespace", "team", "workers", FOLIOT_URL=url, FOLIOT_TOKEN="secret")
        )
    assert (ended.returncode, ended.stdout, ended.stderr.count(b"\n")) == (1, b"", 1)
    assert ended.stderr.startswith(b"foliot: not now")
    assert advice in ended.stderr
    (asked,) = server.asked
    assert (asked.headers["authorization"], asked.headers["foliot-namespace"]) == ("Bearer secret", "team")


@pytest.fixture(scope="module")
def full() -> Any:
    with Path("/dev/full").open("wb") as device:
        yield device


@pytest.mark.parametrize(
    "arguments", [["queues"], ["queues", "--json"], ["--help"], ["runs", "--help"], ["--version"]], ids=" ".join
)
def test_a_full_disk_is_reported(cluster: Cluster, full: IO[bytes], arguments: list[str]) -> None:
    ended = foliot(cluster, *arguments, stdout=full)
    assert ended.returncode == 1
    assert ended.stderr == b"foliot: can't write output: No space left on device\n"


def test_an_unwritable_message_does_not_change_the_exit_code(cluster: Cluster, full: IO[bytes]) -> None:
    assert foliot(cluster, "runs", "--nope", stderr=full).returncode == 1
    ended = foliot(cluster, "jobs", "show", "no such job", stderr=full)
    assert (ended.returncode, ended.stdout) == (1, b"")


def test_a_closed_pipe_ends_the_command_silently(cluster: Cluster) -> None:
    ours, its = os.pipe()
    os.close(ours)
    with os.fdopen(its, "wb") as gone:
        ended = foliot(cluster, "queues", "--json", stdout=gone)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_stream_closed_from_the_start_is_treated_as_empty(cluster: Cluster, closed: int) -> None:
    ended = foliot(cluster, "queues", "--json", closed=closed)
    assert ended.returncode == 0
    assert ended.stderr == b""
    assert ended.stdout.startswith(b'{"items":') is (closed != 1)


def test_a_closed_input_counts_as_empty(cluster: Cluster) -> None:
    ended = foliot(cluster, "submit", "simulate", "--payload", "-", closed=0)
    assert ended.returncode == 2
    assert b"invalid JSON" in ended.stderr
    ended = foliot(cluster, "apply", "-", closed=0)
    assert b"Traceback" not in ended.stderr
    ended = foliot(cluster, "dead", "replay", "--task", "no such task", closed=0)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False)


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", "no such locale"])
def test_any_locale_works(cluster: Cluster, shell: Shell, locale: str) -> None:
    name = f"日本 {locale}"
    shell.done("submit", "simulate", "--name", name, "--cron", "0 0 1 1 *")
    ended = foliot(cluster, "jobs", LC_ALL=locale)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert locale in ended.stdout.decode(errors="replace")
    ended = foliot(cluster, "jobs", "show", name, LC_ALL=locale, PYTHONIOENCODING="latin-1")
    assert ended.returncode == 0
    assert rb"\u65e5\u672c" in ended.stdout


def test_names_that_are_not_utf8_are_refused(cluster: Cluster) -> None:
    odd = os.fsdecode(b"\xff\xfe")
    for arguments, code in (
        (["jobs", "show", odd], 1),
        (["submit", "simulate", "--name", odd], 2),
        (["--namespace", odd, "jobs"], 2),
    ):
        ended = foliot(cluster, *arguments)
        assert (ended.returncode, ended.stdout) == (code, b""), ended.stderr
        assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("columns", [1, 20, 40])
def test_tiny_terminals_work(cluster: Cluster, columns: int) -> None:
    for arguments in (["--help"], ["submit", "--help"], ["workers"], ["runs", "--limit", "3"]):
        with Screen(cluster.url, *arguments, columns=columns) as screen:
            assert screen.end() == 0
        assert "Traceback" not in screen.shown


def test_a_dumb_terminal_gets_plain_lines(cluster: Cluster) -> None:
    with Screen(cluster.url, "workers", "--interval", "0.1", TERM="dumb") as screen:
        screen.until("WORKER")
        screen.until("WORKER")
    assert "\x1b[H" not in screen.shown
