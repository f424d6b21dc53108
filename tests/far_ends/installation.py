"""An installation that watches itself with everything there is, and the far ends that it tells."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec

from foliot.model.alert_channel import AlertChannel
from foliot.store.store import Store
from tests.support.alerts import put_rule
from tests.support.brokers.server import BrokerServer
from tests.support.brokers.topics import READERS, TopicReader
from tests.support.collector import Collector, grpc_collector, http_collector
from tests.support.front import Fault, Front, Packets, front_of, packets
from tests.support.http import Answering, answer, answering
from tests.support.processes import FoliotProcess
from tests.support.s3 import S3Server
from tests.support.search_engine import FakeEngine, fake_engine
from tests.support.smtp import Mailbox, smtp_server
from tests.support.waiting import until

APP = "tests.far_ends.app:app"
TOPIC, DEAD_TOPIC = "foliot-events", "dead_letter_queue"
KEY = "0123456789abcdef0123456789abcdef"
SIGNING = "whsec_" + base64.b64encode(b"k" * 32).decode()
POSTED = {"pager": "/v2/enqueue", "chat": "/chat", "hook": "/hook", "more": "/more"}
"""The channels that post, and the paths to which they do."""
CHANNELS = ("mail", *POSTED)
SECRETS = {
    "ALERTS_PAGER": KEY, "ALERTS_CHAT": "http://localhost:{chat}/chat", "ALERTS_HOOK": SIGNING,
    "ALERTS_MORE": "json://localhost:{more}/more",
}  # fmt: skip


@dataclass
class FarEnds:
    collector: Collector
    packets: Packets
    topics: TopicReader
    engine: FakeEngine
    s3: S3Server
    mailbox: Mailbox
    posts: Answering
    fronts: dict[str, Front] = field(default_factory=dict)

    async def set(self, fault: Fault | None) -> None:
        self.packets.set(fault)
        for front in self.fronts.values():
            await front.set(fault)

    def messages(self) -> dict[str, list[str]]:
        """The dedup key of each message that a channel has taken."""
        keys: dict[str, Callable[[Any, Mapping[str, str]], str]] = {
            "pager": lambda body, _: body["dedup_key"],
            "hook": lambda _, headers: headers["webhook-id"],
            # These two have no key: the text names the alert.
            "chat": lambda body, _: body["text"],
            "more": lambda body, _: body["title"],
        }
        found = {"mail": [str(mail["message-id"]) for mail in self.mailbox.mails]}
        for channel, path in POSTED.items():
            found[channel] = [
                keys[channel](msgspec.json.decode(asked.body), asked.headers)
                for asked in self.posts.asked
                if asked.path == path
            ]
        return found


@asynccontextmanager
async def far_ends(broker: BrokerServer, s3: S3Server, protocol: str) -> AsyncIterator[FarEnds]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        collector = await enter(grpc_collector() if protocol == "grpc" else http_collector())
        engine, mailbox, posts = await enter(fake_engine()), await enter(smtp_server()), await enter(answering())
        posts.answers |= {path: answer() for path in POSTED.values()} | {"/v2/enqueue": answer("202 Accepted")}
        topics = READERS[broker.kind](broker)
        await topics.open([TOPIC, DEAD_TOPIC])
        ports = {
            "traces": port_of(collector.url), "events": broker.port, "search": port_of(engine.url), "archive": s3.port,
            "mail": mailbox.port, **dict.fromkeys(POSTED, posts.port),
        }  # fmt: skip
        fronts = {name: await enter(front_of(port)) for name, port in ports.items()}
        yield FarEnds(collector, stack.enter_context(packets()), topics, engine, s3, mailbox, posts, fronts)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def environment_of(ends: FarEnds, broker: BrokerServer, database_url: str, protocol: str) -> Mapping[str, str]:
    ports = {name: front.port for name, front in ends.fronts.items()}
    settings = {
        "database_url": database_url, "port": "0", "http_allow_hosts": "localhost", "secret_references": "env:ALERTS_*",
        "alert_timeout_seconds": "3", "otel_endpoint": f"http://127.0.0.1:{ports['traces']}", "otel_protocol": protocol,
        "statsd_address": ends.packets.address, "search_url": f"http://127.0.0.1:{ports['search']}",
        "events_url": broker.url.replace(str(broker.port), str(ports["events"])), "job_metrics_tag": "watched",
        "archive_minutes": "1", "archive_timeout_seconds": "3", "archive_format": "jsonl",
        **ends.s3.settings(ports["archive"]),
    }  # fmt: skip
    secrets = {name: secret.format(**ports) for name, secret in SECRETS.items()}
    return {f"FOLIOT_{name.upper()}": value for name, value in settings.items()} | secrets


async def put_rules(store: Store, ends: FarEnds) -> None:
    fronts = ends.fronts
    channels: dict[str, dict[str, Any]] = {
        "mail": {
            "kind": "email", "host": "localhost", "port": fronts["mail"].port, "security": "none",
            "from": "foliot@example.org", "to": ["ops@example.org"],
        },
        "pager": {
            "kind": "pagerduty", "routing_key": "env:ALERTS_PAGER",
            "api_url": f"http://localhost:{fronts['pager'].port}",
        },
        "chat": {"kind": "slack", "webhook_url": "env:ALERTS_CHAT"},
        "hook": {
            "kind": "webhook", "url": f"http://localhost:{fronts['hook'].port}/hook",
            "signing_secret": "env:ALERTS_HOOK",
        },
        "more": {"kind": "apprise", "url": "env:ALERTS_MORE"},
    }  # fmt: skip
    for name, fields in channels.items():
        channel: AlertChannel = msgspec.convert(fields, AlertChannel)
        assert await store.alert_channels.put_channel(name, channel, {}) is not None
    await put_rule(store, "failures", "run_failed", each="task", severity="critical", channels=list(CHANNELS))


@dataclass
class Installation:
    server: FoliotProcess
    scheduler: FoliotProcess
    worker: FoliotProcess
    address: str
    seen: dict[FoliotProcess, int] = field(default_factory=dict)

    def look_again(self) -> None:
        """From now on, `reported` counts new events only."""
        self.seen = {process: len(process.events) for process in (self.scheduler, self.worker)}

    def reports(self) -> Iterable[dict[str, Any]]:
        for process in (self.scheduler, self.worker):
            yield from process.events[self.seen.get(process, 0) :]

    async def reported(self, *wanted: Mapping[str, object]) -> None:
        left = list(wanted)

        async def has_all() -> bool:
            nonlocal left
            new = list(self.reports())
            left = [one for one in left if not any(one.items() <= event.items() for event in new)]
            return not left

        try:
            await until(has_all, seconds=150)
        except AssertionError:
            raise AssertionError(f"not reported: {left}\n" + "\n".join(self.scheduler.lines[-30:])) from None

    async def metrics(self) -> dict[str, float]:
        async with httpx.AsyncClient(base_url=self.address, trust_env=False, timeout=30) as client:
            text = (await client.get("/metrics")).text
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}


@asynccontextmanager
async def installed(environment: Mapping[str, str]) -> AsyncIterator[Installation]:
    async with AsyncExitStack() as stack:
        commands = (("server", "--open"), ("scheduler",), ("worker", APP))
        parts = [
            await stack.enter_async_context(FoliotProcess(*command, environment=environment)) for command in commands
        ]
        server, scheduler, worker = parts
        started = await server.event("ProcessStarted", part="server")
        await scheduler.event("ProcessStarted", part="scheduler")
        await worker.event("ProcessStarted", part="worker")
        yield Installation(server, scheduler, worker, started["address"])


def made(kind: type[BrokerServer] | type[S3Server], directory: Path) -> Any:
    directory.mkdir()
    return kind(directory)


async def started(*servers: BrokerServer | S3Server) -> None:
    for server in servers:
        await asyncio.to_thread(server.start)
