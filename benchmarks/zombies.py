"""Who lets a zombie write? A worker is stopped in the middle of a job until the job has been given to another one, and then goes on.

    python -m benchmarks.zombies --python RIVALS/bin/python

RIVALS is a virtual environment with those that are to be tried beside Foliot: procrastinate, pgqueuer with asyncpg. What can't be imported
there is left out, with a line that says so. The job makes a file when it starts, and ends when it finds another. While the second worker is
still at it, the first one wakes, finds its file and says that it is done. Whoever believes it has let a zombie write: the second attempt is
under way, and its job is closed.
"""

# ruff: noqa: ASYNC110, ASYNC221 (it waits for other processes, by their files)
from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

import foliot
from foliot.clock import SystemClock
from foliot.config import Config
from foliot.embedded import EmbeddedPostgres
from foliot.events import EventBus
from foliot.store.store import open_store

DIRECTORY = "ZOMBIES_DIRECTORY"
RESCUE_SECONDS = 6
"""After which each of them is told to take a silent worker for dead."""
PATIENCE_SECONDS = 60.0
WAKING_SECONDS = 5.0
app = foliot.App()


@app.task
async def wait_for_file() -> None:
    directory, me = Path(os.environ[DIRECTORY]), os.getpid()
    (directory / f"started-{me}").touch()
    while not (directory / f"finish-{me}").exists():
        await asyncio.sleep(0.05)


JOB = f"""
import asyncio, os, sys, pathlib
from datetime import timedelta
url, verb = sys.argv[1:]
async def wait_for_file():
    directory, me = pathlib.Path(os.environ["{DIRECTORY}"]), os.getpid()
    (directory / f"started-{{me}}").touch()
    while not (directory / f"finish-{{me}}").exists():
        await asyncio.sleep(0.05)
"""
PROCRASTINATE = f"""
{JOB}
import procrastinate
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
wait = app.task(name="wait")(wait_for_file)
async def main():
    async with app.open_async():
        if verb == "prepare":
            await app.schema_manager.apply_schema_async()
            await wait.defer_async()
        elif verb == "rescue":
            for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat={RESCUE_SECONDS}):
                await app.job_manager.retry_job(job)
        else:
            await app.run_worker_async(
                update_heartbeat_interval=1, stalled_worker_timeout={RESCUE_SECONDS}, fetch_job_polling_interval=0.2,
                install_signal_handlers=False,
            )
asyncio.run(main())
"""
PGQUEUER = f"""
{JOB}
import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries
async def main():
    driver = AsyncpgDriver(await asyncpg.connect(url))
    if verb == "prepare":
        await Queries(driver).install()
        await Queries(driver).enqueue("wait", None)
    elif verb == "work":
        queuer = PgQueuer(driver)
        @queuer.entrypoint("wait")
        async def wait(job):
            await wait_for_file()
        await queuer.run(heartbeat_timeout=timedelta(seconds={RESCUE_SECONDS}), dequeue_timeout=timedelta(seconds=0.5))
asyncio.run(main())
"""
FOLIOT_STATE = "select state from foliot.runs union all select state from foliot.history"
PROCRASTINATE_STATE = "select status::text from procrastinate_jobs"
# Who has ended is out of the table, and in the log.
PGQUEUER_STATE = """
select status::text from pgqueuer
union all
(select status::text from pgqueuer_log where not exists (select from pgqueuer) order by id desc limit 1)
"""


@dataclass(frozen=True, slots=True)
class System:
    name: str
    module: str
    command: Callable[[str, str, str], list[str] | None]
    """From a Python, the database and a verb (prepare, work, rescue) to what is run; None: it has nothing to do."""
    state: str
    under_way: str
    """What it calls a job that a worker is at."""
    settings: Mapping[str, str]


def by_program(program: str) -> Callable[[str, str, str], list[str] | None]:
    return lambda python, url, verb: [python, "-c", program, url, verb]


def foliot_command(_: str, _url: str, verb: str) -> list[str] | None:
    return [sys.executable, "-m", "foliot", "worker", "benchmarks.zombies:app"] if verb == "work" else None


SYSTEMS = (
    System(
        "foliot", "foliot", foliot_command, FOLIOT_STATE, "running",
        {"FOLIOT_WORKER_TTL_SECONDS": str(RESCUE_SECONDS), "FOLIOT_WORKER_BEAT_SECONDS": "1", "FOLIOT_LOG_LEVEL": "error"},
    ),
    System("procrastinate", "procrastinate", by_program(PROCRASTINATE), PROCRASTINATE_STATE, "doing", {}),
    System("pgqueuer", "pgqueuer", by_program(PGQUEUER), PGQUEUER_STATE, "picked", {}),
)  # fmt: skip


class Trial:
    def __init__(self, system: System, python: str, url: str, directory: Path) -> None:
        self._system = system
        self._python = python
        self._url = url
        self._directory = directory
        self._environment = {
            **os.environ,
            **system.settings,
            DIRECTORY: str(directory),
            "FOLIOT_DATABASE_URL": url,
            "PYTHONPATH": str(Path.cwd()),
        }
        self._started: list[asyncio.subprocess.Process] = []

    async def run(self) -> str:
        try:
            return await self._run()
        finally:
            for process in self._started:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    async def _run(self) -> str:
        await self._prepare()
        zombie = await self._start("work")
        await self._appears(f"started-{zombie.pid}")
        zombie.send_signal(signal.SIGSTOP)
        await asyncio.sleep(RESCUE_SECONDS + 2)
        await self._do("rescue")
        second = await self._start("work")
        await self._appears(f"started-{second.pid}")
        (self._directory / f"finish-{zombie.pid}").touch()
        zombie.send_signal(signal.SIGCONT)
        await asyncio.sleep(WAKING_SECONDS)
        meanwhile = await self._state()
        (self._directory / f"finish-{second.pid}").touch()
        await asyncio.sleep(WAKING_SECONDS)
        verdict = "refused" if meanwhile == self._system.under_way else "THE ZOMBIE WROTE"
        return f"{verdict}: while the second worker was at it, the job was {meanwhile!r}; when it was done, {await self._state()!r}"

    async def _prepare(self) -> None:
        if self._system.name != "foliot":
            await self._do("prepare")
            return
        around: dict[str, Any] = {"config": Config(), "clock": SystemClock(), "events": EventBus()}
        async with open_store(self._url, part="zombies", **around) as store:
            await store.migrate()
        await self._spawn([sys.executable, "-m", "foliot", "scheduler"])
        # A job names a task that is known.
        await self._ask("insert into foliot.tasks (name, queue, seen_at) values ('wait_for_file', 'default', now()) on conflict do nothing")
        await self._ask("""select foliot.submit('{"task": "wait_for_file"}')""")

    async def _start(self, verb: str) -> asyncio.subprocess.Process:
        command = self._system.command(self._python, self._url, verb)
        assert command is not None
        return await self._spawn(command)

    async def _spawn(self, command: list[str]) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(*command, env=self._environment, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
        self._started.append(process)
        return process

    async def _do(self, verb: str) -> None:
        command = self._system.command(self._python, self._url, verb)
        if command is not None:
            process = await asyncio.create_subprocess_exec(*command, env=self._environment, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
            _, said = await process.communicate()
            if process.returncode:
                raise RuntimeError(said.decode(errors="replace"))

    async def _appears(self, name: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (self._directory / name).exists():
                await asyncio.sleep(0.05)

    async def _state(self) -> str:
        return str(await self._ask(self._system.state))

    async def _ask(self, sql: str) -> Any:
        session = await asyncpg.connect(self._url)
        try:
            return await session.fetchval(sql)
        finally:
            await session.close()


async def compare(python: str, directory: Path) -> None:
    server = EmbeddedPostgres(directory / "postgres", clock=SystemClock())
    url = await server.start()
    try:
        for system in SYSTEMS:
            here = sys.executable if system.name == "foliot" else python
            if subprocess.run([here, "-c", f"import {system.module}"], check=False, capture_output=True).returncode:
                print(f"{system.name:15} skipped: {here} has no module {system.module}")
                continue
            session = await asyncpg.connect(url)
            await session.execute(f"create database zombies_{system.name}")
            await session.close()
            files = directory / system.name
            files.mkdir()
            try:
                found = await Trial(system, python, url.replace("/foliot?", f"/zombies_{system.name}?"), files).run()
            except (RuntimeError, TimeoutError) as error:
                found = f"not tried: {type(error).__name__}: {error}"
            print(f"{system.name:15} {found}", flush=True)
    finally:
        await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zombies", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="the Python of an environment that has the rivals")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foliot-zombies-") as directory:
        asyncio.run(compare(asked.python, Path(directory)))


if __name__ == "__main__":
    main()
