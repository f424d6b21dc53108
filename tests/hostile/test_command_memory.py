"""Commands that use more memory than `memory_mb` allows, in places that belong to no process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from foliot.config import Config
from foliot.model.outcome import Attempted, Ending
from foliot.worker.executors.processes.containment import Containment, Means, choose
from foliot.worker.executors.shell import shell
from tests.support.containment import launchers_in, require_means
from tests.support.contexts import KeptContext
from tests.support.strangers import NOBODY, ROOT, python_of_nobody

PYTHON = "/usr/bin/python3" if os.geteuid() == 0 and Path("/usr/bin/python3").exists() else sys.executable
LAUNCHER = Containment(Means.LAUNCHER)
LIMIT_MB = 100
# Covers most of what is written between two measurements. A busy machine measures late.
ROOM_MB = 900

# Each command takes far more than the limit, one megabyte at a time, and then stays. None of it is resident memory of a
# process, or mapped by more than one.
PLACES = {
    "memfd": """
        descriptor = os.memfd_create("mine")
        def put(chunk): os.write(descriptor, chunk)
    """,
    "file of /dev/shm": """
        file = open(f"/dev/shm/{mark}", "wb", buffering=0)
        def put(chunk): file.write(chunk)
    """,
    "files of /dev/shm, each closed at once": """
        import itertools
        numbers = itertools.count()
        def put(chunk):
            with open(f"/dev/shm/{mark}-{next(numbers)}", "wb") as file: file.write(chunk)
    """,
    "standard input": """
        def put(chunk): os.write(os.open("/dev/fd/0", os.O_WRONLY | os.O_APPEND), chunk)
    """,
    "upstream": """
        upstream = os.open(os.environ["FOLIOT_UPSTREAM"], os.O_WRONLY | os.O_APPEND)
        def put(chunk): os.write(upstream, chunk)
    """,
    "signal": """
        signal = os.open(os.environ["FOLIOT_SIGNAL"], os.O_WRONLY | os.O_APPEND)
        def put(chunk): os.write(signal, chunk)
    """,
    "result": """
        result = os.open(os.environ["FOLIOT_RESULT"], os.O_WRONLY | os.O_APPEND)
        def put(chunk): os.write(result, chunk)
    """,
}
SCRIPT = """
    import os, sys, time
    mark, number = sys.argv[1], int(sys.argv[2])
    {place}
    chunk = b"x" * 1_048_576
    for done in range(number):
        put(chunk)
        time.sleep(0.0005)
    print("kept", done)
    time.sleep({seconds})
"""
SHARED = """
    import mmap, os, sys, time
    # A fork has its own address space, and so the limit of that does not hold it up.
    for _ in range({processes}):
        part = mmap.mmap(-1, {megabytes} << 20)
        for at in range(0, len(part), 4096):
            part[at] = 1
        if os.fork():
            os.wait()
            break
        part.close()
    else:
        time.sleep({seconds})
"""


def shm_bytes() -> int:
    """All memory of the machine that belongs to no process."""
    (line,) = (line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("Shmem:"))
    return int(line.split()[1]) * 1024


async def run(containment: Containment, *, config: Config | None = None, **payload: Any) -> tuple[Attempted, str, int]:
    """How the command ended, what it printed, and the most megabytes by which such memory grew meanwhile."""
    context, before, peak = KeptContext(), shm_bytes(), 0
    context.upstream, context.signal = {"before": 1}, {"by": "ada"}

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, shm_bytes() - before)
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    try:
        async with launchers_in(containment) as launchers:
            attempted = await shell(config or Config(), launchers)(payload, context)
    finally:
        watching.cancel()
    return attempted, context.output.decode(errors="replace"), peak >> 20


def script(place: str, *, megabytes: int, mark: str, seconds: float) -> list[str]:
    body = textwrap.indent(textwrap.dedent(PLACES[place]).strip(), "    ")
    return [PYTHON, "-c", textwrap.dedent(SCRIPT.format(place=body.strip(), seconds=seconds)), mark, str(megabytes)]


@pytest.fixture
def mark() -> Any:
    mark = f"foliot-{uuid4().hex}"
    yield mark
    for path in Path("/dev/shm").glob(f"{mark}*"):
        path.unlink()


@pytest.mark.parametrize("sandbox", ["process", "bubblewrap"])
@pytest.mark.parametrize("place", list(PLACES))
async def test_memory_in_any_place_counts(place: str, sandbox: str, mark: str) -> None:
    containment = LAUNCHER
    if sandbox == "bubblewrap":
        require_means("bubblewrap")
        containment = choose(Config(containment="bubblewrap"))
    elif place.startswith("files") and os.geteuid() != 0:
        pytest.skip("without bubblewrap, only root can have a /dev/shm of its own")
    argv = script(place, megabytes=20 * LIMIT_MB, mark=mark, seconds=60)
    attempted, output, peak = await run(containment, argv=argv, sandbox=sandbox, memory_mb=LIMIT_MB, stdin="x")
    assert attempted.ending is Ending.FAILED
    assert attempted.error is not None
    assert "kept" not in output
    assert peak < LIMIT_MB + ROOM_MB, f"{peak} MB"
    assert attempted.error.kind in ("LimitExceeded", "ResultTooLarge", "ExitCode")
    assert list(Path("/dev/shm").glob(f"{mark}*")) == [] or place == "file of /dev/shm"


@pytest.mark.parametrize("place", ["memfd", "file of /dev/shm"])
async def test_memory_within_the_limit_is_allowed(place: str, mark: str) -> None:
    argv = script(place, megabytes=LIMIT_MB // 4, mark=mark, seconds=0.5)
    attempted, output, _ = await run(LAUNCHER, argv=argv, memory_mb=LIMIT_MB)
    assert (attempted.ending, output) == (Ending.SUCCEEDED, f"kept {LIMIT_MB // 4 - 1}\n"), attempted.error


async def test_memory_that_processes_share_counts_once(mark: str) -> None:
    """Mapped by four processes, and also a file of /dev/shm: all of it is the same memory."""
    program = textwrap.dedent(f"""
        import mmap, os, time
        file = os.open("/dev/shm/{mark}", os.O_RDWR | os.O_CREAT)
        os.ftruncate(file, {LIMIT_MB // 2} << 20)
        for _ in range(4):
            if os.fork() == 0:
                shared = mmap.mmap(file, 0)
                for at in range(0, len(shared), 4096):
                    shared[at] = 1
                time.sleep(1)
                os._exit(0)
        for _ in range(4):
            os.wait()
        print("done")
    """)
    attempted, output, _ = await run(LAUNCHER, argv=[PYTHON, "-c", program], memory_mb=LIMIT_MB)
    assert (attempted.ending, output) == (Ending.SUCCEEDED, "done\n"), attempted.error


async def test_shared_mappings_of_a_single_process_count() -> None:
    """Each process is below the limit, but their sum is not."""
    megabytes = LIMIT_MB // 2
    program = textwrap.dedent(SHARED.format(processes=8, megabytes=megabytes, seconds=60))
    attempted, _, peak = await run(LAUNCHER, argv=[PYTHON, "-c", program], memory_mb=LIMIT_MB)
    assert attempted.error is not None
    assert (attempted.ending, attempted.error.kind) == (Ending.FAILED, "LimitExceeded")
    assert peak < 8 * megabytes + ROOM_MB


async def test_segments_of_system_v_count() -> None:
    program = textwrap.dedent(f"""
        import ctypes, os, time
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype, libc.shmdt.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        numbers = []
        try:
            for _ in range(10):
                number = libc.shmget(0, {LIMIT_MB // 4} << 20, 0o1600)
                numbers.append(number)
                at = libc.shmat(number, None, 0)
                ctypes.memset(at, 1, {LIMIT_MB // 4} << 20)
                libc.shmdt(at)
                print(number, flush=True)
                time.sleep(0.2)
        finally:
            time.sleep(60)
    """)
    attempted, output, _ = await run(LAUNCHER, argv=[PYTHON, "-c", program], memory_mb=LIMIT_MB)
    for number in output.split():
        subprocess.run(["ipcrm", "-m", number], check=False, capture_output=True)
    assert attempted.error is not None
    assert (attempted.ending, attempted.error.kind) == (Ending.FAILED, "LimitExceeded")
    assert 2 < len(output.split()) < 10


@pytest.mark.parametrize("memory", [{}, {"memory_mb": 1000}])
async def test_a_result_is_limited_without_other_limits(memory: dict[str, Any]) -> None:
    """The command is ended while it writes, with or without a memory limit, and its result is not read."""
    argv = script("result", megabytes=1_000_000, mark="", seconds=0)
    attempted, _, peak = await run(LAUNCHER, config=None, argv=argv, **memory)
    assert attempted.error is not None
    assert (attempted.ending, attempted.error.kind) == (Ending.FAILED, "ResultTooLarge")
    assert "more than result_max_bytes = 262144" in attempted.error.message
    assert peak < 2000


async def test_a_result_that_takes_disk_space_with_a_small_size_is_refused() -> None:
    program = "import os, time; f = os.open(os.environ['FOLIOT_RESULT'], os.O_WRONLY); os.posix_fallocate(f, 0, 50 << 20); os.ftruncate(f, 1); os.posix_fallocate(f, 0, 50 << 20); time.sleep(60)"  # noqa: E501
    attempted, _, _ = await run(LAUNCHER, argv=[PYTHON, "-c", program])
    assert attempted.error is not None
    assert attempted.error.kind == "ResultTooLarge"


@pytest.mark.parametrize("means", ["bubblewrap", "launcher"])
async def test_a_command_with_a_limit_has_its_own_empty_dev_shm(means: str, mark: str) -> None:
    require_means(means)
    if means == "launcher" and os.geteuid() != 0:
        pytest.skip("without bubblewrap, only root can have a /dev/shm of its own")
    containment = choose(Config(containment=means))  # type: ignore[arg-type]
    async with launchers_in(containment) as launchers:
        execute = shell(Config(), launchers)
        for _ in range(2):
            context = KeptContext()
            command = f"ls /dev/shm | wc -l; mkdir -p /dev/shm/{mark}/a; echo x > /dev/shm/{mark}/a/b; ls /dev/shm"
            assert (await execute({"command": command, "memory_mb": LIMIT_MB}, context)).ending is Ending.SUCCEEDED
            assert context.output.decode() == f"0\n{mark}\n"
            assert not Path(f"/dev/shm/{mark}").exists()
        # Without a limit, /dev/shm is shared.
        context = KeptContext()
        Path(f"/dev/shm/{mark}").touch()
        await execute({"command": f"ls /dev/shm/{mark}"}, context)
        assert context.output.decode() == f"/dev/shm/{mark}\n"


@pytest.mark.parametrize("means", ["bubblewrap", "launcher"])
def test_a_worker_that_is_not_root_applies_the_limit(means: str) -> None:
    """In a process of another user, with the same results for a file of /dev/shm, a memfd and the result."""
    python, path = python_of_nobody()
    if means == "bubblewrap":
        require_means(means)
    ran = subprocess.run(
        [python, "-m", "tests.hostile.limited_commands", means, str(LIMIT_MB)],
        env={"PYTHONPATH": path, "PATH": os.environ["PATH"]}, cwd=ROOT, user=NOBODY, group=NOBODY, extra_groups=[],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.stdout.splitlines() == [
        "memfd LimitExceeded",
        "file of /dev/shm LimitExceeded",
        "result ResultTooLarge",
    ], ran.stderr


async def test_a_sandbox_hides_directories_that_can_not_be_written_to(tmp_path: Path) -> None:
    """These directories are in memory and have no limit of their own."""
    require_means("bubblewrap")
    hidden = Path("/opt") if Path("/opt").is_dir() else Path("/srv")
    context = KeptContext()
    async with launchers_in(choose(Config(containment="bubblewrap"))) as launchers:
        command = (
            f"echo x > {hidden}/x; echo x > /dev/x; df --output=size -B1 /tmp /run /dev/shm | tail -n 3; "
            "echo x > /dev/null && echo fine"
        )
        await shell(Config(), launchers, [hidden])(
            {"command": command, "sandbox": "bubblewrap", "memory_mb": LIMIT_MB}, context
        )
    output = context.output.decode()
    assert output.count("Read-only file system") + output.count("Permission denied") == 2, output
    assert output.splitlines()[-4:] == [*[str(LIMIT_MB << 20)] * 3, "fine"]
