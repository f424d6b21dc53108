"""The composition root: builds the running parts from a configuration. Only this file chooses their components."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from foliot import process_hardening
from foliot.brokers.base import Broker, BrokerUnavailable
from foliot.clock import Clock, SystemClock
from foliot.config import Config
from foliot.coordination.base import Coordinator, CoordinatorUnavailable
from foliot.embedded import EmbeddedPostgres, find_url
from foliot.errors import ConfigurationError, Conflict
from foliot.events import EventBus, ProcessIsExposed, ProcessStarted, ProcessStopped
from foliot.model.ids import new_id
from foliot.model.roles import Role
from foliot.model.tokens import new_token_text
from foliot.model.tracing import TracingSettings
from foliot.observability.logs import EventLog
from foliot.observability.tallies import counting
from foliot.service import Service, own_task
from foliot.store.audit_log import AuditEntry
from foliot.store.postgres import Transaction
from foliot.store.schema_watcher import SchemaWatcher
from foliot.store.store import Store, open_store
from foliot.store.tokens import NewToken

if TYPE_CHECKING:
    from foliot.worker.node import Tracing

# Net number of new objects between two garbage collections: about the objects of a hundred requests or jobs.
GARBAGE_THRESHOLD = 20_000


@dataclass(frozen=True, slots=True)
class Stop:
    """How a process learns that it should stop: the first request drains it, a second one hurries it."""

    asked: asyncio.Event
    hurried: asyncio.Event

    @classmethod
    def new(cls) -> Stop:
        return cls(asyncio.Event(), asyncio.Event())

    def ask(self) -> None:
        (self.hurried if self.asked.is_set() else self.asked).set()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The objects that every part of a process gets."""

    config: Config
    clock: Clock
    events: EventBus


def surroundings(config: Config, part: str) -> Surroundings:
    clock, events = SystemClock(), EventBus()
    EventLog(part, config=config, clock=clock).attach(events)
    if process_hardening.failures:
        events.emit(ProcessIsExposed(part, "; ".join(process_hardening.failures)))
    return Surroundings(config, clock, events)


def database_url(config: Config) -> str:
    """The URL of the configured database, or of the embedded one that another process runs in `data`."""
    url = config.database_url or find_url(Path(config.data))
    if url is None:
        raise ConfigurationError(
            "no database: set FOLIOT_DATABASE_URL, or start `foliot up` "
            f"(no embedded PostgreSQL is running in {config.data})"
        )
    return url


@asynccontextmanager
async def store_for(around: Surroundings, part: str) -> AsyncIterator[Store]:
    url, config, clock, events = database_url(around.config), around.config, around.clock, around.events
    async with open_store(
        url, config=config, clock=clock, events=events, part=f"foliot {part}", plans_once=part == "worker"
    ) as store:
        yield store


@asynccontextmanager
async def counted_store_for(around: Surroundings, part: str, stop: Stop) -> AsyncIterator[Store]:
    """A store for a long-running part, with its events counted. If the schema becomes too new for it, it stops the
    part and raises `SchemaError` afterwards."""
    clock, events = around.clock, around.events
    async with store_for(around, part) as store:
        watcher = SchemaWatcher(store.database, part, clock=clock, events=events, on_misfit=stop.asked.set)
        await watcher.start()
        try:
            async with counting(store=store, clock=clock, events=events):
                yield store
        finally:
            await watcher.stop()
    if watcher.misfit is not None:
        raise watcher.misfit


@asynccontextmanager
async def with_a_database(config: Config) -> AsyncIterator[Config]:
    """The configuration with a database that runs. If none does, the PostgreSQL in `data` runs meanwhile."""
    if config.database_url or find_url(Path(config.data)):
        yield config
        return
    server = EmbeddedPostgres(Path(config.data), clock=SystemClock(), binaries=config.pg_bin)
    try:
        config = msgspec.structs.replace(config, database_url=await server.start())
        await run_migrate(config)
        yield config
    finally:
        await server.stop()


async def run_migrate(config: Config, *, is_forced: bool = False) -> int:
    async with store_for(surroundings(config, "migrate"), "migrate") as store:
        return await store.migrate(is_forced=is_forced)


async def run_server(
    config: Config,
    stop: Stop,
    *,
    listening: socket.socket,
    is_open: bool,
    sources: Mapping[str, str] | None = None,
) -> None:
    """Runs the API on a bound socket. With `is_open` it needs no tokens, on the loopback interface only."""
    import uvicorn  # here, because only the server needs it and it is slow to load

    from foliot.api.app import build_app
    from foliot.api.request_log import RequestLog
    from foliot.api.security.audit_log import AuditLog
    from foliot.api.security.connection_limits import Connection, Connections
    from foliot.api.server import Server, limits_of
    from foliot.submission.submitter import Submitter

    around = surroundings(config, "server")
    address, port = listening.getsockname()[:2]
    if is_open and not ipaddress.ip_address(address).is_loopback:
        raise ConfigurationError("without tokens, the API may listen on the loopback interface only")
    async with counted_store_for(around, "server", stop) as store:
        if not is_open:
            await check_tokens(store)
        submitter = Submitter(store=store, clock=around.clock, events=around.events)
        audit = AuditLog(store=store, clock=around.clock, events=around.events)
        app = build_app(
            store=store,
            submitter=submitter,
            audit=audit,
            config=config,
            clock=around.clock,
            is_open=is_open,
            stopping=stop.asked,
            sources=sources,
            listen_url=listen_url_of(config, store),
        )
        server = Server(
            uvicorn.Config(
                RequestLog(app, events=around.events), loop="none", http=Connection, ws="none", lifespan="off",
                log_config=None, access_log=False,
                backlog=2048, server_header=False, proxy_headers=False,
                ssl_certfile=config.tls_certificate_file or None, ssl_keyfile=config.tls_key_file or None,
            ),
            connections=Connections(limits_of(config), clock=around.clock),
        )  # fmt: skip
        await submitter.start()
        await audit.start()
        settle()
        # From here on clients that connect before the server is ready wait instead of being refused.
        listening.listen(2048)
        serving = asyncio.create_task(server.serve(sockets=[listening]), name="serve")
        scheme = "https" if config.tls_certificate_file else "http"
        around.events.emit(ProcessStarted("server", f"{scheme}://{address}:{port}"))
        await until_set_or_done(stop.asked, serving)
        server.should_exit = True
        await serving
        await app.from_workers.waiting_room.close()
        await submitter.stop()
        await audit.stop()
    around.events.emit(ProcessStopped("server"))


def settle() -> None:
    """Makes garbage collection cheap for a process that serves requests or runs jobs: it skips the objects from the
    start, and runs less often, because requests and jobs leave almost no cyclic garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 20)


async def check_tokens(store: Store) -> None:
    """Raises `ConfigurationError` if no token exists, because then nobody could use the API."""
    if not await store.tokens.has_tokens():
        raise ConfigurationError(
            "no token exists, so nobody could use this API; create the first one in the database: "
            "foliot token create NAME --role admin --everywhere --database"
        )


async def run_create_token(
    config: Config, *, name: str, role: Role, namespace: str, lives_seconds: float | None
) -> str:
    """Creates a token directly in the database and returns its text."""
    text, token_id, digest = new_token_text()
    async with store_for(surroundings(config, "token"), "token") as store:
        await store.check_schema()
        new = NewToken(token_id, digest, name, role, namespace, "database", None, lives_seconds)
        entry = AuditEntry(
            id=new_id(), actor="database", actor_namespace=None, token_id=None, role=None, namespace=namespace,
            address=None, request_id=str(new_id()), method="", path="", action="create_token", target=token_id,
            status=201, code=None,
        )  # fmt: skip

        async def work(within: Transaction) -> None:
            if await store.tokens.insert_token(new, within=within) is None:
                raise Conflict(f"name: a token named {name!r} already exists; revoke it first, or choose another name")
            await store.audit_log.insert_audit_within(within, [entry])

        await store.database.in_transaction("create_token", work)
    return text


async def run_scheduler(config: Config, stop: Stop) -> None:
    from foliot.scheduler.node import SchedulerNode

    around = surroundings(config, "scheduler")
    async with (
        broker_for(around) as broker,
        coordinator_for(around) as coordinator,
        counted_store_for(around, "scheduler", stop) as store,
    ):
        node = SchedulerNode(
            store=store,
            config=config,
            clock=around.clock,
            events=around.events,
            listen_url=listen_url_of(config, store),
            exporters=exporters_of(config, store, around),
            broker=broker,
            coordinator=coordinator,
        )
        settle()
        await node.start()
        around.events.emit(ProcessStarted("scheduler"))
        await stop.asked.wait()
        await node.stop()
    around.events.emit(ProcessStopped("scheduler"))


def exporters_of(config: Config, store: Store, around: Surroundings) -> list[Service]:
    """The services of alerts, and the exporters that the configuration asks for."""
    from foliot.alerts.channels.stored import StoredChannels
    from foliot.alerts.deliverer import AlertDeliverer
    from foliot.alerts.evaluator import AlertEvaluator

    channels = StoredChannels(store=store, config=config, clock=around.clock)
    exporters: list[Service] = [
        AlertEvaluator(store=store, config=config, clock=around.clock, events=around.events),
        AlertDeliverer(store=store, channels=channels, clock=around.clock, events=around.events),
    ]
    if config.statsd_address:
        from foliot.exporters.statsd import StatsdExporter

        exporters.append(StatsdExporter(store=store, config=config, clock=around.clock, events=around.events))
    if config.job_metrics_tag:
        from foliot.exporters.job_series import JobSeriesExporter

        exporters.append(JobSeriesExporter(store=store, config=config, clock=around.clock, events=around.events))
    if config.archive_url:
        from foliot.archive.archiver import Archiver
        from foliot.archive.destination import open_destination

        exporters.append(
            Archiver(
                store=store,
                config=config,
                destination=open_destination(config),
                clock=around.clock,
                events=around.events,
            )
        )
    if config.otel_endpoint:
        with needing_extra("otel", "otel_endpoint"):
            from foliot.exporters.traces import TraceExporter

        exporters.append(TraceExporter(store=store, config=config, clock=around.clock, events=around.events))
    if config.events_url:
        from foliot.brokers.topics.choice import sender_of
        from foliot.exporters.broker_events import EventExporter

        sender = sender_of("events_url", config.events_url)
        exporters.append(
            EventExporter(store=store, sender=sender, config=config, clock=around.clock, events=around.events)
        )
    if config.search_url:
        from foliot.exporters.search import SearchExporter

        exporters += [
            SearchExporter(kind, store=store, config=config, clock=around.clock, events=around.events)
            for kind in ("runs", "attempts")
        ]
    return exporters


@contextmanager
def needing_extra(extra: str, setting: str) -> Iterator[None]:
    """Turns a missing library into an error that says which extra has it."""
    try:
        yield
    except ImportError as error:
        raise ConfigurationError(f"{setting} needs the extra: pip install 'foliot[{extra}]' ({error})") from None


def tracing_of(config: Config, around: Surroundings) -> Tracing | None:
    """The parts that trace the tasks of a worker, if the configuration asks for traces."""
    if not config.otel_endpoint:
        return None
    with needing_extra("otel", "otel_endpoint"):
        from foliot.worker.attempt_traces import AttemptTraces
        from foliot.worker.task_spans import TaskSpans
    from foliot.worker.node import Tracing

    spans = TaskSpans(config=config, clock=around.clock, events=around.events)
    return Tracing(AttemptTraces(TracingSettings.of(config)), spans)


@asynccontextmanager
async def broker_for(around: Surroundings) -> AsyncIterator[Broker | None]:
    """The broker that carries hints. Raises `ConfigurationError` if it refuses this process. If it does not answer,
    work begins without it."""
    if around.config.dispatch == "postgres":
        yield None
        return
    from foliot.brokers.choice import broker_of

    broker = broker_of(around.config)
    try:
        with suppress(BrokerUnavailable):
            await broker.connect()
        yield broker
    finally:
        await broker.close()


@asynccontextmanager
async def coordinator_for(around: Surroundings) -> AsyncIterator[Coordinator | None]:
    """The coordinator of scheduler nodes. Raises `ConfigurationError` if it refuses this process. If it does not
    answer, work begins without it."""
    if around.config.coordination == "postgres":
        yield None
        return
    from foliot.coordination.choice import coordinator_of

    coordinator = coordinator_of(around.config, clock=around.clock)
    try:
        with suppress(CoordinatorUnavailable):
            await coordinator.connect()
        yield coordinator
    finally:
        await coordinator.close()


def listen_url_of(config: Config, store: Store) -> str | None:
    """The URL to listen for hints on; None behind a pooler without `database_direct_url`."""
    return config.database_direct_url or (None if store.database.is_pooled else store.database.url)


async def until_set_or_done(event: asyncio.Event, task: asyncio.Task[None]) -> None:
    """Returns when the event is set or the task has ended by itself."""
    waiting = own_task(event.wait(), name="wait for stop")
    await asyncio.wait([waiting, task], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
