"""Sandboxes of commands: what they hide, their cost, and that no command runs without its sandbox."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from asyncio.subprocess import PIPE
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foliot.config import Config
from foliot.model.ids import new_id
from foliot.model.outcome import Attempted, Ending
from foliot.model.payloads import SandboxFields
from foliot.worker.executors.processes.containment import LIMIT_FILES, Containment, Means, choose
from foliot.worker.executors.processes.process_tree import Command, ProcessTree
from foliot.worker.executors.processes.sandbox import NOBODY, sandbox_for
from foliot.worker.executors.shell import shell
from tests.support.containment import gone, launchers_in, require_means
from tests.support.contexts import KeptContext

# The user nobody may have no access to the directory of our own interpreter.
PYTHON = "/usr/bin/python3" if os.geteuid() == 0 and Path("/usr/bin/python3").exists() else sys.executable
NO_BUBBLEWRAP = Containment(Means.LAUNCHER)


async def run(
    config: Config | None = None, /, *, containment: Containment | None = None, **payload: Any
) -> tuple[Attempted, str]:
    config, context = config or Config(), KeptContext()
    async with launchers_in(containment or choose(config)) as launchers:
        attempted = await shell(config, launchers, [Path(config.data)])(payload, context)
    return attempted, context.output.decode(errors="replace")


def error_of(attempted: Attempted) -> tuple[str, str]:
    assert attempted.ending is Ending.FAILED
    assert attempted.error is not None
    return attempted.error.kind, attempted.error.message


@pytest.fixture
def bubblewrap() -> None:
    require_means("bubblewrap")


@pytest.mark.parametrize("sandbox", ["process", "bubblewrap"])
@pytest.mark.parametrize(
    ("limit", "script", "how"),
    [
        ({"memory_mb": 200}, "x = bytearray(400_000_000)", "MemoryError"),
        ({"cpu_seconds": 1}, "while True: pass", "killed by SIGXCPU"),
        (
            {"file_size_mb": 1},
            "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open('f', 'wb').write(bytes(2_000_000))",
            "SIGXFSZ",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_limits_are_enforced(
    bubblewrap: None, tmp_path: Path, sandbox: str, limit: dict[str, Any], script: str, how: str
) -> None:
    command = (
        f"cd {'/tmp' if sandbox == 'bubblewrap' else tmp_path}; exec {sys.executable} -I -S -c {shlex.quote(script)}"
    )
    if sandbox == "bubblewrap" and os.geteuid() == 0:
        # The user nobody may have no access to the directory of this interpreter.
        if not Path("/usr/bin/python3").exists():
            pytest.skip("needs /usr/bin/python3")
        command = command.replace(sys.executable, "/usr/bin/python3")
    attempted, output = await run(command=command, sandbox=sandbox, **limit)
    assert how in output + error_of(attempted)[1]


async def test_the_number_of_processes_is_limited(bubblewrap: None) -> None:
    attempted, output = await run(
        command="for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; wait", sandbox="bubblewrap", processes=4
    )
    assert attempted.ending is Ending.FAILED
    assert "fork" in output


ALLOCATORS = "import os, time; os.fork(); os.fork(); x = bytearray(60_000_000); os.write(1, b'here '); time.sleep(120)"
SHARERS = "import os, time; x = bytearray(60_000_000); os.fork(); os.fork(); time.sleep(0.5); os.write(1, b'ended ')"


@pytest.mark.parametrize("sandbox", ["process", "bubblewrap"])
@pytest.mark.parametrize("means", ["bubblewrap", "launcher"])
async def test_a_tree_of_allocators_is_contained_as_a_whole(bubblewrap: None, means: Any, sandbox: str) -> None:
    """Each of the four processes is within the limit, but their sum is not."""
    # Other tests run the same program at the same time.
    mark = str(new_id())
    attempted, _ = await run(
        Config(containment=means), argv=[PYTHON, "-I", "-S", "-c", ALLOCATORS, mark], sandbox=sandbox, memory_mb=150
    )
    assert error_of(attempted)[0] == "LimitExceeded"
    assert gone(mark)


@pytest.mark.parametrize("sandbox", ["process", "bubblewrap"])
async def test_memory_that_processes_share_counts_once(bubblewrap: None, sandbox: str) -> None:
    attempted, output = await run(argv=[PYTHON, "-I", "-S", "-c", SHARERS], sandbox=sandbox, memory_mb=150)
    assert attempted.ending is Ending.SUCCEEDED, attempted.error
    assert "ended" in output


async def test_a_cgroup_limits_the_tree_without_other_processes_of_the_user() -> None:
    containment = replace(NO_BUBBLEWRAP, cgroup=Path("/sys/fs/cgroup/x"), controllers=frozenset({"memory", "pids"}))
    sandbox = sandbox_for(SandboxFields(sandbox="process", memory_mb=100, processes=7), Config(), containment)
    assert sandbox.tree_limits == {"memory": 104_857_600, "pids": 7}
    assert "RLIMIT_NPROC" not in sandbox.limits


@pytest.mark.parametrize("means", ["bubblewrap", "cgroup"])
async def test_a_fork_bomb_and_a_tree_of_allocators_are_contained_by_a_cgroup(bubblewrap: None, means: Any) -> None:
    require_means("cgroup")
    config = Config(containment=means)
    if choose(config).controllers != {"memory", "pids"}:
        pytest.skip(
            "the cgroups of this machine do not limit memory and processes: their controllers are not handed to us"
        )
    _, output = await run(
        config, command="bomb() { bomb | bomb & }; bomb; sleep 1; bomb", sandbox="process", processes=30
    )
    assert "fork" in output
    attempted, _ = await run(config, argv=[PYTHON, "-I", "-S", "-c", ALLOCATORS], sandbox="process", memory_mb=150)
    assert error_of(attempted)[0] == "LimitExceeded"


async def test_a_sandboxed_command_enters_its_cgroup_without_seeing_it(
    bubblewrap: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uses a limit that every cgroup has, because a memory limit is not available everywhere."""
    require_means("cgroup")
    monkeypatch.setitem(LIMIT_FILES, "depth", "cgroup.max.depth")
    config, context = Config(containment="bubblewrap"), KeptContext()
    containment = replace(choose(config), controllers=frozenset({"depth"}))
    sandbox = sandbox_for(SandboxFields(sandbox="bubblewrap"), config, containment)
    command = Command(
        ("/bin/cat", "/proc/self/cgroup"), {}, wrapper=sandbox.wrapper, user=sandbox.user, tree_limits={"depth": 3}
    )
    async with launchers_in(containment) as launchers, ProcessTree(command, launchers, context.write) as tree:
        assert (await tree.verdict()).code == 0
        await tree.drained()
        made = tree._cgroup
        assert made is not None
        assert (made / "cgroup.max.depth").read_text() == "3\n"
    assert made.name.encode() in context.output
    assert not made.exists()


async def test_a_process_limit_is_refused_for_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    attempted, output = await run(command="echo ran", sandbox="process", processes=4)
    assert error_of(attempted)[0] == "SandboxUnavailable"
    assert output == ""


async def test_the_file_system_is_read_only_and_tmp_is_private(bubblewrap: None, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    outside = Path("/var/tmp/foliot-test-outside")
    _, output = await run(
        command=f"cat {secret}; touch {outside} /etc/x; pwd; echo mine > /tmp/f; cat /tmp/f", sandbox="bubblewrap"
    )
    assert "hunter2" not in output
    assert output.endswith("/tmp\nmine\n")
    assert not outside.exists()
    assert not Path("/etc/x").exists()
    assert not Path("/tmp/f").exists()


async def test_the_worker_s_own_files_are_hidden(bubblewrap: None) -> None:
    data = Path("/var/tmp") / f"foliot-test-{os.getpid()}"
    data.mkdir(mode=0o755)
    try:
        (data / "key").write_text("hunter2")
        _, seen = await run(Config(data=str(data)), command=f"cat {data}/key")
        _, hidden = await run(Config(data=str(data)), command=f"cat {data}/key; ls {data}", sandbox="bubblewrap")
    finally:
        (data / "key").unlink()
        data.rmdir()
    assert seen == "hunter2"
    assert "hunter2" not in hidden


async def test_a_command_can_start_where_the_python_of_the_worker_is_hidden(bubblewrap: None) -> None:
    context, library = KeptContext(), Path(os.__file__).parent
    async with launchers_in(choose(Config())) as launchers:
        asked = {"argv": ["test", "!", "-e", os.__file__], "sandbox": "bubblewrap", "cpu_seconds": 5}
        attempted = await shell(Config(), launchers, [library])(asked, context)
        missing = await shell(Config(), launchers, [library])(
            {"argv": ["nothing-like-it"], "sandbox": "bubblewrap"}, context
        )
    assert attempted.ending is Ending.SUCCEEDED, context.output
    assert error_of(missing)[0] == "NotStarted"


async def test_other_processes_and_their_environments_are_hidden(bubblewrap: None) -> None:
    for sandbox in ("none", "bubblewrap"):
        _, output = await run(command="ls -d /proc/[0-9]* | wc -l", sandbox=sandbox)
        assert int(output) < 10


async def test_there_is_no_network_unless_requested_and_allowed(bubblewrap: None) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connect = f"exec /usr/bin/env bash -c 'echo > /dev/tcp/127.0.0.1/{port}'"
    async with server:
        assert (await run(command=connect, sandbox="bubblewrap"))[0].ending is Ending.FAILED
        assert (await run(command=connect, sandbox="bubblewrap", network=True))[0].ending is Ending.SUCCEEDED
        refused, output = await run(Config(sandbox_network=False), command=connect, sandbox="bubblewrap", network=True)
    assert (error_of(refused)[0], output) == ("Invalid", "")


async def test_a_sandboxed_command_gets_sigterm_before_sigkill(bubblewrap: None) -> None:
    context, command = KeptContext(), "trap 'echo bye; exit' TERM; echo started; while :; do sleep 0.01; done"
    async with launchers_in(choose(Config())) as launchers:
        running = asyncio.ensure_future(
            shell(Config(), launchers)({"command": command, "sandbox": "bubblewrap"}, context)
        )
        await context.prints(b"started")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    # The shell may report that the process it waited for was also terminated.
    assert context.output.replace(b"Terminated\n", b"") == b"started\nbye\n"


async def test_root_becomes_nobody(bubblewrap: None) -> None:
    _, output = await run(
        command="id -u; id -G; grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status", sandbox="bubblewrap"
    )
    user, groups, capabilities, no_new_rights = output.splitlines()
    assert user == str(65_534 if os.geteuid() == 0 else os.geteuid())
    assert groups != "0"
    assert int(capabilities.split()[1], 16) == 0
    assert no_new_rights.split()[1] == "1"


def is_open_to_all(path: Path) -> bool:
    return all(part.exists() and part.stat().st_mode & 0o005 == 0o005 for part in (path, *path.parents))


def version_of(python: str) -> str:
    return subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.rpartition(".")[0]


AS_ANOTHER = """
import asyncio
from tests.worker.executors.processes.test_sandbox import run
for command in ("id -u; grep CapEff /proc/self/status; touch /etc/x; grep -c : /proc/net/dev", "exit 137",
    "kill -9 $$"):
    attempted, output = asyncio.run(run(command=command, sandbox="bubblewrap"))
    print(output.splitlines(), attempted.error and attempted.error.message)
"""


async def test_sandboxes_work_without_root(bubblewrap: None) -> None:
    """Without root, sandboxes use user namespaces. These admit only processes that are in all the other namespaces as
    well."""
    paths = [Path(__file__).parents[4], *(Path(path) for path in sys.path if path.endswith(("site-packages", "src")))]
    if os.geteuid() != 0 or not all(is_open_to_all(path) for path in paths):
        pytest.skip("needs root, to become somebody else, and a checkout that everybody may read")
    python = next(
        (
            one
            for one in (sys.executable, "/usr/bin/python3")
            if is_open_to_all(Path(one).resolve()) and version_of(one) == version_of(sys.executable)
        ),
        None,
    )
    if python is None:
        pytest.skip("needs a Python of this version that everybody may run")
    running = await asyncio.create_subprocess_exec(
        python, "-c", AS_ANOTHER, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
        env={"PYTHONPATH": ":".join(map(str, paths)), "PATH": os.environ["PATH"]}, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    said, complaints = await running.communicate()
    seen = [str(NOBODY), "CapEff:\t0000000000000000", "touch: cannot touch '/etc/x': Read-only file system", "1"]
    assert said.decode().splitlines() == [f"{seen} None", "[] exit code 137", "[] killed by SIGKILL"], complaints


@pytest.mark.parametrize("payload", [{"sandbox": "bubblewrap"}, {"sandbox": "bubblewrap", "memory_mb": 100}])
async def test_an_unavailable_sandbox_is_an_error_and_nothing_runs(payload: dict[str, Any]) -> None:
    attempted, output = await run(containment=NO_BUBBLEWRAP, command="echo ran", **payload)
    assert error_of(attempted)[0] == "SandboxUnavailable"
    assert output == ""


async def test_a_bubblewrap_that_refuses_is_an_error_and_nothing_runs(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    attempted, output = await run(
        containment=Containment(Means.LAUNCHER, str(fake)), command="echo ran", sandbox="bubblewrap"
    )
    assert error_of(attempted) == ("NotStarted", "bwrap: No permissions to create a new namespace")
    assert output == ""


@pytest.mark.parametrize(
    ("config", "payload", "field"),
    [
        (Config(sandbox="process"), {"sandbox": "none"}, "sandbox"),
        (Config(sandbox="bubblewrap"), {"sandbox": "process"}, "sandbox"),
        (Config(), {"sandbox": "none", "memory_mb": 100}, "sandbox"),
        (Config(sandbox_memory_mb=100), {"memory_mb": 101}, "memory_mb"),
        (Config(sandbox_cpu_seconds=1), {"cpu_seconds": 2}, "cpu_seconds"),
        (Config(), {"sandbox": "process", "network": False}, "network"),
    ],
)
async def test_a_command_may_only_request_more_restrictions(
    config: Config, payload: dict[str, Any], field: str
) -> None:
    attempted, output = await run(config, command="echo ran", **payload)
    kind, message = error_of(attempted)
    assert (kind, output) == ("Invalid", "")
    assert f"`{field}`" in message


async def test_the_configuration_applies_to_commands_without_a_choice() -> None:
    _, output = await run(Config(sandbox_memory_mb=100, sandbox_cpu_seconds=7), command="ulimit -v; ulimit -t")
    assert output == "102400\n7\n"
    _, output = await run(Config(sandbox_memory_mb=100), command="ulimit -v", memory_mb=50)
    assert output == "51200\n"
