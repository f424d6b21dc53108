"""Real commands, on both event loops: what they print and how they end is told exactly, and nothing of them outlives the attempt."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

import msgspec
import psutil
import pytest
import uvloop

from foliot.model.outcome import Attempted, Ending
from foliot.worker.executors import shell as module
from foliot.worker.executors.shell import DRAIN_SECONDS, shell
from tests.support.contexts import LIMIT, KeptContext

T = TypeVar("T")
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
# A time nobody else sleeps for: what is left of a command is found by it.
unique = (f"{100 + number}.{os.getpid()}" for number in count())


class Loop:
    """Runs coroutines on one kind of event loop; the worker's is uvloop's where there is one."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def shell(self, command: str, *, limit: int = LIMIT) -> Attempted:
        """How the command ended, with its output, as an attempt puts them together."""

        async def execute() -> Attempted:
            context = KeptContext(limit=limit)
            attempted = await shell()({"command": command}, context)
            return replace(attempted, output=context.output)

        return self.run(execute())

    def stop(self, command: str, *, when_prints: bytes) -> None:
        """Cancels the command once it has printed."""

        async def execute() -> None:
            context = KeptContext()
            running = asyncio.ensure_future(shell()({"command": command}, context))
            await context.prints(when_prints)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        self.run(execute())


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[Loop]:
    with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
        yield Loop(runner)
    gc.collect()


def sleepers(mark: str) -> list[psutil.Process]:
    """Processes of the whole machine that mention the mark, in whatever session, whoever their parent is now."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(mark in word for word in process.info["cmdline"] or ())
    ]


def gone(mark: str) -> bool:
    """Waits for the death of what was killed: a signal has been sent, but the kernel takes its moment."""
    give_up_at = time.monotonic() + 5
    while sleepers(mark) and time.monotonic() < give_up_at:
        time.sleep(0.01)
    return not sleepers(mark)


def test_a_command_that_exits_with_0_succeeds(loop: Loop) -> None:
    assert loop.shell("echo out; echo err >&2") == Attempted(Ending.SUCCEEDED, result='{"exit_code":0}', output=b"out\nerr\n")


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
    ],
)
def test_a_command_that_ends_otherwise_fails_and_says_how(loop: Loop, command: str, kind: str, message: str) -> None:
    attempted = loop.shell(f"echo before; {command}")
    assert (attempted.ending, attempted.result) == (Ending.FAILED, None)
    assert attempted.error is not None
    assert (attempted.error.kind, attempted.error.message) == (kind, message)
    if command != "if":
        assert (attempted.output or b"").startswith(b"before\n")


@pytest.mark.parametrize("payload", [{}, {"command": ""}, {"command": 1}, {"command": "true", "more": 1}, {"command": "a" * 100_001}])
def test_a_payload_that_is_no_command_is_refused(loop: Loop, payload: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        loop.run(shell()(payload, KeptContext()))


def test_output_is_kept_byte_by_byte(loop: Loop) -> None:
    command = f"{sys.executable} -c 'import sys; sys.stdout.buffer.write(bytes(range(256)))'"
    assert loop.shell(command).output == bytes(range(256))


def test_no_output_is_empty_output(loop: Loop) -> None:
    assert loop.shell("true").output == b""


def test_a_flood_of_output_is_read_to_its_end_in_bounded_memory(loop: Loop) -> None:
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


def test_the_worker_s_own_settings_are_not_in_the_environment(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", "postgresql://foliot:hunter2@localhost/foliot")
    monkeypatch.setenv("FOLIOT_TOKEN", "hunter2")
    monkeypatch.setenv("MY_OWN", "kept")
    output = loop.shell("env").output or b""
    assert b"MY_OWN=kept" in output
    assert b"FOLIOT_" not in output
    assert b"hunter2" not in output


def test_a_stop_ends_the_command_and_its_children(loop: Loop) -> None:
    mark = next(unique)
    loop.stop(f"sleep {mark} & sleep {mark} & echo started; wait", when_prints=b"started")
    assert gone(mark)


def test_a_stop_asks_before_it_kills(loop: Loop, tmp_path: Any) -> None:
    farewell = tmp_path / "farewell"
    loop.stop(f"trap 'echo bye > {farewell}; exit' TERM; echo started; while :; do sleep 0.01; done", when_prints=b"started")
    assert farewell.read_text() == "bye\n"


def test_a_command_that_ignores_the_request_is_killed(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TERMINATE_SECONDS", 0.2)
    mark = next(unique)
    began = time.monotonic()
    loop.stop(f"trap '' TERM; echo started; sleep {mark}; sleep {mark}", when_prints=b"started")
    assert time.monotonic() - began < 4
    assert gone(mark)


def test_a_child_that_ignores_the_request_is_killed_although_the_shell_obeys(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TERMINATE_SECONDS", 0.2)
    mark = next(unique)
    loop.stop(f"sh -c \"trap '' TERM; echo started; sleep {mark}; sleep {mark}\" & wait", when_prints=b"started")
    assert gone(mark)


def test_a_stop_at_any_moment_leaves_nothing_behind(loop: Loop) -> None:
    mark = next(unique)

    async def stop_after(turns: int) -> None:
        running = asyncio.ensure_future(shell()({"command": f"sleep {mark} & wait"}, KeptContext()))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    for turns in range(1, 40):
        loop.run(stop_after(turns))
    assert gone(mark)


def test_what_a_command_leaves_in_the_background_ends_with_it_and_is_not_waited_for(loop: Loop) -> None:
    mark = next(unique)
    began = time.monotonic()
    attempted = loop.shell(f"sleep {mark} & echo done")
    assert (attempted.ending, attempted.output) == (Ending.SUCCEEDED, b"done\n")
    assert time.monotonic() - began < DRAIN_SECONDS + 2
    assert gone(mark)


def test_a_process_in_a_session_of_its_own_holds_neither_the_attempt_nor_a_descriptor(loop: Loop) -> None:
    mark = next(unique)
    loop.shell("true")
    before = psutil.Process().num_fds()
    began = time.monotonic()
    attempted = loop.shell(f"setsid sleep {mark} & echo done")
    took = time.monotonic() - began
    escaped = sleepers(mark)
    try:
        assert (attempted.ending, attempted.output) == (Ending.SUCCEEDED, b"done\n")
        assert took < DRAIN_SECONDS + 2
        assert len(escaped) == 1
        assert psutil.Process().num_fds() <= before
    finally:
        for process in escaped:
            process.kill()


def test_what_a_background_process_prints_just_after_the_end_is_kept(loop: Loop) -> None:
    assert loop.shell("(sleep 0.2; echo late) & echo done").output == b"done\nlate\n"


def test_many_commands_at_once_keep_their_output_apart(loop: Loop) -> None:
    async def many() -> list[tuple[bytes, Ending]]:
        async def one(number: int) -> tuple[bytes, Ending]:
            context = KeptContext()
            attempted = await shell()({"command": f"echo {number}; exit {number % 2}"}, context)
            return context.output, attempted.ending

        return await asyncio.gather(*(one(number) for number in range(20)))

    endings = [Ending.SUCCEEDED, Ending.FAILED]
    assert loop.run(many()) == [(f"{number}\n".encode(), endings[number % 2]) for number in range(20)]
