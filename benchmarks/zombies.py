"""Which schedulers accept a zombie's result? A worker is stopped in the middle of a job until another worker has the
job, and is then resumed.

    python -m benchmarks.zombies

Rivals are installed below .rivals/ first, each in an environment of its own. A line reports each one that can't be
installed. The job creates a file when it starts, and ends when it finds another file. While the second worker is still
running the job, the first one resumes, finds its file and reports success. A system that accepts the report closes the
job while its second attempt is still running.
"""

# ruff: noqa: ASYNC110 (it waits for other processes, by their files)
from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

import foliot
from benchmarks.rivals import redis
from benchmarks.rivals.installing import Unavailable, with_pip
from benchmarks.rivals.stage import RIVALS
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
CELERY = f"""
{JOB}
import celery
app = celery.Celery("zombies", broker=url, backend=url)
app.conf.update(
    task_acks_late=True, task_track_started=True, worker_prefetch_multiplier=1, broker_connection_retry_on_startup=True,
    broker_transport_options={{"visibility_timeout": {RESCUE_SECONDS}}},
)
job = "the-job"
@app.task(name="wait", acks_late=True)
def wait():
    asyncio.run(wait_for_file())
if verb == "prepare":
    wait.apply_async(task_id=job)
elif verb == "state":
    print(app.AsyncResult(job).state)
elif verb == "work":
    name = f"worker-{{os.getpid()}}@zombies"
    app.worker_main(["worker", "--pool", "threads", "--concurrency", "1", "--loglevel", "ERROR", "-n", name])
"""
FOLIOT_STATE = "select state from foliot.runs union all select state from foliot.history"
PROCRASTINATE_STATE = "select status::text from procrastinate_jobs"
# A finished job leaves the table and is in the log.
PGQUEUER_STATE = """
select status::text from pgqueuer
union all
(select status::text from pgqueuer_log where not exists (select from pgqueuer) order by id desc limit 1)
"""


@dataclass(frozen=True, slots=True)
class System:
    name: str
    under_way: str
    """Its name for the state of a job that a worker runs."""
    state: str | None
    """SQL; None: its program says it."""
    program: str = ""
    """Takes the store's URL and a verb: prepare, work, rescue, state."""


FOLIOT = System("foliot", "running", FOLIOT_STATE)
SETTINGS = {
    "FOLIOT_WORKER_TTL_SECONDS": str(RESCUE_SECONDS),
    "FOLIOT_WORKER_BEAT_SECONDS": "1",
    "FOLIOT_LOG_LEVEL": "error",
}
OTHERS = (
    System("procrastinate", "doing", PROCRASTINATE_STATE, PROCRASTINATE),
    System("pgqueuer", "picked", PGQUEUER_STATE, PGQUEUER),
    System("celery", "STARTED", None, CELERY),
)


class Trial:
    def __init__(self, system: System, python: str, url: str, directory: Path) -> None:
        self._system = system
        self._python = python
        self._url = url
        self._directory = directory
        self._environment = (
            os.environ
            | SETTINGS
            | {DIRECTORY: str(directory), "FOLIOT_DATABASE_URL": url, "PYTHONPATH": str(Path.cwd())}
        )
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
        zombie = await self._start()
        await self._appears(f"started-{zombie.pid}")
        zombie.send_signal(signal.SIGSTOP)
        await asyncio.sleep(RESCUE_SECONDS + 2)
        await self._do("rescue")
        second = await self._start()
        await self._appears(f"started-{second.pid}")
        (self._directory / f"finish-{zombie.pid}").touch()
        zombie.send_signal(signal.SIGCONT)
        await asyncio.sleep(WAKING_SECONDS)
        meanwhile = await self._state()
        (self._directory / f"finish-{second.pid}").touch()
        await asyncio.sleep(WAKING_SECONDS)
        verdict = "refused" if meanwhile == self._system.under_way else "THE ZOMBIE WROTE"
        return (
            f"{verdict}: while the second worker was at it, the job was {meanwhile!r}; when it was done, "
            f"{await self._state()!r}"
        )

    async def _prepare(self) -> None:
        if self._system is not FOLIOT:
            await self._do("prepare")
            return
        around: dict[str, Any] = {"config": Config(), "clock": SystemClock(), "events": EventBus()}
        async with open_store(self._url, part="zombies", **around) as store:
            await store.migrate()
        await self._spawn([sys.executable, "-m", "foliot", "scheduler"])
        # A job must name a known task.
        await self._ask(
            "insert into foliot.tasks (name, queue, seen_at) values ('wait_for_file', 'default', now()) on conflict "
            "do nothing"
        )
        await self._ask("""select foliot.submit('{"task": "wait_for_file"}')""")

    async def _start(self) -> asyncio.subprocess.Process:
        own = [self._python, "-m", "foliot", "worker", "benchmarks.zombies:app"]
        return await self._spawn(own if self._system is FOLIOT else self._program("work"))

    def _program(self, verb: str) -> list[str]:
        return [self._python, "-c", self._system.program, self._url, verb]

    async def _spawn(self, command: list[str]) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *command, env=self._environment, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )
        self._started.append(process)
        return process

    async def _do(self, verb: str) -> str:
        """Returns the output of the program."""
        if self._system is FOLIOT:
            return ""
        process = await asyncio.create_subprocess_exec(
            *self._program(verb), env=self._environment, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        printed, said = await process.communicate()
        if process.returncode:
            raise RuntimeError(said.decode(errors="replace"))
        return printed.decode().strip()

    async def _appears(self, name: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (self._directory / name).exists():
                await asyncio.sleep(0.05)

    async def _state(self) -> str:
        return await self._do("state") if self._system.state is None else str(await self._ask(self._system.state))

    async def _ask(self, sql: str) -> Any:
        session = await asyncpg.connect(self._url)
        try:
            return await session.fetchval(sql)
        finally:
            await session.close()


async def compare(directory: Path) -> None:
    server = EmbeddedPostgres(directory / "postgres", clock=SystemClock())
    url = await server.start()
    try:
        for system in (FOLIOT, *OTHERS):
            try:
                print(f"{system.name:15} {await tried(system, url, directory)}", flush=True)
            except (Unavailable, RuntimeError, TimeoutError) as error:
                print(f"{system.name:15} not tried: {type(error).__name__}: {error}", flush=True)
    finally:
        await server.stop()


async def tried(system: System, url: str, directory: Path) -> str:
    files = directory / system.name
    files.mkdir()
    if system is FOLIOT:
        return await Trial(system, sys.executable, await new_database(url, system.name), files).run()
    rival = next(rival for rival in RIVALS if rival.name == system.name)
    python, *_ = await with_pip(rival.name, rival.packages)
    if rival.needs_redis:
        async with redis.started(directory) as (redis_url, _):
            return await Trial(system, python, redis_url, files).run()
    return await Trial(system, python, await new_database(url, system.name), files).run()


async def new_database(url: str, name: str) -> str:
    session = await asyncpg.connect(url)
    await session.execute(f"create database zombies_{name}")
    await session.close()
    return url.replace("/foliot?", f"/zombies_{name}?")


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m benchmarks.zombies", description=(__doc__ or "").partition("\n")[0]
    ).parse_args()
    with tempfile.TemporaryDirectory(prefix="foliot-zombies-") as directory:
        asyncio.run(compare(Path(directory)))


if __name__ == "__main__":
    main()
