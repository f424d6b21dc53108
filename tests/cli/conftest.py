"""One real Foliot for commands that talk to a server."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.server import PostgresServer
from tests.support.terminal import Shell, Terminal

numbers = itertools.count(1)


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is bound, so that nobody else gets it, but not listening."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield closed.getsockname()[1]


@pytest.fixture(scope="package")
def cluster(postgres: PostgresServer) -> Iterator[Cluster]:
    cluster = Cluster(postgres)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def shell(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(cluster.url, monkeypatch)


@pytest.fixture
def recurring(shell: Shell) -> Callable[..., str]:
    """Creates a recurring job that does not fire during a test, and returns its name."""

    def make(*arguments: str, name: str | None = None) -> str:
        name = name or f"job {next(numbers)}"
        schedule = () if {"--cron", "--every"} & set(arguments) else ("--cron", "0 0 1 1 *")
        shell.done("submit", "simulate", "--name", name, *schedule, *arguments)
        return name

    return make
