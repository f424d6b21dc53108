"""Measures single jobs over HTTP: at a fixed rate that does not wait for responses, and as fast as a fixed number of
connections allows.

The server is `foliot up` without workers, and the client a process of its own (`http_client.py`). Both share the
machine with PostgreSQL.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg
import psutil

from benchmarks.raw_sql import SCHEMA
from foliot.clock import SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.store.store import open_store

CONNECTIONS = 64
CLOSED_SECONDS = 8.0


async def measure(url: str, *, rate: int, seconds: float) -> dict[str, dict[str, float]]:
    """Runs each kind of load. The baseline is measured before and after, because the machine may change its speed."""
    async with open_store(url, config=Config(), clock=SystemClock(), events=EventBus(), part="bench") as store:
        await store.workers.announce_tasks({"noop": "default"})
    session = await asyncpg.connect(url)
    try:
        await session.execute(SCHEMA)
        before = await load("insert", url, CONNECTIONS, CLOSED_SECONDS / 2)
        async with server(url) as (address, process):
            stored = await session.fetchval("select count(*) from foliot.runs")
            postgres = _postgres_of(session.get_server_pid())
            paced = await weighed(process, postgres, "open", address, rate, seconds)
            closed = await weighed(process, postgres, "closed", address, CONNECTIONS, CLOSED_SECONDS)
            stored = await session.fetchval("select count(*) from foliot.runs") - stored
        after = await load("insert", url, CONNECTIONS, CLOSED_SECONDS / 2)
        # 200 more are a warm-up.
        answered = paced["answered"] + closed["answered"] + 200
        if failed := paced["failures"] + closed["failures"]:
            raise RuntimeError(f"{failed:g} of {answered:g} jobs were not created")
        if stored != answered:
            raise RuntimeError(f"{stored} jobs are stored, and {answered:g} were answered for")
        return {
            "paced": paced,
            "closed": closed,
            "raw_sql": {name: (before[name] + after[name]) / 2 for name in before},
        }
    finally:
        await session.execute("drop schema if exists yardstick cascade")
        await session.execute("truncate foliot.runs")
        await session.close()


@asynccontextmanager
async def server(url: str) -> AsyncIterator[tuple[str, psutil.Process]]:
    """The API's address, and its process."""
    environment = os.environ | {"FOLIOT_DATABASE_URL": url, "FOLIOT_LOG_FORMAT": "json", "FOLIOT_LOG_LEVEL": "info"}
    up = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "foliot",
        "up",
        "--workers",
        "0",
        "--port",
        "0",
        env=environment,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
    )
    assert up.stdout is not None
    address, pid = "", 0
    try:
        while not address:
            entry = json.loads(await up.stdout.readline())
            if entry["event"] == "ChildStarted" and entry["name"] == "server":
                pid = entry["pid"]
            if entry["event"] == "ProcessStarted" and entry["part"] == "up":
                address = entry["address"]
        reading = asyncio.create_task(up.stdout.read())
        yield address, psutil.Process(pid)
    finally:
        up.terminate()
        await up.wait()
        await reading


async def weighed(
    server: psutil.Process, postgres: psutil.Process | None, kind: str, address: str, number: int, seconds: float
) -> dict[str, float]:
    """The result of the load, and the CPU time of the server and of PostgreSQL for each job, in microseconds."""
    server_cpu, postgres_cpu = _cpu(server), _cpu_of_all(postgres)
    found = await load(kind, address, number, seconds)
    found["server_cpu_us"] = (_cpu(server) - server_cpu) / found["answered"] * 1e6
    if postgres is not None:
        found["postgres_cpu_us"] = (_cpu_of_all(postgres) - postgres_cpu) / found["answered"] * 1e6
    return found


async def load(kind: str, address: str, number: int, seconds: float, *body: str) -> dict[str, float]:
    client = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.http_client",
        kind,
        address,
        str(number),
        str(seconds),
        *body,
        stdin=DEVNULL,
        stdout=PIPE,
    )
    output, _ = await client.communicate()
    if client.returncode != 0:
        raise RuntimeError(f"the client ended with exit code {client.returncode}")
    found: dict[str, float] = json.loads(output)
    return found


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _postgres_of(session_pid: int) -> psutil.Process | None:
    """The postmaster of that PostgreSQL; None if it is on another machine."""
    try:
        parent = psutil.Process(session_pid).parent()
        return parent if parent is not None and "postgres" in parent.name() else None
    except psutil.Error:
        return None


def _cpu_of_all(postgres: psutil.Process | None) -> float:
    """Includes children that have ended."""
    if postgres is None:
        return 0.0
    times = postgres.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in postgres.children():
        with suppress(psutil.NoSuchProcess):
            total += _cpu(child)
    return float(total)
