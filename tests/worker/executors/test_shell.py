"""Real commands on both event loops: output and exit are recorded exactly, and nothing survives the attempt."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
import uvloop

from foliot.config import Config
from foliot.model.outcome import Attempted, Ending
from foliot.worker.executors.base import Executor
from foliot.worker.executors.processes import process_tree as module
from foliot.worker.executors.processes.containment import choose
from foliot.worker.executors.processes.launcher_pool import LauncherPool
from foliot.worker.executors.shell import shell
from tests.support.containment import gone, require_means, sleepers
from tests.support.contexts import LIMIT, KeptContext
from tests.support.waiting import until

T = TypeVar("T")
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
# A sleep of a unique length, by which leftover processes are found.
unique = (f"{100 + number}.{os.getpid()}" for number in count())
LONG_BEFORE_THE_SLEEP_ENDS = 50


class Loop:
    """Runs coroutines on one kind of event loop. Workers use uvloop where it is available."""

    def __init__(self, runner: asyncio.Runner, means: str) -> None:
        self._runner = runner
        self.means = means
        self._config = Config(containment=means)  # type: ignore[arg-type]
        self.launchers = LauncherPool(choose(self._config))

    @property
    def execute(self) -> Executor:
        return shell(self._config, self.launchers)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def shell(self, command: str, *, limit: int = LIMIT) -> Attempted:
        """The end of the command with its output, as an attempt combines them."""

        return self.attempt({"command": command}, limit=limit)

    def attempt(self, payload: Mapping[str, object], *, limit: int = LIMIT) -> Attempted:
        async def execute() -> Attempted:
            context = KeptContext(limit=limit)
            return replace(await self.execute(dict(payload), context), output=context.output)

        return self.run(execute())

    def stop(self, command: str, *, when_prints: bytes) -> None:
        """Cancels the command after its first output."""

        async def execute() -> None:
            context = KeptContext()
            running = asyncio.ensure_future(self.execute({"command": command}, context))
            await context.prints(when_prints)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        self.run(execute())


@pytest.fixture(
    params=[("uvloop", "bubblewrap"), ("uvloop", "cgroup"), ("uvloop", "launcher"), ("asyncio", "launcher")],
    ids="-".join,
)
def loop(request: pytest.FixtureRequest) -> Iterator[Loop]:
    kind, means = request.param
    require_means(means)
    with asyncio.Runner(loop_factory=LOOPS[kind]) as runner:
        made = Loop(runner, means)
        yield made
        runner.run(made.launchers.close())
    gc.collect()


def test_a_command_that_exits_with_0_succeeds(loop: Loop) -> None:
    assert loop.shell("echo out; echo err >&2") == Attempted(
        Ending.SUCCEEDED, result='{"exit_code":0}', output=b"out\nerr\n"
    )


@pytest.mark.parametrize(
    ("command", "kind", "message"),
    [
        ("exit 3", "ExitCode", "exit code 3"),
        ("no-such-program", "ExitCode", "exit code 127"),
        ("/etc/passwd", "ExitCode", "exit code 126"),
        ("if", "ExitCode", "exit code 2"),
        ("kill -9 $$", "KilledBySignal", "killed by SIGKILL"),
        ("kill -SEGV $$", "KilledBySignal", "killed by SIGSEGV"),
        ("kill -40 $$", "KilledBySignal", "killed by signal 40"),
        ("exit 137", "ExitCode", "exit code 137"),
        ("exit 255", "ExitCode", "exit code 255"),
    ],
)
def test_a_command_that_ends_otherwise_fails_with_its_exit_code_or_signal(
    loop: Loop, command: str, kind: str, message: str
) -> None:
    attempted = loop.shell(f"echo before; {command}")
    assert (attempted.ending, attempted.result) == (Ending.FAILED, None)
    assert attempted.error is not None
    assert (attempted.error.kind, attempted.error.message) == (kind, message)
    if command != "if":
        assert (attempted.output or b"").startswith(b"before\n")


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"command": ""},
        {"command": 1},
        {"command": "true", "more": 1},
        {"command": "a" * 100_001},
        {"command": "true", "argv": ["true"]},
        {"command": "nul \0"},
        {"argv": []},
        {"argv": ["a\0b"]},
        {"argv": "true"},
        {"command": "true", "environment": {"A=B": "c"}},
        {"command": "true", "environment": {"": "c"}},
        {"command": "true", "environment": {"A": "\0"}},
    ],
)
def test_a_payload_without_a_command_is_refused(loop: Loop, payload: dict[str, object]) -> None:
    ended = loop.run(loop.execute(payload, KeptContext()))
    assert ended.error is not None
    assert (ended.ending, ended.error.kind, ended.is_retryable) == (Ending.FAILED, "Invalid", False)


def test_output_is_kept_byte_by_byte(loop: Loop) -> None:
    command = f"{sys.executable} -c 'import sys; sys.stdout.buffer.write(bytes(range(256)))'"
    assert loop.shell(command).output == bytes(range(256))


def test_no_output_is_empty_output(loop: Loop) -> None:
    assert loop.shell("true").output == b""


def test_a_flood_of_output_is_read_in_bounded_memory(loop: Loop) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    attempted = loop.shell("yes | head -c 50000000; echo end", limit=10_000)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    output = attempted.output or b""
    assert output.startswith(b"y\ny\n")
    assert output.endswith(b"y\nend\n")
    assert b"[... 49990004 bytes dropped ...]" in output
    assert grown_kib < 20_000


def test_standard_input_is_empty(loop: Loop) -> None:
    assert (loop.shell("wc -c").output or b"").strip() == b"0"


def test_the_environment_is_clean(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", "postgresql://foliot:hunter2@localhost/foliot")
    monkeypatch.setenv("FOLIOT_TOKEN", "hunter2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("LC_MESSAGES", "de_DE")
    output = loop.shell("env").output or b""
    assert b"LC_MESSAGES=de_DE" in output
    assert b"PATH=" in output
    foliot = {line.partition(b"=")[0] for line in output.splitlines() if line.startswith(b"FOLIOT_")}
    mark = set() if loop.means == "bubblewrap" else {b"FOLIOT_GUARD"}
    assert foliot == {b"FOLIOT_RUN_ID", b"FOLIOT_ATTEMPT", b"FOLIOT_RESULT"} | mark
    assert b"hunter2" not in output


def test_a_command_gets_only_the_standard_descriptors_and_that_of_its_result(loop: Loop) -> None:
    # The lowest free one is the descriptor with which `ls` reads the directory.
    result, *found = (loop.shell("echo ${FOLIOT_RESULT##*/}; ls /proc/self/fd").output or b"").split()
    assert set(found) == {b"0", b"1", b"2", result, b"4" if result == b"3" else b"3"}
    assert len(found) == 5


def test_a_stop_ends_the_command_and_its_children(loop: Loop) -> None:
    mark = next(unique)
    loop.stop(f"sleep {mark} & sleep {mark} & echo started; wait", when_prints=b"started")
    assert gone(mark)


def test_a_stop_sends_sigterm_before_sigkill(loop: Loop, tmp_path: Any) -> None:
    farewell = tmp_path / "farewell"
    loop.stop(
        f"trap 'echo bye > {farewell}; exit' TERM; echo started; while :; do sleep 0.01; done", when_prints=b"started"
    )
    assert farewell.read_text() == "bye\n"


def test_a_command_that_ignores_sigterm_is_killed(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "END_SECONDS", 0.2)
    mark = next(unique)
    began = time.monotonic()
    loop.stop(f"trap '' TERM; echo started; sleep {mark}; sleep {mark}", when_prints=b"started")
    assert time.monotonic() - began < LONG_BEFORE_THE_SLEEP_ENDS
    assert gone(mark)


def test_a_child_that_ignores_sigterm_is_killed_although_the_shell_exits(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "END_SECONDS", 0.2)
    mark = next(unique)
    loop.stop(f"sh -c \"trap '' TERM; echo started; sleep {mark}; sleep {mark}\" & wait", when_prints=b"started")
    assert gone(mark)


def test_a_stop_at_any_moment_leaves_no_process_behind(loop: Loop) -> None:
    mark = next(unique)
    execute = loop.execute

    async def stop_after(turns: int) -> None:
        running = asyncio.ensure_future(execute({"command": f"sleep {mark} & wait"}, KeptContext()))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    for turns in range(1, 40):
        loop.run(stop_after(turns))
    assert gone(mark)


def test_background_processes_end_with_the_command_and_are_not_awaited(loop: Loop) -> None:
    mark = next(unique)
    began = time.monotonic()
    attempted = loop.shell(f"sleep {mark} & echo done")
    assert (attempted.ending, attempted.output) == (Ending.SUCCEEDED, b"done\n")
    assert time.monotonic() - began < LONG_BEFORE_THE_SLEEP_ENDS
    assert gone(mark)


def test_a_daemon_in_a_session_of_its_own_ends_with_the_command_and_holds_no_descriptor(loop: Loop) -> None:
    mark = next(unique)
    loop.shell("true")
    before = psutil.Process().num_fds()
    began = time.monotonic()
    attempted = loop.shell(f"setsid sh -c 'setsid sleep {mark} & exit' & echo done")
    assert (attempted.ending, attempted.output) == (Ending.SUCCEEDED, b"done\n")
    assert time.monotonic() - began < LONG_BEFORE_THE_SLEEP_ENDS
    assert not sleepers(mark), "it must be gone before the slot is free"
    assert psutil.Process().num_fds() <= before


def test_output_of_a_background_process_just_after_the_end_is_kept(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    # The process ends with its output. The length of the delay does not matter here.
    monkeypatch.setattr(module, "DRAIN_SECONDS", 30.0)
    assert loop.shell("(sleep 0.2; echo late) & echo done").output == b"done\nlate\n"


def test_concurrent_commands_keep_their_output_apart(loop: Loop) -> None:
    execute = loop.execute

    async def many() -> list[tuple[bytes, Ending]]:
        async def one(number: int) -> tuple[bytes, Ending]:
            context = KeptContext()
            attempted = await execute({"command": f"echo {number}; exit {number % 2}"}, context)
            return context.output, attempted.ending

        return await asyncio.gather(*(one(number) for number in range(20)))

    endings = [Ending.SUCCEEDED, Ending.FAILED]
    assert loop.run(many()) == [(f"{number}\n".encode(), endings[number % 2]) for number in range(20)]


def test_a_program_gets_its_exact_arguments_input_and_directory(loop: Loop, tmp_path: Path) -> None:
    words = ["printf", "%s|", "$HOME; `id`", "", "ü"]
    assert loop.attempt({"argv": words}).output == "$HOME; `id`||ü|".encode()
    attempted = loop.attempt(
        {
            "command": "pwd; cat; echo $GREETING",
            "cwd": str(tmp_path),
            "stdin": "in\n",
            "environment": {"GREETING": "hi"},
        }
    )
    assert attempted.output == f"{tmp_path}\nin\nhi\n".encode()


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"argv": ["no-such-program"]}, "can't execute 'no-such-program': No such file or directory"),
        ({"argv": ["/etc/passwd"]}, "can't execute '/etc/passwd': Permission denied"),
        (
            {"argv": ["true"], "cwd": "/no/such, place"},
            "can't enter the directory '/no/such, place': No such file or directory",
        ),
        ({"argv": ["true"], "environment": {"BIG": "x" * 100_000, "BIGGER": "y" * 100_000}}, None),
        ({"argv": ["echo", *(["x" * 90_000] * 100)]}, "can't execute 'echo': Argument list too long"),
    ],
)
def test_a_program_that_can_not_start_fails_with_the_reason(
    loop: Loop, payload: dict[str, object], message: str | None
) -> None:
    attempted = loop.attempt(payload)
    assert (attempted.error.message if attempted.error else None) == message
    if message:
        assert attempted.error is not None
        assert attempted.error.kind == "NotStarted"


@pytest.mark.parametrize("command", ["kill -9 $PPID; sleep {mark}", "sleep {mark} & kill -9 $PPID; sleep {mark}"])
def test_a_command_can_kill_its_launcher_but_not_the_worker_or_the_cleanup(loop: Loop, command: str) -> None:
    mark = next(unique)
    attempted = loop.shell(f"echo before; {command.format(mark=mark)}")
    assert attempted.output == b"before\n"
    assert attempted.error is not None
    assert attempted.error.message == "killed by SIGKILL"
    assert gone(mark)


def test_a_process_that_left_the_session_does_not_outlive_the_launcher(loop: Loop) -> None:
    mark = next(unique)
    attempted = loop.shell(f"launcher=$PPID; setsid sh -c 'kill -9 '$launcher'; sleep {mark}' & sleep {mark}")
    assert attempted.error is not None
    assert attempted.error.message == "killed by SIGKILL"
    assert gone(mark)


def test_a_command_that_stops_its_launcher_is_still_ended(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAUNCHER_SECONDS", 0.2)
    monkeypatch.setattr(module, "END_SECONDS", 0.2)
    mark = next(unique)
    loop.stop(f"kill -STOP $PPID; echo started; sleep {mark}", when_prints=b"started")
    assert gone(mark)


def test_a_stop_while_the_last_output_is_read_changes_nothing(loop: Loop) -> None:
    mark = next(unique)

    async def shell_has_ended() -> bool:
        return not [process for process in sleepers(mark) if process.info["cmdline"] != ["sleep", mark]]

    async def execute() -> Attempted:
        context = KeptContext()
        running = asyncio.ensure_future(loop.execute({"command": f"sleep {mark} & echo done; exit 3"}, context))
        await context.prints(b"done")
        # Before that, a stop would stop the command.
        await until(shell_has_ended)
        await asyncio.sleep(0.3)
        running.cancel()
        return await running

    attempted = loop.run(execute())
    assert attempted.error is not None
    assert attempted.error.message == "exit code 3"
    assert gone(mark)
