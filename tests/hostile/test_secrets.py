"""Commands that search the processes around them for secrets: environments, memory, descriptors and files."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from foliot.worker.executors.processes.sweeper import MARK_VARIABLE, processes_marked
from tests.support.api import api_of
from tests.support.containment import gone, sleepers
from tests.support.processes import ROOT, FoliotProcess, foliot_up
from tests.support.strangers import NOBODY
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

APP = "tests.hostile.secretive_app:app"
ENVIRONMENTS = "grep -l -a {mark} /proc/[0-9]*/environ 2>/dev/null | wc -l"
# Things that a command of the same user could read or change in a process that does not conceal itself.
PRIVATE = textwrap.dedent("""
    import os, sys
    for pid in map(int, sys.argv[1:]):
        for what, look in {
            "environ": lambda path: open(path, "rb").read(1),
            "mem": lambda path: open(path, "rb"),
            "maps": lambda path: open(path, "rb").read(1),
            "fd": os.listdir,
        }.items():
            try:
                look(f"/proc/{pid}/{what}")
            except PermissionError:
                continue
            except FileNotFoundError:
                print(pid, "is gone")
                continue
            print(pid, what)
""")


@pytest.fixture
def mark() -> str:
    """A secret that no other process of the machine has."""
    return f"hunter-{uuid4().hex}"


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that `nobody` can use, too."""
    path = Path(tempfile.mkdtemp(prefix="foliot-secrets-"))
    path.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("user", [None, NOBODY])
async def test_a_command_finds_no_secret_in_any_environment(directory: Path, mark: str, user: int | None) -> None:
    """Checks the supervisor, server, scheduler, workers, launchers, cleanup processes, Python processes and
    PostgreSQL."""
    environment = {"APP_PASSWORD": mark, "FOLIOT_CONTAINMENT": "launcher", "FOLIOT_WORKERS": "1"}
    async with (
        foliot_up(directory / "data", "--app", APP, environment=environment, user=user, cwd=directory) as up,
        api_of(up) as api,
    ):
        # Starts a process of the pool, which stays. The application still gets its own secrets.
        assert (await api.ended((await api.submit(task="password"))["id"]))["result"] == mark
        assert (await api.ended((await api.submit(task="password_in_a_process"))["id"]))["result"] == mark
        assert len(up.tree()) > 8
        job = await api.ended((await api.submit(command=ENVIRONMENTS.format(mark=mark)))["id"])
        assert (job["status"], job["output"]) == ("completed", "0\n")


async def test_a_command_of_the_same_user_can_look_into_no_process_of_foliot(directory: Path) -> None:
    environment = {"FOLIOT_CONTAINMENT": "launcher", "FOLIOT_WORKERS": "1"}
    async with (
        foliot_up(directory / "data", "--app", APP, environment=environment, user=NOBODY, cwd=directory) as up,
        api_of(up) as api,
    ):
        assert (await api.ended((await api.submit(task="password_in_a_process"))["id"]))["status"] == "completed"
        # PostgreSQL's processes hold no secret, and the cleanup process is a shell without an environment.
        pids = [str(process.pid) for process in up.tree() if process.name().startswith("python")]
        assert len(pids) >= 6
        job = await api.ended(
            (await api.submit(payload={"argv": ["python3", "-c", PRIVATE, *pids]}, task="shell"))["id"]
        )
        assert (job["status"], job["output"]) == ("completed", None), job


async def test_the_database_url_is_in_no_environment_and_not_inherited(database_url: str, mark: str) -> None:
    url = f"{database_url}{'&' if '?' in database_url else '?'}application_name={mark}"
    async with FoliotProcess("worker", APP, environment={"FOLIOT_DATABASE_URL": url}) as worker:
        await worker.event("WorkerRegistered")
        assert b"FOLIOT_DATABASE_URL" not in Path(f"/proc/{worker.pid}/environ").read_bytes()
        assert mark.encode() not in Path(f"/proc/{worker.pid}/cmdline").read_bytes()
        found = subprocess.run(["sh", "-c", ENVIRONMENTS.format(mark=mark)], capture_output=True, text=True, check=True)
        assert found.stdout == "0\n"
        assert await run_task(database_url, "variables_of_a_child") == []


async def test_the_database_url_can_be_in_a_file_or_a_descriptor(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"{database_url}\n")
    async with FoliotProcess("worker", environment={"FOLIOT_DATABASE_URL_FILE": str(file)}) as worker:
        await worker.event("WorkerRegistered")
    with file.open("rb") as opened:
        number = opened.fileno()
        started = FoliotProcess("worker", environment={"FOLIOT_DATABASE_URL_FILE": f"fd:{number}"}, pass_fds=[number])
        async with started as worker:
            await worker.event("WorkerRegistered")
            links = [str(link.readlink()) for link in Path(f"/proc/{worker.pid}/fd").iterdir() if link.is_symlink()]
            assert str(file) not in links


@pytest.mark.parametrize("kill", ["worker", "worker and launchers"])
async def test_concealed_python_processes_and_their_forks_end_with_their_worker(
    directory: Path, mark: str, kill: str
) -> None:
    """Their environment is hidden, so they can't be found by it once the worker is dead."""
    environment = {"FOLIOT_CONTAINMENT": "launcher", "FOLIOT_WORKERS": "1"}
    async with (
        foliot_up(directory / "data", "--app", APP, environment=environment, user=NOBODY, cwd=directory) as up,
        api_of(up) as api,
    ):
        started = await api.submit(task="forks_and_stays", payload={"mark": mark})
        await api.status(started["id"], "running")
        await until_there(mark)
        tree = up.tree()
        workers = [process for process in tree if "worker" in process.cmdline()]
        launchers = [process for process in tree if any("launcher.server" in word for word in process.cmdline())]
        victims = workers if kill == "worker" else [*launchers, *workers]
        assert workers
        assert launchers
        for process in victims:
            process.suspend()
        for process in victims:
            process.kill()
        assert gone(mark)


def test_the_sweeper_finds_a_mark_among_the_arguments() -> None:
    mark = uuid4().hex
    with (
        subprocess.Popen(["sleep", "60"], env={}) as plain,
        subprocess.Popen(["sh", "-c", "sleep 60; true", "sh", f"{MARK_VARIABLE}={mark}.7"], env={}) as marked,
    ):
        try:
            assert processes_marked(f"{MARK_VARIABLE}={mark}".encode()) == [marked.pid]
        finally:
            for process in (plain, marked):
                process.kill()


def test_a_concealed_process_keeps_its_variables_and_passes_them_on(mark: str) -> None:
    program = textwrap.dedent("""
        import ctypes, os, subprocess
        from foliot import process_hardening
        process_hardening.harden()
        libc = ctypes.CDLL(None)
        libc.getenv.restype = ctypes.c_char_p
        print(process_hardening.failures)
        print(open("/proc/self/environ", "rb").read().strip(b"\\0") == b"")
        print(os.environ["SECRET"] == libc.getenv(b"SECRET").decode())
        print(subprocess.run(["sh", "-c", "echo $SECRET $EMPTY."], capture_output=True, text=True).stdout.strip())
        os.environ["LATER"] = "set"
        print(os.popen("echo $LATER").read().strip())
    """)
    environment = {
        "SECRET": mark,
        "EMPTY": "",
        "PATH": os.environ["PATH"],
        "ÜMLAUT": "\udcff",
        "PYTHONPATH": str(ROOT / "src"),
    }
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["[]", "True", "True", f"{mark} .", "set"]


async def run_task(database_url: str, task: str) -> Any:
    program = f"import foliot; print(foliot.connect({database_url!r}).submit({task!r}).result(60))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=PIPE)
    said, _ = await process.communicate()
    return eval(said)


async def until_there(mark: str) -> None:
    async def look() -> bool:
        return len(sleepers(mark)) >= 2

    await until(look)
