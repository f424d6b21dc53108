"""An upgrade under load: processes of two installed versions side by side, replaced one by one.

The older version is the wheel of this checkout, and the newer one the same with one more compatible migration.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from foliot.store import migrate
from tests.support.packages import build, pip, without_paths
from tests.support.ports import free_port
from tests.support.processes import ROOT, FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.deploy, pytest.mark.process, pytest.mark.timeout(900)]
BUILT_FROM = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
NEXT = migrate.known_migrations()[-1].version + 1
MIGRATION = f"""-- works beside: {NEXT - 1}
-- What the next version adds.
alter table foliot.runs add column next text default 'x';
create index runs_next on foliot.runs (next);
"""
APP = "import foliot\napp = foliot.App()\n\n@app.task\ndef count(number: int) -> int:\n    return number\n"
SUBMITTERS = 3


class Installed(FoliotProcess):
    """A process of the version that is installed in a directory."""

    def __init__(self, version: Path, *arguments: str, environment: Mapping[str, str]) -> None:
        around = dict(environment) | {"PYTHONPATH": str(version)}
        super().__init__(*arguments, environment=around, cwd=version)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The directories in which the older and the newer version are installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOLIOT_WITHOUT_UI", "1")
        older = installed(ROOT, tmp_path_factory.mktemp("older"))
        source = tmp_path_factory.mktemp("source")
        for name in BUILT_FROM:
            shutil.copy2(ROOT / name, source / name)
        for name in ("src", "tools"):
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "dist"))
        (source / "src/foliot/store/migrations" / f"{NEXT:04}_next.sql").write_text(MIGRATION)
        return older, installed(source, tmp_path_factory.mktemp("newer"))


def installed(source: Path, directory: Path) -> Path:
    (wheel,) = build(source, directory / "dist", "wheel")
    target = directory / "installed"
    command = [*pip(), "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    done = subprocess.run(command, env=without_paths(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (target / "shop.py").write_text(APP)
    return target


class Load:
    """Submits jobs to any server that answers. Each request is repeated with its key until it is acknowledged."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = urls
        self._numbers = itertools.count()
        self.acknowledged: list[str] = []

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        is_over = asyncio.Event()

        async def submit(client: httpx.AsyncClient) -> None:
            while not is_over.is_set():
                number = next(self._numbers)
                job = {"task": "count", "payload": {"number": number}}
                await until(partial(self._acknowledged, client, job, f"job-{number}"))

        async with httpx.AsyncClient(timeout=20) as client:
            submitting = [asyncio.create_task(submit(client), name="submit") for _ in range(SUBMITTERS)]
            try:
                yield
            finally:
                is_over.set()
                await asyncio.gather(*submitting)

    async def _acknowledged(self, client: httpx.AsyncClient, job: Mapping[str, Any], key: str) -> bool:
        for url in self._urls:
            try:
                answer = await client.post(f"{url}/v1/jobs", json=job, headers={"Idempotency-Key": key})
            except httpx.TransportError:
                continue
            if answer.status_code in (200, 201):
                self.acknowledged.append(answer.json()["id"])
                return True
        return False

    async def more(self, number: int = 50) -> None:
        wanted = len(self.acknowledged) + number

        async def enough() -> bool:
            return len(self.acknowledged) >= wanted

        await until(enough)


async def test_processes_are_replaced_one_by_one_under_load(versions: tuple[Path, Path], postgres: Any) -> None:
    database = await postgres.empty()
    url = postgres.url_of(database)
    older, newer = versions
    around = {"FOLIOT_DATABASE_URL": url, "FOLIOT_GRACE_SECONDS": "10"}
    ports = [free_port(), free_port()]
    parts = [
        *(("server", "--open", "--port", str(port)) for port in ports),
        ("scheduler",), ("scheduler",), ("worker", "shop:app"), ("worker", "shop:app"),
    ]  # fmt: skip
    load = Load([f"http://127.0.0.1:{port}" for port in ports])
    async with AsyncExitStack() as stack:
        await migrated(older, around)
        running = [await stack.enter_async_context(Installed(older, *part, environment=around)) for part in parts]
        for process, part in zip(running, parts, strict=True):
            await process.event("ProcessStarted", part=part[0])
        session = await asyncpg.connect(url)
        stack.push_async_callback(session.close)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{ports[0]}", timeout=20) as client:
            pulse = {"name": "pulse", "task": "count", "payload": {"number": 0}, "every": "1s"}
            # A run may wait for longer than a second while a worker is replaced, and every tick must become a run.
            pulse |= {"catchup": "all", "overlap": "allow_all"}
            assert (await client.post("/v1/jobs", json=pulse)).status_code == 201
        async with load.going_on():
            await load.more()
            await migrated(newer, around)
            for process in running:
                assert (await process.event("SchemaIsNewer"))["version"] == NEXT
            await load.more()
            for process, part in zip(running, parts, strict=True):
                process.signal(signal.SIGTERM)
                assert await process.wait() == 0, process.lines[-20:]
                replacement = await stack.enter_async_context(Installed(newer, *part, environment=around))
                await replacement.event("ProcessStarted", part=part[0])
                assert not [event for event in replacement.events if re.match("Schema", event["event"])]
                await load.more(10)
        await ended_well(session, load.acknowledged)
    await postgres.drop(database)


async def migrated(version: Path, environment: Mapping[str, str]) -> None:
    async with Installed(version, "migrate", environment=environment) as process:
        assert await process.wait() == 0, process.lines


async def ended_well(session: Any, acknowledged: list[str]) -> None:
    """Each acknowledged job succeeded once, and no tick is missing."""
    ended = "select count(*) from foliot.history where state = 'succeeded' and id = any($1::uuid[])"

    async def all_ended() -> bool:
        return bool(await session.fetchval(ended, acknowledged) == len(set(acknowledged)))

    await until(all_ended)
    assert await session.fetchval("select count(*) = count(distinct id) from foliot.history")
    assert await session.fetchval("select count(*) from foliot.history where state <> 'succeeded'") == 0
    ticks = """select count(*), count(distinct due_at), extract(epoch from max(due_at) - min(due_at))::int + 1
               from foliot.history where name = 'pulse'"""

    async def no_tick_is_missing() -> bool:
        count, distinct, all_of_them = await session.fetchrow(ticks)
        assert count == distinct
        return bool(count == all_of_them > 5)

    await until(no_tick_is_missing)
