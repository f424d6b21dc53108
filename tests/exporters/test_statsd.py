"""Jobs that run, and a real StatsD server that counts them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

import foliot
from foliot.config import Config
from foliot.events import Event, ExportDropped
from foliot.exporters.statsd import StatsdExporter
from foliot.store.store import Store
from tests.support.ports import free_port
from tests.support.statsd import StatsdServer, statsd_server
from tests.support.waiting import until
from tests.support.workers import ended, submit, worker_node

app = foliot.App()


@app.task
async def charge() -> None:
    await asyncio.sleep(0.02)


@app.task(retries=0)
async def decline() -> None:
    raise RuntimeError("declined")


@pytest.fixture
async def statsd(tmp_path: Path) -> AsyncIterator[StatsdServer]:
    async with statsd_server(tmp_path) as server:
        yield server


def exporter_for(store: Store, address: str, **settings: str | bool) -> StatsdExporter:
    config = msgspec.structs.replace(Config(), statsd_address=address, **settings)
    return StatsdExporter(store=store, config=config, clock=store.database.clock, events=store.events)


async def test_a_statsd_server_counts_what_ran(store: Store, statsd: StatsdServer) -> None:
    waiting = await submit(store, "nobody_has_it")
    exporter = exporter_for(store, statsd.address, statsd_prefix="shop")
    await exporter.start()
    try:
        async with worker_node(store, app):
            for run in [await submit(store, "charge"), await submit(store, "charge"), await submit(store, "decline")]:
                await ended(store, run)

        async def counters() -> dict[str, int] | None:
            found = await statsd.ask("counters")
            return found if found.get("shop.jobs.failure") == 1 and found.get("shop.jobs.success") == 2 else None

        found = await until(counters)
        assert found is not None
        assert (found["shop.jobs.SUCCESS.count"], found["shop.jobs.FAILED.count"]) == (2, 1)
        assert found["statsd.bad_lines_seen"] == 0
        durations = (await statsd.ask("timers"))["shop.jobs.charge.duration"]
        assert len(durations) == 2
        assert min(durations) >= 20
        gauges = await statsd.ask("gauges")
        assert gauges["shop.jobs.charge.success_rate"] == 1
        assert gauges["shop.jobs.decline.success_rate"] == 0
        assert gauges["shop.jobs.queue_depth"] == 1
        assert await store.runs.get_run(waiting.id) is not None
    finally:
        await exporter.stop()


async def test_an_absent_server_holds_nothing_up_and_what_is_dropped_is_counted(
    store: Store, seen: list[Event]
) -> None:
    exporter = exporter_for(store, f"127.0.0.1:{free_port()}")
    await exporter.export([])
    # The system reports the refusal with the next packet.
    await until(lambda: _drops(exporter, seen))
    dropped = next(event for event in seen if isinstance(event, ExportDropped))
    assert (dropped.export, dropped.count) == ("statsd", 1)
    await exporter.on_stop()


async def _drops(exporter: StatsdExporter, seen: list[Event]) -> bool:
    await exporter._send(["jobs.success:1|c"])
    return any(isinstance(event, ExportDropped) for event in seen)


async def test_a_server_that_never_reads_holds_nothing_up(store: Store) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        exporter = exporter_for(store, f"127.0.0.1:{deaf.getsockname()[1]}")
        lines = [f"jobs.task_{number}.duration:1.000|ms" for number in range(50_000)]
        await asyncio.wait_for(exporter._send(lines), 60)
        await exporter.on_stop()


@pytest.mark.parametrize(
    "address", ["statsd", "127.0.0.1", ":8125", "127.0.0.1:0", "127.0.0.1:99999", "udp://a:1", "::1:8125"]
)
def test_an_address_that_is_none_is_refused_with_the_name_of_the_setting(address: str) -> None:
    with pytest.raises(ValueError, match=r"statsd_address: .* write host:port"):
        Config(statsd_address=address)
