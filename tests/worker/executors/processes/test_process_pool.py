"""Python tasks in real processes of their own, with every kind of containment."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import psutil
import pytest

import foliot
from foliot.config import Config
from foliot.errors import Invalid
from foliot.model.outcome import Attempted, Ending
from foliot.model.states import RunState
from foliot.sdk.context import Progress
from foliot.store.store import Store
from foliot.worker.executors.base import Executor
from foliot.worker.executors.processes import process_pool as module
from foliot.worker.executors.processes.containment import choose
from foliot.worker.executors.processes.process_pool import ProcessPool, in_a_process
from tests.support.containment import gone, launchers_in, require_means
from tests.support.contexts import KeptContext
from tests.support.waiting import until
from tests.support.workers import ended, submit, worker_node
from tests.worker.executors.processes import process_tasks

unique = (f"{300 + number}.{os.getpid()}" for number in count())


class Pool:
    def __init__(self, pool: ProcessPool) -> None:
        self.pool = pool

    def executor(self, name: str) -> Executor:
        return in_a_process(process_tasks.app.tasks[name].function, self.pool, result_max_bytes=100_000)

    async def run(self, task: str, context: KeptContext | None = None, /, **payload: Any) -> Attempted:
        return await self.executor(task)(payload, context or KeptContext(task=task))


@pytest.fixture(params=["bubblewrap", "cgroup", "launcher"])
async def pool(request: pytest.FixtureRequest) -> AsyncIterator[Pool]:
    require_means(request.param)
    async with launchers_in(choose(Config(containment=request.param))) as launchers:
        found = ProcessPool(launchers)
        yield Pool(found)
        await found.close()


async def test_a_function_gets_arguments_and_context_and_reports_everything(pool: Pool) -> None:
    context = KeptContext(task="describe", attempt=3)
    attempted = await pool.run("describe", context, a=40)
    result = json.loads(attempted.result or "")
    assert (result["sum"], result["run"], result["attempt"], result["task"]) == (42, str(context.run_id), 3, "describe")
    assert result["pid"] != os.getpid()
    assert context.output == b"printed 40\ncomplained\nwritten\nfrom a child\n"
    assert context.progress_made == Progress(0.5, "half")


async def test_a_process_is_reused_and_keeps_outputs_apart(pool: Pool) -> None:
    contexts = [KeptContext(), KeptContext()]
    results = [
        json.loads((await pool.run("describe", context, a=n)).result or "") for n, context in enumerate(contexts)
    ]
    assert results[0]["sum"] == 2
    assert [b"printed 0" in context.output for context in contexts] == [True, False]
    assert results[0]["pid"] == results[1]["pid"]


async def test_output_before_the_answer_is_kept(pool: Pool) -> None:
    for _ in range(20):
        context = KeptContext(limit=1_000_000)
        await pool.run("chatter", context, size=300_000)
        assert len(context.output) == 300_000


async def test_concurrent_attempts_have_their_own_processes(pool: Pool) -> None:
    found = await asyncio.gather(*(pool.run("describe", a=n) for n in range(3)))
    answers = [json.loads(attempted.result or "") for attempted in found]
    assert [answer["sum"] for answer in answers] == [2, 3, 4]


async def test_many_short_attempts_share_the_first_processes(pool: Pool) -> None:
    found = await asyncio.gather(*(pool.run("describe", a=n) for n in range(24)))
    answers = [json.loads(attempted.result or "") for attempted in found]
    assert [answer["sum"] for answer in answers] == list(range(2, 26))
    assert len({answer["pid"] for answer in answers}) <= 12


async def test_unneeded_processes_end(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.2)
    number = 3
    pool.pool._cores = 1
    contexts = [KeptContext(task="patient") for _ in range(number)]
    attempts = [asyncio.create_task(pool.run("patient", context)) for context in contexts]
    await until(lambda: asyncio.sleep(0, all(b"waiting" in context.output for context in contexts)))
    for attempt in attempts:
        attempt.cancel()
    await asyncio.gather(*attempts, return_exceptions=True)
    await until(lambda: asyncio.sleep(0, len(pool.pool._idle) == 1))
    assert (await pool.run("later", n=1)).result == "2"


async def test_async_functions_work_too(pool: Pool) -> None:
    assert (await pool.run("later", n=1)).result == "2"


@pytest.mark.parametrize(
    ("kind", "name"), [("value", "ValueError"), ("exit", "SystemExit"), ("interrupt", "KeyboardInterrupt")]
)
async def test_an_error_is_reported_and_the_process_continues(pool: Pool, kind: str, name: str) -> None:
    attempted = await pool.run("fail", kind=kind)
    assert attempted.error is not None
    assert (attempted.ending, attempted.error.kind, attempted.error.message) == (Ending.FAILED, name, "on purpose")
    assert "process_tasks.py" in attempted.error.traceback
    assert (await pool.run("later", n=1)).result == "2"


@pytest.mark.parametrize(("times", "end"), [(1, ""), (1, "\n"), (100, ""), (20, "\n")])
async def test_writes_into_the_pipe_of_answers_are_bounded_and_fail_no_other_task(
    pool: Pool, times: int, end: str
) -> None:
    attempted = await pool.run("write_everywhere", times=times, end=end)
    assert attempted.error is not None
    assert (attempted.ending, attempted.error.kind) == (Ending.FAILED, "AnswerNotUnderstood")
    assert (await pool.run("later", n=1)).result == "2"


async def test_a_task_may_decide_about_its_run(pool: Pool) -> None:
    attempted = await pool.run("put_off")
    assert (attempted.ending, attempted.is_retryable, attempted.delay_seconds) == (Ending.FAILED, True, 30)
    assert "RetryIn" in attempted.causes


async def test_results_are_stored_completely_or_refused(pool: Pool) -> None:
    refused = await pool.run("unserialisable")
    assert refused.error is not None
    assert refused.error.kind == "ResultNotStorable"
    text = "ü" * 40_000
    assert (await pool.run("echo", text=text)).result == f'"{text}"'
    refused = await pool.run("echo", text="x" * 900_000)
    assert refused.error is not None
    assert refused.error.kind == "ResultTooLarge"


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("kill", "KilledBySignal", "its process was killed by SIGKILL"),
        ("segfault", "KilledBySignal", "its process was killed by SIGSEGV"),
        ("exit", "ProcessExited", "its process ended with exit code 3"),
    ],
)
async def test_a_function_that_ends_its_process_fails_and_is_replaced(
    pool: Pool, how: str, kind: str, message: str
) -> None:
    context = KeptContext()
    attempted = await pool.run("die", context, how=how)
    assert attempted.error is not None
    assert (attempted.ending, attempted.error.kind, attempted.error.message) == (Ending.FAILED, kind, message)
    assert context.output.startswith(b"last words\n")
    assert (await pool.run("later", n=1)).result == "2"


async def test_a_cancel_kills_a_function_that_never_checks_and_its_children(pool: Pool) -> None:
    mark, context = next(unique), KeptContext()
    running = asyncio.ensure_future(pool.run("spin", context, mark=mark))
    await context.prints(b"spinning")
    began = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    # It would never end by itself.
    assert time.monotonic() - began < 20
    assert gone(mark)
    assert b"spinning" in context.output


async def test_a_function_that_checks_can_finish_and_its_process_is_kept(pool: Pool) -> None:
    pid = json.loads((await pool.run("describe", a=1)).result or "")["pid"]
    context = KeptContext()
    running = asyncio.ensure_future(pool.run("patient", context))
    await context.prints(b"waiting")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert context.output == b"waiting\nasked to stop\n"
    assert json.loads((await pool.run("describe", a=1)).result or "")["pid"] == pid


async def test_a_function_that_ignores_every_request_is_killed(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASK_SECONDS", 0.1)
    monkeypatch.setattr(module, "END_SECONDS", 0.3)
    mark, context = next(unique), KeptContext()
    running = asyncio.ensure_future(pool.run("stubborn", context, mark=mark))
    await context.prints(b"waiting")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert gone(mark)


async def test_a_cancel_at_any_moment_leaves_nothing_behind_and_no_descriptor(pool: Pool) -> None:
    await pool.run("later", n=1)
    await pool.pool.close()
    before = psutil.Process().num_fds()
    for turns in range(0, 30, 2):
        running = asyncio.ensure_future(pool.run("echo", text="x" * 200_000))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    await pool.pool.close()
    assert psutil.Process().num_fds() <= before


async def test_foliot_s_own_settings_are_not_in_the_environment(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", "postgresql://foliot:hunter2@localhost/foliot")
    monkeypatch.setenv("OWN_KEY", "kept")
    result = json.loads((await pool.run("environment")).result or "")
    assert result["OWN_KEY"] == "kept"
    assert not [name for name in result if name.startswith("FOLIOT_") and name != "FOLIOT_GUARD"]


async def test_a_worker_ends_a_busy_function_at_its_time_limit(store: Store) -> None:
    mark = next(unique)
    async with worker_node(store, process_tasks.app):
        view = await ended(store, await submit(store, "spin", payload=json.dumps({"mark": mark})))
        assert (view.state, view.reason) == (RunState.FAILED, "timeout")
        assert gone(mark)
        assert (await ended(store, await submit(store, "later", payload='{"n": 1}'))).result == 2


def test_only_importable_functions_can_run_in_a_process() -> None:
    app = foliot.App()

    def inside() -> None: ...

    with pytest.raises(Invalid, match="top level of a module"):
        app.task(process=True)(inside)
