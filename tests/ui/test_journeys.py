"""The ways people take through the UI, in a real Chromium with a real Foliot. `ui/journeys/` describes them.

A group of journeys shares one Chromium and one Foliot, with an API that is open and one that needs tokens. The database
is emptied between two journeys. JOURNEYS=job,keyboard runs only these.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from asyncio.subprocess import PIPE
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from tests.support.api import api_of
from tests.support.debian import require
from tests.support.ports import free_port
from tests.support.processes import ROOT, FoliotProcess

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]
SILENCE_SECONDS = 400
HELPERS = {"run", "page", "shots", "filled", "palette"}
FOUND = sorted(path.stem for path in (ROOT / "ui" / "journeys").glob("*.mjs") if path.stem not in HELPERS)
WANTED = [name for name in FOUND if name in os.environ.get("JOURNEYS", ",".join(FOUND)).split(",")]
TOURS = [name for name in WANTED if name.startswith(("every_page", "enlarged"))]
"""They visit every page, and take as long as all others together."""
SHORT = [name for name in WANTED if name not in TOURS]
# As many as processes of the gate have a use for; each starts a Foliot and a Chromium of its own.
GROUPS = [pytest.param(group) for group in (SHORT[0::2], SHORT[1::2]) if group]
GROUPS += [pytest.param(TOURS, marks=pytest.mark.slow)] if TOURS else []
KEPT = ["migrations", "workers", "schedulers", "shards", "tasks", "announcements", "processes", "audit"]
TABLES = """
select string_agg(format('foliot.%I', relname), ', ') from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'foliot' and relkind in ('r', 'p') and not relispartition and relname <> all ($1::text[])
"""


@pytest.fixture(scope="session")
def node() -> str:
    """Node.js with the packages for tests, and a built UI."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is missing: the journeys through the UI need Node.js 20.19 or newer")
    done = subprocess.run(
        [sys.executable, "tools/build_ui.py", "--with-tests"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"the web UI could not be built: {done.stderr.strip()[-300:]}")
    return found


class Installation:
    """A Foliot with an open API and one that needs tokens. The journeys ask for what only a test can do."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._environment = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_GRACE_SECONDS": "0.1"}
        if "BUDGET_LINES" in os.environ:
            # A long log is measured whole, not only its beginning and end.
            self._environment["FOLIOT_OUTPUT_MAX_BYTES"] = "16000000"
        self._stack = AsyncExitStack()
        self._port = free_port()
        self._guarded: FoliotProcess
        self.open_url = ""
        self.guarded_url = f"http://localhost:{self._port}"

    async def __aenter__(self) -> Installation:
        up = FoliotProcess("up", "--port", "0", "--workers", "1", environment=self._environment)
        await self._stack.enter_async_context(up)
        api = await self._stack.enter_async_context(api_of(up))
        self.open_url = str(api.client.base_url).rstrip("/")
        await api.client.post("/v1/tokens", json={"name": "first", "role": "admin", "namespace": "*"})
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._guarded.__aexit__()
        await self._stack.aclose()

    async def start(self) -> None:
        """Starts the API that needs tokens."""
        self._guarded = FoliotProcess("server", "--port", str(self._port), environment=self._environment)
        await self._guarded.__aenter__()
        await self._guarded.event("ProcessStarted", part="server")

    async def stop(self) -> None:
        await self._guarded.__aexit__()

    async def empty(self) -> None:
        """Forgets all jobs, runs, limits and tokens. The processes stay."""
        session = await asyncpg.connect(self._database_url)
        try:
            tables = await session.fetchval(TABLES, KEPT)
            for patience in range(20):
                try:
                    await session.execute(f"truncate {tables} cascade")
                    return
                except (asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError):
                    assert patience < 19
        finally:
            await session.close()

    async def sql(self, statement: str) -> None:
        session = await asyncpg.connect(self._database_url)
        try:
            await session.execute(statement)
        finally:
            await session.close()


@pytest.mark.parametrize("journeys", GROUPS, ids=lambda names: "+".join(names))
async def test_journeys(journeys: list[str], node: str, database_url: str) -> None:
    chromium = require("chromium", "chromium")
    async with Installation(database_url) as installation:
        process = await asyncio.create_subprocess_exec(
            *(node, "journeys/run.mjs", installation.open_url, installation.guarded_url, chromium, *journeys),
            cwd=ROOT / "ui", stdin=PIPE, stdout=PIPE,
        )  # fmt: skip
        try:
            problems = await _guide(process, installation)
            status = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert not problems, "\n".join(problems)
    assert status == 0, "the runner of the journeys has ended with an error"


async def _guide(process: asyncio.subprocess.Process, installation: Installation) -> list[str]:
    """Does what the journeys ask for, a line each, and returns their problems."""
    assert process.stdin is not None
    assert process.stdout is not None
    problems: list[str] = []
    while True:
        async with asyncio.timeout(SILENCE_SECONDS):
            line = await process.stdout.readline()
        if not line:
            return problems
        asked: dict[str, Any] = json.loads(line)
        match asked:
            case {"problem": str(problem)}:
                problems.append(problem)
                continue
            case {"done": str(name), "seconds": seconds}:
                print(f"{name}: {seconds:.1f} s")  # noqa: T201
                continue
            case {"do": "empty" | "stop" | "start" as action}:
                await getattr(installation, action)()
            case {"do": "sql", "statement": str(statement)}:
                await installation.sql(statement)
            case _:
                raise AssertionError(f"a journey asks for {asked}")
        process.stdin.write(b"done\n")
        await process.stdin.drain()
