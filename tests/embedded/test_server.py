"""The embedded server through what can happen to it: kills, crashes, rivals, odd users and bad directories. All with
real processes."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest
import uvloop

from foliot.clock import SystemClock
from foliot.embedded import EmbeddedPostgres, child, find_url
from foliot.embedded.binaries import find_binaries
from foliot.errors import EmbeddedPostgresError
from tests.support.waiting import PATIENCE_SECONDS

FAST = {"fsync": "off"}
NOBODY = 65534
NAMELESS = 54321
SOURCES = Path(__file__).parents[2] / "src"
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

# An owner in a process of its own: says the URL, or why not; stops when its stdin ends.
OWNER = """
import asyncio, sys
from pathlib import Path
from foliot.clock import SystemClock
from foliot.embedded import EmbeddedPostgres
from foliot.errors import EmbeddedPostgresError

async def main():
    postgres = EmbeddedPostgres(Path(sys.argv[1]), clock=SystemClock(), binaries=sys.argv[2], settings={"fsync": "off"})
    try:
        print(await postgres.start(), flush=True)
    except EmbeddedPostgresError as error:
        sys.exit("refused: " + error.detail)
    await asyncio.to_thread(sys.stdin.read)
    await postgres.stop()

asyncio.run(main())
"""


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which a server ran once, for tests that do not care for the first start. Each borrows it: a copy
    of its 1300 files would cost more than all the rest of a test."""

    async def make(directory: Path) -> None:
        postgres = EmbeddedPostgres(directory, clock=SystemClock(), settings=FAST)
        await postgres.start()
        await postgres.stop()

    directory = tmp_path_factory.mktemp("embedded") / "made"
    asyncio.run(make(directory))
    return directory


@pytest.fixture
def directory(made_once: Path, tmp_path: Path) -> Iterator[Path]:
    with borrowed(made_once, tmp_path / "foliot") as directory:
        yield directory


@pytest.fixture
def public_path() -> Iterator[Path]:
    """Like tmp_path, but below directories that every user may pass."""
    path = Path(tempfile.mkdtemp(prefix="foliot-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@contextlib.contextmanager
def borrowed(made_once: Path, place: Path) -> Iterator[Path]:
    shutil.move(made_once, place)
    try:
        yield place
        assert processes_of(place) == []
    finally:
        shutil.move(place, made_once)


def handle(directory: Path, **settings: str) -> EmbeddedPostgres:
    return EmbeddedPostgres(directory, clock=SystemClock(), settings=FAST | settings)


@contextlib.asynccontextmanager
async def running(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    try:
        yield await postgres.start()
    finally:
        await postgres.stop()


@contextlib.contextmanager
def owner_process(
    directory: Path, *, python: str = sys.executable, script: str = OWNER, user: int | None = None, binaries: str = ""
) -> Iterator[subprocess.Popen[str]]:
    binaries = binaries or str(find_binaries("", Path("/no/such/data")).directory)
    paths = [str(SOURCES), *(path for path in sys.path if path.endswith("site-packages"))]
    process = subprocess.Popen(
        [python, "-c", script, str(directory), binaries],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1"},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def refusal(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=PATIENCE_SECONDS)[1]


def processes_of(directory: Path) -> list[int]:
    """Every process that works in the data directory, or was started on it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            at_work = process.cwd() == str(directory / "postgres") or str(directory / "postgres") in process.cmdline()
            if at_work and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


async def until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def fetch(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


# --- a plain life


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A socket's path has 107 characters at most; those of pytest's own directories may be longer."""
    with tempfile.TemporaryDirectory(prefix="foliot-") as directory:
        yield Path(directory)


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


async def test_client_environment_does_not_lead_astray(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_large_log_is_put_aside(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "LOG_MAX_BYTES", 100)
    log = directory / "log" / "postgres.log"
    log.write_text("old\n" * 100, encoding="ascii")
    async with running(handle(directory)):
        assert "old" not in log.read_text(encoding="utf-8")
    assert log.with_suffix(".log.1").read_text(encoding="ascii").startswith("old")


# --- deaths


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
        # Never waits for anything, so it does not notice by itself that its postmaster is gone.
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
        # At once: the old server may still be on its way out.
        async with running(handle(directory)) as url:
            assert await fetch(url, "select answer from kept") == 42
    with owner_process(directory) as owner:
        said(owner)
        owner.kill()
        await until(lambda: not processes_of(directory))
        assert find_url(directory) is None


async def test_living_postmaster_of_a_dead_owner_is_stopped_first(directory: Path) -> None:
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
async def test_reused_pid_in_a_stale_record_is_neither_feared_nor_killed(directory: Path, reused_by: str) -> None:
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


async def test_record_emptied_by_a_crash_is_no_obstacle(directory: Path) -> None:
    (directory / "postgres" / "postmaster.pid").touch()
    async with running(handle(directory)) as url:
        assert await fetch(url, "select 1") == 1


async def test_killed_initdb_is_begun_anew(tmp_path: Path) -> None:
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


# --- rivals and guests


async def test_second_owner_is_refused_and_told_who_holds_the_directory(directory: Path) -> None:
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


async def test_removed_lock_is_taken_anew_by_the_next_start(directory: Path) -> None:
    postgres = handle(directory)
    async with running(postgres):
        (directory / "owner.lock").unlink()
        os.kill(processes_of(directory)[0], signal.SIGKILL)
        await asyncio.wait_for(postgres.exited.wait(), PATIENCE_SECONDS)
        assert await fetch(await postgres.start(), "select 1") == 1
        with pytest.raises(EmbeddedPostgresError, match=f"in use by process {os.getpid()}"):
            await handle(directory).start()


# --- directories


@pytest.mark.parametrize("name", ["x" * 120, "a,b", "sp ace", "ünïcode", "quo'te\"%"])
async def test_any_path_will_do_for_a_directory(made_once: Path, tmp_path: Path, name: str) -> None:
    with borrowed(made_once, tmp_path / name) as directory:
        async with running(handle(directory)) as url:
            assert await fetch(url, "select 1") == 1
            assert find_url(directory) == url
            sockets = (directory / "run").resolve()
        if sockets.parent != directory:
            assert not sockets.exists()
            assert not (directory / "run").is_symlink()
        assert (sockets.parent == directory) == (name == "ünïcode")


async def test_short_socket_directory_of_a_killed_owner_is_removed_by_the_next(made_once: Path, tmp_path: Path) -> None:
    with borrowed(made_once, tmp_path / ("x" * 120)) as directory:
        with owner_process(directory) as owner:
            said(owner)
            left = (directory / "run").readlink()
            owner.kill()
        assert left.exists()
        async with running(handle(directory)):
            assert not left.exists()


async def test_data_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("9\n", encoding="ascii")
    for _ in range(2):  # the second time as well, and not «in use»: the lock was given back
        with pytest.raises(EmbeddedPostgresError, match="was made by PostgreSQL 9, which is not here"):
            await handle(tmp_path).start()


async def test_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(EmbeddedPostgresError, match=r"file.* not a directory.*FOLIOT_DATA"):
            await handle(path).start()


async def test_strange_files_in_place_of_data_are_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "thesis.txt").touch()
    with pytest.raises(EmbeddedPostgresError, match="holds files but no PostgreSQL data"):
        await handle(tmp_path).start()
    assert (tmp_path / "postgres" / "thesis.txt").exists()


async def test_directory_with_other_things_in_it_keeps_its_mode(directory: Path) -> None:
    directory.chmod(0o755)
    async with running(handle(directory)):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o755
        assert stat.S_IMODE((directory / "run").stat().st_mode) == 0o700
    directory.chmod(0o700)


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


# --- users


def python_for(user: int) -> str:
    """A Python that this user may run."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        check = [python, "-c", f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"]
        with contextlib.suppress(OSError):
            if subprocess.run(check, user=user, group=user, extra_groups=[], capture_output=True).returncode == 0:
                return python
    pytest.skip(f"user id {user} can run no Python {platform.python_version()} here")


@root_only
@pytest.mark.parametrize("user", [NOBODY, NAMELESS])
async def test_runs_as_a_plain_user_with_or_without_a_name(public_path: Path, user: int) -> None:
    python = python_for(user)
    public_path.chmod(0o777)
    directory = public_path / "foliot"
    with owner_process(directory, python=python, user=user) as owner:
        assert await fetch(said(owner), "select 1") == 1
        assert {path.stat().st_uid for path in directory.rglob("*")} == {user}
        owner.kill()
        await until(lambda: not processes_of(directory))


@root_only
async def test_unwritable_directory_is_named(public_path: Path) -> None:
    python = python_for(NOBODY)
    (public_path / "empty").mkdir(mode=0o755)
    for path, culprit in (
        (public_path / "foliot", public_path / "foliot"),
        (public_path / "empty", public_path / "empty"),
    ):
        with owner_process(path, python=python, user=NOBODY) as owner:
            message = await asyncio.to_thread(refusal, owner)
        assert f"refused: {culprit}" in message
        assert f"can't be used by user id {NOBODY}" in message
        assert "Traceback" not in message


@root_only
async def test_root_without_namespaces_runs_it_as_nobody(made_once: Path, public_path: Path) -> None:
    with borrowed(made_once, public_path / "foliot") as directory:
        with owner_process(directory, script=without_namespaces(OWNER)) as owner:
            assert await fetch(said(owner), "select 1") == 1
            assert {Path(f"/proc/{pid}").stat().st_uid for pid in processes_of(directory)} == {NOBODY}
            assert (directory / "postgres").stat().st_uid == NOBODY
            owner.kill()
            await until(lambda: not processes_of(directory))
        # Back where namespaces work: root's again.
        async with running(handle(directory)) as url:
            assert await fetch(url, "select 1") == 1
            assert {path.stat().st_uid for path in directory.rglob("*")} == {0}


@root_only
async def test_nobody_who_cannot_reach_the_directory_or_the_programs_is_told_so(
    tmp_path: Path, public_path: Path
) -> None:
    binaries = tmp_path / "bin"
    binaries.symlink_to(find_binaries("", Path("/no/such/data")).directory)
    for directory, named, complaint in (
        (tmp_path / "foliot", "", f"can't use {tmp_path}/foliot"),
        (public_path / "foliot", str(binaries), f"can't run {binaries}/initdb"),
    ):
        with owner_process(directory, script=without_namespaces(OWNER), binaries=named) as owner:
            message = await asyncio.to_thread(refusal, owner)
        assert f"runs as user id {NOBODY} here and {complaint}" in message


def without_namespaces(script: str) -> str:
    """The script under a seccomp filter like Docker's: unshare answers «not permitted»."""
    numbers = {"x86_64": 272, "aarch64": 97}
    if platform.machine() not in numbers or ctypes.sizeof(ctypes.c_void_p) != 8:
        pytest.skip(f"the number of unshare on {platform.machine()} is not known here")
    return f"""
import ctypes, struct
instructions = [(0x20, 0, 0, 0), (0x15, 0, 1, {numbers[platform.machine()]}), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in instructions))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
{script}"""
