"""Shared fixtures: one real PostgreSQL for the test run, a database for each test, and a check for leaks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakSet

import asyncpg
import hypothesis
import psutil
import pytest

from foliot import service
from foliot.clock import Clock, SystemClock
from foliot.config import Config
from foliot.events import Event, EventBus
from foliot.store.store import Store, open_store
from foliot.worker.executors.processes.launcher.tree import descendants_of
from tests.support.fake_clock import FakeClock
from tests.support.memory import directory_in_memory
from tests.support.schemas import work_out_schemas_once
from tests.support.server import PostgresServer

# The duration of an example depends more on the machine than on the code. CI tries the same examples each time, so that
# a change is judged by what it changes; developers' runs look for new ones.
hypothesis.settings.register_profile(
    "foliot",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("foliot")
work_out_schemas_once()
# Tables would be fitted to the terminal that runs the tests.
os.environ.pop("COLUMNS", None)


class Server(Protocol):
    """A server that outlives a test, and may restart in one."""

    @property
    def pid(self) -> int: ...


test_servers: list[Server] = []
DYING_SECONDS = 20.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escapes characters that the reporting process cannot read, such as lone surrogates."""
    report = yield
    report.sections = [(title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections]
    return report


@pytest.fixture(scope="session", autouse=True)
def no_settings_from_outside() -> None:
    """Removes FOLIOT_... variables of the developer's shell."""
    for name in [name for name in os.environ if name.startswith("FOLIOT_")]:
        del os.environ[name]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with directory_in_memory(otherwise=tmp_path_factory.mktemp("postgres")) as directory:
        server = PostgresServer(directory)
        server.start()
        test_servers.append(server)
        yield server
        test_servers.remove(server)
        server.stop()


@pytest.fixture
async def database_url(postgres: PostgresServer) -> AsyncIterator[str]:
    """The URL of a migrated database. A connection left open fails the test."""
    name = await postgres.clone()
    yield postgres.url_of(name)
    left = await postgres.drop(name)
    assert not left, f"connections left open: {left}"


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[Any]:
    """A plain connection, for looking at tables."""
    session = await asyncpg.connect(database_url)
    yield session
    await session.close()


@pytest.fixture
def config() -> Config:
    return Config()


@pytest.fixture
def clock() -> Clock:
    return SystemClock()


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def events() -> EventBus:
    return EventBus()


@pytest.fixture
def seen(events: EventBus) -> list[Event]:
    """Every event of the test, in order."""
    found: list[Event] = []
    events.subscribe(found.append)
    return found


@pytest.fixture
async def store(database_url: str, config: Config, clock: Clock, events: EventBus) -> AsyncIterator[Store]:
    async with open_store(database_url, config=config, clock=clock, events=events, part="test") as store:
        yield store


@pytest.fixture(autouse=True)
async def no_leaks() -> AsyncIterator[None]:
    """Fails a test that leaves a task or a process behind."""
    tasks_before, processes_before = _tasks(), _children()
    yield
    tasks = [task for task in _tasks() - tasks_before if task is not asyncio.current_task()]
    assert not tasks, f"tasks left running: {tasks}"
    new = _alive(_children() - processes_before)
    left = {child for child in new if not _is_of_the_test_server(child) and not _came_from(child, processes_before)}
    # A process that is already dying is not a leak; a busy machine reaps it late.
    stayed = [child for child in psutil.wait_procs(left, timeout=DYING_SECONDS)[1] if _is_alive(child)] if left else []
    assert not stayed, f"processes left running: {stayed}"


hidden_tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
"""The tasks that Foliot hides from jobs."""


def _remember_hidden_tasks() -> None:
    """Only tests need the list, and each task would pay for it."""
    unregister: Callable[[asyncio.Task[Any]], None] = vars(service)["_unregister_task"]

    def remember(task: asyncio.Task[Any]) -> None:
        unregister(task)
        hidden_tasks.add(task)

    vars(service)["_unregister_task"] = remember


_remember_hidden_tasks()


def _tasks() -> set[asyncio.Task[Any]]:
    loop = asyncio.get_running_loop()
    return asyncio.all_tasks() | {task for task in list(hidden_tasks) if not task.done() and task.get_loop() is loop}


def _children() -> set[int]:
    """Asks the kernel. psutil would read every process of the machine before and after each test."""
    return set(descendants_of(os.getpid()))


def _alive(pids: set[int]) -> set[psutil.Process]:
    found = set()
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            found.add(psutil.Process(pid))
    return {process for process in found if _is_alive(process)}


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _came_from(process: psutil.Process, others: set[int]) -> bool:
    """Whether another test's process started it: a shared cluster starts processes at any time."""
    try:
        return not others.isdisjoint(parent.pid for parent in process.parents())
    except psutil.NoSuchProcess:
        return True


def _is_of_the_test_server(process: psutil.Process) -> bool:
    """Whether it belongs to a server of the test run, which starts and ends processes at any time."""
    try:
        line = {process.pid, *(parent.pid for parent in process.parents())}
        return any(server.pid in line for server in test_servers)
    except psutil.NoSuchProcess:
        return True
