"""The embedded server survives kills, crashes, rivals, odd users and bad directories. All tests use real processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import asyncpg
import psutil
import pytest
import uvloop

from foliot.clock import SystemClock
from foliot.embedded import EmbeddedPostgres, child, find_url
from foliot.errors import EmbeddedPostgresError
from tests.support.embedded import (
    OWNER,
    execute,
    fetch,
    handle,
    owner_process,
    processes_of,
    refusal,
    root_only,
    running,
    said,
    until,
)
from tests.support.waiting import PATIENCE_SECONDS


async def test_first_start_makes_a_private_durable_utf8_database(short_path: Path) -> None:
    directory = short_path / "not" / "there" / "yet"
    postgres = EmbeddedPostgres(directory, clock=SystemClock())
    async with running(postgres) as url:
        assert url.startswith(f"postgresql://foliot@/foliot?host={directory}/run")
        for name, value in {
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "data_checksums": "on",
            "server_encoding": "UTF8",
            "listen_addresses": "",
            "max_connections": "200",
            "TimeZone": "UTC",
        }.items():
            assert await fetch(url, f"show {name}") == value
        assert await fetch(url, "select current_database() || ' ' || current_user") == "foliot foliot"
        for path in (directory, directory / "run", directory / "log", directory / "postgres"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert stat.S_IMODE((directory / "url").stat().st_mode) == 0o600
        assert (directory / "owner.lock").read_text(encoding="ascii") == f"{os.getpid()}\n"
    assert sorted(path.name for path in directory.iterdir()) == ["log", "owner.lock", "postgres", "run"]
    assert list((directory / "run").iterdir()) == []
    assert processes_of(directory) == []
    assert not postgres.exited.is_set()


async def test_restart_keeps_data_and_start_and_stop_may_be_repeated(directory: Path) -> None:
    postgres = handle(directory)
    await postgres.stop()
    url = await postgres.start()
    assert await postgres.start() == url
    await execute(url, "drop table if exists kept; create table kept as select 42 as answer")
    await postgres.stop()
    await postgres.stop()
    async with running(handle(directory)) as again:
        assert await fetch(again, "select answer from kept") == 42


async def test_client_environment_variables_are_ignored(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGPORT": "1", "PGHOST": "nowhere", "PGDATA": "/nowhere", "LC_ALL": "xx_XX.UTF-8"}.items():
        monkeypatch.setenv(name, value)
    async with running(handle(directory)) as url:
        assert await fetch(url, "select 1") == 1


def test_works_under_uvloop(directory: Path) -> None:
    async def live_and_die() -> None:
        postgres = handle(directory)
        async with running(postgres) as url:
            assert await fetch(url, "select 1") == 1
            os.kill(processes_of(directory)[0], signal.SIGKILL)
            await asyncio.wait_for(postgres.exited.wait(), PATIENCE_SECONDS)
            assert await fetch(await postgres.start(), "select 1") == 1

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(live_and_die())


async def test_large_log_is_rotated(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "LOG_MAX_BYTES", 100)
    log = directory / "log" / "postgres.log"
    log.write_text("old\n" * 100, encoding="ascii")
    async with running(handle(directory)):
        assert "old" not in log.read_text(encoding="utf-8")
    assert log.with_suffix(".log.1").read_text(encoding="ascii").startswith("old")


async def test_kill_of_the_whole_server_loses_no_committed_row(directory: Path) -> None:
    postgres = EmbeddedPostgres(directory, clock=SystemClock())
    async with running(postgres) as url:
        await execute(url, "drop table if exists kept; create table kept (id int)")
        connection = await asyncpg.connect(url)
        for number in range(50):
            await connection.execute("insert into kept select $1 * 100 + i from generate_series(1, 100) i", number)
        for pid in processes_of(directory):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.wait_for(postgres.exited.wait(), PATIENCE_SECONDS)
        connection.terminate()
        assert find_url(directory) is None
        again = await postgres.start()
        assert not postgres.exited.is_set()
        assert await fetch(again, "select count(distinct id) from kept") == 5000


async def test_busy_backends_of_a_killed_postmaster_are_ended_before_the_next_one_starts(directory: Path) -> None:
    postgres = handle(directory)
    async with running(postgres) as url:
        connection = await asyncpg.connect(url)
        pid = await connection.fetchval("select pg_backend_pid()")
        # This process never waits, so it does not notice by itself that its postmaster is gone.
        busy = asyncio.create_task(connection.execute("do $$ begin loop end loop; end $$"))
        await until(lambda: psutil.Process(pid).cpu_times().user > 0.05)
        os.kill(int((directory / "postgres" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        await asyncio.wait_for(postgres.exited.wait(), PATIENCE_SECONDS)
        assert await fetch(await postgres.start(), "select 1") == 1
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        with pytest.raises((asyncpg.PostgresError, OSError)):
            await busy


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died")
async def test_server_dies_with_its_killed_owner_and_another_owner_can_start(directory: Path) -> None:
    with owner_process(directory) as owner:
        await execute(said(owner), "drop table if exists kept; create table kept as select 42 as answer")
        assert processes_of(directory)
        owner.kill()
        owner.wait()
        # Starts at once, while the old server may still be shutting down.
        async with running(handle(directory)) as url:
            assert await fetch(url, "select answer from kept") == 42
    with owner_process(directory) as owner:
        said(owner)
        owner.kill()
        await until(lambda: not processes_of(directory))
        assert find_url(directory) is None


async def test_live_postmaster_of_a_dead_owner_is_stopped_first(directory: Path) -> None:
    orphaned = handle(directory)
    await orphaned.start()
    assert orphaned._lock is not None
    os.close(orphaned._lock)
    orphaned._lock = None
    before = processes_of(directory)
    async with running(handle(directory)) as url:
        assert await fetch(url, "select 1") == 1
        assert not set(before) & set(processes_of(directory))
        await asyncio.wait_for(orphaned.exited.wait(), PATIENCE_SECONDS)
    await orphaned.stop()


@pytest.mark.parametrize("reused_by", ["living", "zombie"])
async def test_reused_pid_in_a_stale_record_is_ignored_and_not_killed(directory: Path, reused_by: str) -> None:
    command = ["sleep", "60"] if reused_by == "living" else ["true"]
    with subprocess.Popen(command) as innocent:
        await until(lambda: reused_by == "living" or psutil.Process(innocent.pid).status() == psutil.STATUS_ZOMBIE)
        lines = [innocent.pid, directory / "postgres", 1, 5432, directory / "run", "", "1 1", "ready"]
        record = "".join(f"{line}\n" for line in lines)
        (directory / "postgres" / "postmaster.pid").write_text(record, encoding="utf-8")
        (directory / "run" / ".s.PGSQL.5432.lock").write_text(record, encoding="utf-8")
        (directory / "url").write_text(f"postgresql://foliot@/foliot?host={directory}/run", encoding="utf-8")
        assert find_url(directory) is None
        async with running(handle(directory)) as url:
            assert await fetch(url, "select 1") == 1
        if reused_by == "living":
            assert innocent.poll() is None
        innocent.kill()


async def test_record_emptied_by_a_crash_is_ignored(directory: Path) -> None:
    (directory / "postgres" / "postmaster.pid").touch()
    async with running(handle(directory)) as url:
        assert await fetch(url, "select 1") == 1


async def test_killed_initdb_is_started_over(tmp_path: Path) -> None:
    directory = tmp_path / "foliot"
    with owner_process(directory) as owner:
        await until(lambda: list(directory.glob("postgres.unfinished-*/global")))
        owner.kill()
    assert not (directory / "postgres").exists()
    async with running(handle(directory)) as url:
        assert await fetch(url, "select 1") == 1
    assert list(directory.glob("postgres.*")) == []


@pytest.mark.parametrize("polls", [0, 3])
async def test_cancelled_start_leaves_nothing_running(directory: Path, polls: int) -> None:
    postgres = handle(directory)
    starting = asyncio.create_task(postgres.start())
    await until(lambda: (directory / "owner.lock").read_text(encoding="ascii") == f"{os.getpid()}\n")
    for _ in range(polls):
        await asyncio.sleep(0.01)
    starting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await starting
    await postgres.stop()
    assert processes_of(directory) == []
    async with running(postgres) as url:
        assert await fetch(url, "select 1") == 1


async def test_second_owner_is_refused_with_the_holder_of_the_directory(directory: Path) -> None:
    async with running(handle(directory)) as url:
        with pytest.raises(EmbeddedPostgresError, match=rf"in use by process {os.getpid()}: .*FOLIOT_DATA"):
            await handle(directory).start()
        with owner_process(directory) as rival:
            message = await asyncio.to_thread(refusal, rival)
        assert f"in use by process {os.getpid()}" in message
        assert await fetch(url, "select 1") == 1


async def test_guest_finds_the_server_of_another_process_while_it_runs(directory: Path) -> None:
    assert find_url(directory) is None
    assert find_url(directory / "no such") is None
    with owner_process(directory) as owner:
        url = said(owner)
        assert find_url(directory) == url
        assert await fetch(url, "select 1") == 1
        assert owner.stdin is not None
        owner.stdin.close()
        assert await asyncio.to_thread(owner.wait, 20) == 0
    assert find_url(directory) is None


async def test_server_that_does_not_start_says_why(directory: Path) -> None:
    postgres = handle(directory, shared_buffers="many")
    with pytest.raises(EmbeddedPostgresError, match=r"did not start \(exit code 1\)\n(?s:.*)shared_buffers"):
        await postgres.start()
    assert not postgres.exited.is_set()
    assert sorted(path.name for path in directory.iterdir()) == ["log", "owner.lock", "postgres", "run"]


@root_only
async def test_full_disk_is_named(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("no mount namespaces here")
    script = f"""
import ctypes, subprocess
assert ctypes.CDLL(None).unshare(0x00020000) == 0
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=9m", "none", {str(tmp_path)!r}], check=True)
{OWNER}"""
    with owner_process(tmp_path / "foliot", script=script) as owner:
        message = await asyncio.to_thread(refusal, owner)
    assert "refused: " in message
    assert "the disk is full" in message
