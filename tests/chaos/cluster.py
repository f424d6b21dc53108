"""A cluster of real processes: PostgreSQL, PgBouncer, API servers, scheduler nodes and workers, each behind its own
proxy; on request also a standby, a message broker, a coordinator, and workers that reach only the API servers."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psutil
import pytest

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.roles import Role
from foliot.store.store import open_store
from tests.chaos import recorder
from tests.chaos.checker.history import Memory
from tests.chaos.database import OneServer, Pair, Session
from tests.chaos.door import Door
from tests.chaos.services import Service, services_of
from tests.chaos.tasks import LEDGER
from tests.support.clocks import SteppingClock
from tests.support.pgbouncer import pgbouncer_to
from tests.support.ports import free_port
from tests.support.processes import FoliotProcess
from tests.support.tokens import make_token

APP = "tests.chaos.tasks:app"
REMOTE_APP = "tests.chaos.remote_tasks:app"
UNFENCED_APP = "tests.chaos.unfenced:app"
LOST_ATTEMPTS_MAX = 20
"""More than the faults that can hit one run: otherwise its outcome would depend on them."""
GRACE_SECONDS = 5
RESTART_SECONDS = 1.0
STOP_SECONDS = 60.0


@dataclass
class Node:
    """A slot in which one process runs, and after its death the next one."""

    name: str
    arguments: tuple[str, ...]
    door: Door
    environment: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    links: list[Door] = field(default_factory=list)
    """The proxies to the broker and the coordinator."""
    is_remote: bool = False
    """A worker without access to the database."""
    process: FoliotProcess | None = None
    is_wanted: bool = True
    """Whether to start it again when it ends."""
    is_told: bool = False
    """Whether the running process was told to end."""

    @property
    def part(self) -> str:
        return self.arguments[0]

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    @property
    def is_started(self) -> bool:
        return self.process is not None and any(event["event"] == "ProcessStarted" for event in self.process.events)

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill_tree()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The services of a cluster besides one PostgreSQL and its own processes."""

    dispatch: str = "postgres"
    coordination: str = "postgres"
    has_standby: bool = False
    remote_workers: int = 0


ALONE = Surroundings()


class Cluster:
    def __init__(
        self,
        directory: Path,
        *,
        say: Callable[[str], None],
        disk_bytes: int = 0,
        is_plain: bool = False,
        servers: int = 2,
        schedulers: int = 2,
        workers: int = 3,
        slots: int = 100,
        app: str = APP,
        surroundings: Surroundings = ALONE,
    ) -> None:
        self._directory = directory
        self._say = say
        self._disk_bytes = disk_bytes
        self._is_plain = is_plain
        """No small disk, no clocks, no PgBouncer: only processes to kill."""
        self._counts = {"server": servers, "scheduler": schedulers, "worker": workers}
        self._surroundings = surroundings
        self._slots = slots
        self._app = app
        self._stack = AsyncExitStack()
        self._keepers: list[asyncio.Task[None]] = []
        self._logins = 0
        self._token = ""
        """Of remote workers."""
        self._bouncer_port: int | None = None
        self.postgres: OneServer | Pair
        self.services: list[Service] = []
        self.clock: SteppingClock | None = None
        """The clock of the last scheduler node and the first worker, if it can be set."""
        self.changing_postgres = asyncio.Lock()
        """Held while PostgreSQL is stopped, filled or demoted: one of these at a time."""
        self.nodes: list[Node] = []
        self.ended: list[str] = []
        """Processes that ended although nothing told them to."""

    async def __aenter__(self) -> Cluster:
        for name in ("ledger", "logs", "pgbouncer"):
            (self._directory / name).mkdir(parents=True)
        if self._surroundings.has_standby:
            self.postgres = Pair()
        else:
            disk_bytes = 0 if self._is_plain else self._disk_bytes
            self.postgres = OneServer(self._directory, disk_bytes=disk_bytes, say=self._say)
        if not self._is_plain:
            self.clock = self._stepping_clock()
        await self.postgres.start()
        around: dict[str, Any] = {"config": Config(), "clock": SystemClock(), "events": EventBus()}
        async with open_store(self.url, part="chaos", **around) as store:
            await store.migrate()
            if self._surroundings.remote_workers:
                self._token = await make_token(store, Role.WORKER, "default")
        async with self.session() as sql:
            await recorder.install(sql)
        if isinstance(self.postgres, OneServer) and not self._is_plain:
            await self._start_pgbouncer()
        asked = self._surroundings
        self.services = services_of(self._directory, asked.dispatch, asked.coordination, self._say)
        for service in self.services:
            await service.start()
        for part, count in self._counts.items():
            for number in range(1, count + 1):
                await self._add(part, number)
        for number in range(1, asked.remote_workers + 1):
            await self._add_remote_worker(number)
        return self

    async def __aexit__(self, *_: object) -> None:
        for keeper in self._keepers:
            keeper.cancel()
        if self._keepers:
            await asyncio.wait(self._keepers)
        for node in self.nodes:
            await node.door.close()
        for service in self.services:
            await service.stop()
        await self._stack.aclose()
        await self.postgres.stop()

    def session(self) -> Session:
        return Session(self.postgres.url)

    @property
    def url(self) -> str:
        return self.postgres.url

    def of(self, part: str) -> list[Node]:
        return [node for node in self.nodes if node.part == part]

    @property
    def servers(self) -> list[str]:
        return [node.address for node in self.of("server")]

    async def started(self) -> None:
        for node in self.nodes:
            while node.process is None:
                await asyncio.sleep(0.05)
            await node.process.event("ProcessStarted", part=node.part)

    async def stop(self) -> None:
        """Shuts all processes down for good. The database does not change after that."""
        for node in self.nodes:
            node.is_wanted, node.is_told = False, True
            node.signal(signal.SIGTERM)
        await asyncio.wait(self._keepers, timeout=STOP_SECONDS)

    def _stepping_clock(self) -> SteppingClock | None:
        clock = SteppingClock(self._directory)
        try:
            clock.environment()
        except pytest.skip.Exception as missing:
            self._say(f"skipped: clock steps, because {missing}")
            return None
        return clock

    async def _start_pgbouncer(self) -> None:
        try:
            url = await self._stack.enter_async_context(pgbouncer_to(self.url, self._directory / "pgbouncer"))
        except pytest.skip.Exception as missing:
            self._say(f"skipped: a worker behind PgBouncer, because {missing}")
        else:
            self._bouncer_port = urlsplit(url).port

    async def _add(self, part: str, number: int) -> None:
        is_last = number == self._counts[part]
        is_pooled = part == "worker" and is_last and self._bouncer_port is not None
        door = Door(self._to_bouncer if is_pooled else self.postgres.connect)
        await door.open()
        environment, links = self._environment(), list[Door]()
        for service in self.services:
            if part in service.users:
                links.append(link := await service.door())
                environment |= service.environment(link)
        if part == "worker" and self._surroundings.coordination != "postgres":
            environment["FOLIOT_WORKER_LIVENESS"] = "coordinator"
        if self.clock is not None and ((part == "scheduler" and is_last) or (part == "worker" and number == 1)):
            environment |= self.clock.environment()
        arguments: tuple[str, ...] = (part,)
        address = ""
        if part == "server":
            port = free_port()
            address, environment["FOLIOT_PORT"], arguments = f"http://127.0.0.1:{port}", str(port), ("server", "--open")
        elif part == "worker":
            arguments = ("worker", self._app, *self._queues())
        name = f"{part}-{number}{'-pooled' if is_pooled else ''}"
        self._begin(Node(name, arguments, door, environment, address, links))

    async def _add_remote_worker(self, number: int) -> None:
        door = Door(self._to_server, reads_statements=False)
        await door.open()
        arguments = ("worker", REMOTE_APP, "--server", f"http://127.0.0.1:{door.port}", *self._queues())
        environment = self._environment() | {"FOLIOT_TOKEN": self._token}
        self._begin(Node(f"remote-{number}", arguments, door, environment, is_remote=True))

    def _queues(self) -> list[str]:
        queues = (f"default={self._slots}", "pausable=4", "steps=8")
        return [word for queue in queues for word in ("--queue", queue)]

    def _environment(self) -> dict[str, str]:
        return {
            LEDGER: str(self._directory / "ledger"),
            "FOLIOT_LOG_LEVEL": "info",
            "FOLIOT_LOST_ATTEMPTS_MAX": str(LOST_ATTEMPTS_MAX),
            "FOLIOT_GRACE_SECONDS": str(GRACE_SECONDS),
        }

    def _begin(self, node: Node) -> None:
        self.nodes.append(node)
        self._keepers.append(asyncio.create_task(self._keep(node), name=f"keep {node.name}"))

    async def _keep(self, node: Node) -> None:
        """Runs the node's process, and starts another one whenever it ends."""
        while node.is_wanted:
            environment = dict(node.environment)
            if not node.is_remote:
                login = await self._new_login("api" if node.part == "server" else "node")
                there = f"127.0.0.1:{node.door.port}/{self.postgres.name}"
                environment["FOLIOT_DATABASE_URL"] = f"postgresql://{login}@{there}?sslmode=disable"
            node.is_told = False
            process = FoliotProcess(*node.arguments, environment=environment)
            async with process:
                node.process = process
                try:
                    status = await process.wait(seconds=1 << 30)
                    if not node.is_told and status != -signal.SIGKILL:
                        self.ended.append(f"{node.name} ({process.pid}) ended with {status}: {process.lines[-1:]}")
                finally:
                    node.process = None
                    with (self._directory / "logs" / f"{node.name}.log").open("a") as log:
                        log.writelines(f"{process.pid} {line}\n" for line in process.lines)
            if node.is_wanted:
                await asyncio.sleep(RESTART_SECONDS)

    async def _new_login(self, kind: str) -> str:
        """A name for one process, which identifies its writes. The sessions of API servers have no name: they write for
        remote workers, and any server writes for any of those."""
        self._logins += 1
        name = f"{kind}_{self._logins}"
        while True:
            try:
                async with self.session() as sql:
                    await sql.execute(f"create role {name} superuser login")
            except asyncpg.DuplicateObjectError:
                # The answer got lost.
                return name
            except (OSError, asyncpg.PostgresError, TimeoutError):
                await asyncio.sleep(0.2)
            else:
                return name

    async def _to_bouncer(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._bouncer_port)

    async def _to_server(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To any API server that listens."""
        servers = self.of("server")
        random.shuffle(servers)
        for node in servers[:-1]:
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", urlsplit(node.address).port)
        return await asyncio.open_connection("127.0.0.1", urlsplit(servers[-1].address).port)

    def measure_memory(self) -> Iterator[Memory]:
        for node in self.nodes:
            with suppress(psutil.NoSuchProcess):
                if node.is_started:
                    yield Memory(
                        recorder.monotonic_us(), node.name, node.pid, psutil.Process(node.pid).memory_info().rss
                    )
