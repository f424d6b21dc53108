"""Far ends that are killed, hang or answer garbage under load, all at the same time.

No job waits for them, memory stays bounded, and everything that must be delivered is delivered afterwards.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest

from foliot.model.ids import new_id
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.model.run import NewRun
from foliot.store.store import Store
from tests.far_ends.installation import (
    CHANNELS,
    DEAD_TOPIC,
    TOPIC,
    FarEnds,
    Installation,
    environment_of,
    far_ends,
    installed,
    made,
    put_rules,
    started,
)
from tests.support.brokers.nats import NatsServer
from tests.support.brokers.rabbitmq import RabbitmqServer
from tests.support.brokers.redis import RedisServer
from tests.support.brokers.server import BrokerServer
from tests.support.front import Fault
from tests.support.processes import FoliotProcess
from tests.support.s3 import S3Server
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.timeout(1200)]

LEAST_SECONDS = 15.0
"""A fault lasts this long, and until Foliot has reported each far end."""
RECOVERY_SECONDS = 240.0
LATE_SECONDS = 3.0
"""Less than any time limit of a far end: a loop that waited for one would be later."""
GROWTH_BYTES = 64 << 20
TOGETHER, PAUSE_SECONDS = 10, 0.2
CASES: list[tuple[Fault, type[BrokerServer], str]] = [
    ("killed", RedisServer, "http"),
    ("hung", NatsServer, "grpc"),
    ("garbage", RabbitmqServer, "http"),
]
"""Each takes minutes, so each fault meets one broker. The brokers have outage tests of their own."""
WAITS = """
select coalesce(percentile_cont(0.95) within group (order by extract(epoch from started_at - due_at)), 0)::float8
from foliot.history where task = 'chat' and due_at >= $1
"""
ENDED = "select id from foliot.history where id = any ($1)"
LAST = "select max(finished_at) from foliot.history"
PLACE = "select at from foliot.archives where kind = 'runs'"


@dataclass
class Load:
    """Runs that are due now or soon, and a tick each second."""

    store: Store
    runs: list[UUID] = field(default_factory=list)

    async def flow(self) -> None:
        while True:
            runs = [
                NewRun(id=new_id(), task="chat", queue="default", delay_seconds=number % 2 * 1.0)
                for number in range(TOGETHER)
            ]
            await self.store.run_inserts.insert_runs(runs)
            self.runs += [run.id for run in runs]
            self.store.hints.send(["default"])
            await asyncio.sleep(PAUSE_SECONDS)

    async def fail(self, task: str) -> None:
        run = NewRun(id=new_id(), task=task, queue="default")
        await self.store.run_inserts.insert_runs([run])
        self.store.hints.send(["default"])
        self.runs.append(run.id)


@asynccontextmanager
async def flowing(store: Store) -> AsyncIterator[Load]:
    now = await store.jobs.database_now()
    request = JobRequest(task="chat", name="ticking", every="1s", queue="default")
    await store.jobs.insert_job(
        request.new_job(new_id(), namespace=Namespace(), queue="default", now=now, calendar=None)
    )
    load = Load(store)
    task = asyncio.create_task(load.flow(), name="load")
    try:
        yield load
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@dataclass(frozen=True)
class Taken:
    """Memory, file descriptors and threads of a process."""

    memory: int
    descriptors: int
    threads: int


def taken_by(process: FoliotProcess) -> Taken:
    found = psutil.Process(process.pid)
    return Taken(found.memory_info().rss, found.num_fds(), found.num_threads())


async def waits(sql: Any, since: datetime) -> float:
    """The 95th percentile of the time from due to started."""
    found: float = await sql.fetchval(WAITS, since)
    return found


async def everything_arrives(ends: FarEnds, load: Load, sql: Any, alerts: int) -> None:
    """Waits until each far end has all there is, and as many alerts as this on each channel."""
    runs, packets = list(load.runs), ends.packets.arrived
    expected = {str(run) for run in runs}
    missing: object = None

    async def has_ended() -> bool:
        return len(await sql.fetch(ENDED, runs)) == len(runs)

    async def has_all() -> bool:
        nonlocal missing
        missing = {name: found for name, found in in_memory(ends, expected, alerts).items() if found}
        if not missing and ends.packets.arrived == packets:
            missing = "statsd"
        if not missing and await sql.fetchval(PLACE) < last:
            missing = "archive"
        if not missing and not expected <= {event["subject"] for event in await ends.topics.events(TOPIC)}:
            missing = "events"
        return not missing

    await until(has_ended)
    last: datetime = await sql.fetchval(LAST)
    try:
        await until(has_all, seconds=RECOVERY_SECONDS)
    except AssertionError:
        raise AssertionError(f"did not arrive: {missing}") from None


def in_memory(ends: FarEnds, expected: set[str], alerts: int) -> dict[str, object]:
    """The far ends in this process that still lack something."""
    messages = ends.messages()
    return {
        "traces": len(expected - {str(UUID(trace_id)) for trace_id, _ in ends.collector.spans}),
        "search": len(expected - {one["id"] for one in ends.engine.of("runs")}),
        # Runs that failed wrote no line.
        "lines": len(expected - {one["run_id"] for one in ends.engine.of("logs")}) > alerts,
        "alerts": {name: len(messages[name]) for name in CHANNELS if len(messages[name]) < alerts},
    }


async def archived_ids(s3: S3Server) -> list[str]:
    found = await asyncio.to_thread(lambda: list(s3.objects("history/runs/")))
    return [
        json.loads(line)["id"]
        for name, content in found
        if name.endswith(".jsonl.gz")
        for line in gzip.decompress(content).splitlines()
    ]


def signs(fault: Fault) -> list[dict[str, object]]:
    """The events by which Foliot reports each far end."""
    found: list[dict[str, object]] = [
        {"event": "ServiceFailed", "service": "TraceExporter"},
        {"event": "ServiceFailed", "service": "EventExporter"},
        {"event": "ServiceFailed", "service": "SearchExporter(runs)"},
        {"event": "ArchiveFailed"},
        {"event": "ExportDropped", "export": "task_spans"},
        *({"event": "AlertUndeliverable", "channel": name, "is_permanent": False} for name in CHANNELS),
    ]
    # UDP reports only that nobody listens.
    return [*found, {"event": "ExportDropped", "export": "statsd"}] if fault == "killed" else found


@pytest.mark.parametrize(("fault", "broker_kind", "protocol"), CASES, ids=lambda one: getattr(one, "kind", one))
async def test_far_ends_that_fail_hold_up_nothing_and_get_everything_afterwards(
    database_url: str,
    store: Store,
    sql: Any,
    tmp_path: Path,
    fault: Fault,
    broker_kind: type[BrokerServer],
    protocol: str,
) -> None:
    broker, s3 = made(broker_kind, tmp_path / "broker"), made(S3Server, tmp_path / "s3")
    try:
        await started(broker, s3)
        async with far_ends(broker, s3, protocol) as ends:
            await put_rules(store, ends)
            async with installed(environment_of(ends, broker, database_url, protocol)) as parts:
                await outage(store, sql, ends, parts, fault)
    finally:
        broker.stop()
        s3.stop()


async def outage(store: Store, sql: Any, ends: FarEnds, parts: Installation, fault: Fault) -> None:
    async with flowing(store) as load:
        began: datetime = await store.jobs.database_now()
        await load.fail("fail_before")
        # At least one slice has been archived, so that everything is loaded.
        await everything_arrives(ends, load, sql, alerts=1)
        usual = await waits(sql, began + timedelta(seconds=5))
        before = {process: taken_by(process) for process in (parts.scheduler, parts.worker)}
        broke: datetime = await store.jobs.database_now()
        parts.look_again()
        await ends.set(fault)
        await load.fail("fail_during")
        await asyncio.gather(asyncio.sleep(LEAST_SECONDS), parts.reported(*signs(fault)))
        late = await waits(sql, broke)
        during = {process: taken_by(process) for process in before}
        metrics = await parts.metrics()
        await ends.set(None)
    await everything_arrives(ends, load, sql, alerts=2)
    after = {process: taken_by(process) for process in before}

    assert late < usual + LATE_SECONDS
    for process, held in before.items():
        for now in (during[process], after[process]):
            assert now.memory - held.memory < GROWTH_BYTES, (held, now)
            assert now.descriptors - held.descriptors < 30, (held, now)
            assert now.threads - held.threads < 12, (held, now)
    for export in ("traces", "events", "search_runs"):
        assert metrics[f'foliot_export_lag_seconds{{export="{export}"}}'] > LEAST_SECONDS / 2
    dropped = {name: value for name, value in metrics.items() if name.startswith("foliot_exports_dropped_total")}
    assert dropped['foliot_exports_dropped_total{export="task_spans"}'] > 0
    assert (dropped['foliot_exports_dropped_total{export="statsd"}'] > 0) == (fault == "killed")
    for channel, keys in ends.messages().items():
        assert len(keys) == len(set(keys)) == 2, (channel, keys)
    assert {event["type"] for event in await ends.topics.events(DEAD_TOPIC)} == {"foliot.run.dead"}
    archived = await archived_ids(ends.s3)
    assert len(archived) == len(set(archived))
    assert {str(run) for run in load.runs} <= set(archived)
    # One document for each run, however often it was sent.
    indexed = [one["id"] for one in ends.engine.of("runs")]
    assert len(indexed) == len(set(indexed))
