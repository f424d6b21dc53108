"""Workflows built in Python: their requests, the errors before anything is sent, and their runs on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import date, timedelta
from typing import Any, TypeVar

import msgspec
import pytest

import foliot
from foliot.errors import Conflict, Invalid, NotFound, Unreachable
from foliot.scheduler.expirer import Expirer
from foliot.scheduler.promoter import Promoter
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.client import Client
from foliot.store.store import Store
from tests.support.workers import worker_node

T = TypeVar("T")
SECONDS = 60
HANDS_ON = 'cat "$FOLIOT_UPSTREAM" > "$FOLIOT_RESULT"'


class Tasks:
    def __init__(self, url: str) -> None:
        self.app = app = foliot.App(url=url)
        self.is_broken = True

        @app.task(retries=0)
        async def extract(day: str = "") -> dict[str, Any]:
            return {"day": day, "rows": [1, 2, 3]}

        @app.task(retries=0)
        def load(ctx: foliot.Context, rows: list[int]) -> dict[str, Any]:
            return {"sum": sum(rows), "upstream": sorted(ctx.upstream)}

        @app.task(retries=0)
        async def double(number: int) -> int:
            return number * 2

        @app.task(retries=0)
        async def fragile() -> str:
            if self.is_broken:
                raise ValueError("broken")
            return "mended"

        self.extract, self.load, self.double, self.fragile = extract, load, double, fragile


@pytest.fixture
async def tasks(server_url: str) -> AsyncIterator[Tasks]:
    tasks = Tasks(server_url)
    yield tasks
    tasks.app.close()


@pytest.fixture
async def working(tasks: Tasks, store: Store) -> AsyncIterator[None]:
    around = {"store": store, "clock": store.database.clock, "events": store.events}
    services = [Promoter(**around), Expirer(**around)]  # type: ignore[arg-type]
    for service in services:
        await service.start()
    async with worker_node(store, tasks.app):
        yield
    for service in services:
        await service.stop()


async def plainly(work: Callable[[], T]) -> T:
    """Runs a function as in a program without an event loop."""
    return await asyncio.to_thread(work)


def nightly(tasks: Tasks) -> foliot.Workflow:
    flow = foliot.Workflow("nightly", on_failure="fail_fast")
    extract = flow.step(tasks.extract, day="2026-11-16")
    load = flow.step("load", tasks.load, rows=extract.result["rows"])
    numbers = flow.map(
        "numbers", tasks.double, over=range(2, 12, 3), item="number", chunk_size=1, max_concurrency=2, after=[load]
    )
    approve = flow.approval("approve", timeout=timedelta(hours=1), after=numbers)
    flow.sleep("nap", 0.05, after="approve")
    flow.shell("publish", HANDS_ON, after=[approve, "nap"])
    flow.teardown("cleanup", "simulate", execution_time_ms=1)
    return flow


def test_a_workflow_becomes_a_valid_request() -> None:
    flow = nightly(Tasks("http://127.0.0.1:1"))
    assert flow.request() == {
        "name": "nightly",
        "on_failure": "fail_fast",
        "steps": [
            {"key": "extract", "task": "extract", "payload": {"day": "2026-11-16"}},
            {"key": "load", "task": "load", "payload": {"rows": {"$result": "extract", "path": ["rows"]}},
                "after": ["extract"]},
            {
                "key": "numbers",
                "task": "double",
                "after": ["load"],
                "map": {
                    "range": {"start": 2, "stop": 12, "step": 3},
                    "item_name": "number",
                    "chunk_size": 1,
                    "max_concurrency": 2,
                    "on_failure": "continue",
                },
            },
            {"key": "approve", "task": "wait", "signal": {"on_timeout": "fail", "timeout_seconds": 3600.0},
                "after": ["numbers"]},
            {"key": "nap", "task": "wait", "delay_seconds": 0.05, "after": ["approve"]},
            {"key": "publish", "task": "shell", "payload": {"command": HANDS_ON}, "after": ["approve", "nap"]},
            {"key": "cleanup", "task": "simulate", "payload": {"execution_time_ms": 1}, "teardown": True},
        ],
    }  # fmt: skip


def test_options_rules_and_reserved_argument_names_work() -> None:
    tasks = Tasks("http://127.0.0.1:1")
    flow = foliot.Workflow(queue="q", priority=3)
    first = flow.step(tasks.extract.with_options(retries=5, queue="mail"))
    flow.step(
        "again",
        "extract",
        after=first,
        rule="one_failed",
        options={"timeout_seconds": 9},
        payload={"after": 1, "rule": first.result},
    )
    flow.map("over", tasks.double, over=first, item="number", on_failure="fail_fast")
    flow.map("mixed", tasks.double, over=[1, first.result["rows"][0]], item="number")
    flow.shell("argv", ["ls", "-l"], cwd="/")
    request = flow.request()
    assert (request["queue"], request["priority"], "name" in request) == ("q", 3, False)
    steps = {step["key"]: step for step in request["steps"]}
    assert (steps["extract"]["retries"], steps["extract"]["queue"]) == (5, "mail")
    assert (steps["again"]["timeout_seconds"], steps["again"]["rule"]) == (9, "one_failed")
    assert steps["again"]["payload"] == {"after": 1, "rule": {"$result": "extract"}}
    assert (steps["over"]["map"]["result_of"], steps["over"]["after"]) == ("extract", ["extract"])
    assert (steps["mixed"]["map"]["items"], steps["mixed"]["after"]) == (
        [1, {"$result": "extract", "path": ["rows", 0]}],
        ["extract"],
    )
    assert steps["argv"]["payload"] == {"argv": ["ls", "-l"], "cwd": "/"}


def cycle(flow: foliot.Workflow) -> Any:
    flow.step("a", "simulate", after="c")
    flow.step("b", "simulate", after="a")
    flow.step("c", "simulate", after="b")


REFUSED: dict[str, tuple[Callable[[foliot.Workflow], Any], str]] = {
    "cycle": (cycle, "wait for each other in a circle"),
    "unknown step": (
        lambda flow: flow.step("a", "simulate", after="b"),
        "'a' waits for 'b', and there is no such step",
    ),
    "doubled": (lambda flow: (flow.step("simulate"), flow.step("simulate")), "a step 'simulate' already exists"),
    "empty": (lambda flow: None, "steps"),
    "key": (lambda flow: flow.step("a b", "simulate"), "step 'a b': key: "),
    "field": (lambda flow: flow.step("a", "simulate", options={"retrys": 1}), "step 'a': .*`retrys`"),
    "rule": (
        lambda flow: flow.step("a", "simulate", rule="all_sucess"),  # type: ignore[arg-type]
        "step 'a': rule: 'all_sucess' is not one of the allowed values",
    ),
    "no task": (lambda flow: flow.step(7), "7 is not a task"),  # type: ignore[arg-type]
    "no key": (lambda flow: flow.step(7, "simulate"), "7 is not a key"),  # type: ignore[arg-type]
    "a step as a value": (
        lambda flow: flow.step("b", "simulate", x=[flow.step("a", "simulate")]),
        r"use a.result",
    ),
    "a part": (lambda flow: flow.map("b", "simulate", over=flow.step("a", "simulate").result["x"]), "whole result"),
    "itself": (lambda flow: flow.step("a", flow), "steps"),
    "arguments": (lambda flow: flow.step("a", inner(), day=1), "takes no arguments"),
    "two schedules": (
        lambda flow: (flow.step("simulate"), flow.schedule(cron="* * * * *", every="1h")),
        "either cron or every",
    ),
}


def inner() -> foliot.Workflow:
    flow = foliot.Workflow("inner")
    flow.step("simulate")
    return flow


@pytest.mark.parametrize("case", REFUSED)
def test_an_invalid_workflow_is_refused_before_it_is_sent(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, why = REFUSED[case]
    monkeypatch.setenv("FOLIOT_URL", "http://127.0.0.1:1")
    flow = foliot.Workflow("refused")

    def program() -> None:
        build(flow)
        flow.submit()

    with pytest.raises(Invalid, match=why):
        program()


def test_a_future_result_can_not_be_iterated() -> None:
    step = foliot.Workflow().step("simulate")
    with pytest.raises(TypeError, match="not available yet"):
        list(step.result)
    assert repr(step.result["rows"][0]) == "<result of 'simulate'['rows'][0]>"


@pytest.mark.usefixtures("working")
async def test_a_workflow_runs_and_is_queried_from_sync_code(tasks: Tasks) -> None:
    def program() -> foliot.WorkflowHandle:
        night = nightly(tasks).submit()
        assert night.is_new
        assert night.result("load", timeout=SECONDS) == {"sum": 6, "upstream": ["extract"]}
        assert night.result("numbers", timeout=SECONDS)["results"] == [4, 10, 16, 22]
        assert night.status() == "running"
        night.signal("approve", {"by": "ann"})
        assert night.wait(timeout=SECONDS) == "completed"
        return night

    night = await plainly(program)
    steps = await night.steps_async()
    assert {step["status"] for step in steps.values()} == {"completed"}
    assert steps["publish"]["result"] == {"approve": {"by": "ann"}, "nap": None}
    assert (await night.show_async())["progress"]["share"] == 1
    assert night == foliot.WorkflowHandle(night.id, server=tasks.app.server)


@pytest.mark.usefixtures("working")
async def test_a_failure_is_reported_and_redriven(tasks: Tasks) -> None:
    flow = foliot.Workflow("mended")
    first = flow.step(tasks.extract)
    fragile = flow.step(tasks.fragile, after=first)
    flow.step("last", tasks.double, after=fragile, number=4)
    handle = await flow.submit_async()
    assert await handle.wait_async(timeout=SECONDS) == "failed"
    with pytest.raises(foliot.JobFailed, match="ValueError: broken"):
        await handle.result_async("fragile")
    with pytest.raises(foliot.JobFailed, match="dependency_failed: fragile") as skipped:
        await plainly(lambda: handle.result("last"))
    assert skipped.value.status == "skipped"
    tasks.is_broken = False
    before = (await handle.steps_async())["extract"]["id"]
    await handle.redrive_async()
    assert await plainly(lambda: handle.wait(timeout=SECONDS)) == "completed"
    assert (await handle.result_async("last"), (await handle.steps_async())["extract"]["id"]) == (8, before)
    with pytest.raises(Conflict, match="nothing to run again"):
        await plainly(handle.redrive)


@pytest.mark.usefixtures("working")
async def test_an_approval_may_be_refused_early_or_cancelled(tasks: Tasks) -> None:
    def flow() -> foliot.Workflow:
        flow = foliot.Workflow()
        flow.teardown("end", "simulate", after=flow.approval("ask", after=flow.step(tasks.extract)))
        return flow

    refused = await flow().submit_async()
    # The signal may arrive before the previous step has ended: it is kept.
    await refused.signal_async("ask", approved=False, message="not today")
    assert await refused.wait_async(timeout=SECONDS) == "failed"
    with pytest.raises(foliot.JobFailed, match="not today"):
        await refused.result_async("ask")
    with pytest.raises(NotFound, match="no step 'aks'; it has 'extract', 'ask', 'end'"):
        await refused.signal_async("aks")
    with pytest.raises(Conflict, match=r"has had its signal"):
        await plainly(lambda: refused.signal("ask"))
    stopped = await plainly(flow().submit)
    await stopped.result_async("extract", timeout=SECONDS)
    await plainly(lambda: stopped.cancel("changed my mind"))
    assert await stopped.wait_async(timeout=SECONDS) == "cancelled"
    steps = await plainly(stopped.steps)
    assert (steps["ask"]["status"], steps["end"]["status"]) == ("cancelled", "completed")


@pytest.mark.usefixtures("working")
async def test_a_workflow_may_be_nested_delayed_and_keyed(tasks: Tasks) -> None:
    part = foliot.Workflow("part")
    part.step(tasks.double, number=3)
    whole = foliot.Workflow("whole")
    rows = whole.step(tasks.extract)
    whole.map("mixed", tasks.double, over=[7, rows.result["rows"][2]], item="number")
    whole.step("after", tasks.extract, after=whole.step(part))
    later = await plainly(lambda: whole.submit_at(timedelta(seconds=0.2)))
    assert await plainly(lambda: later.result("after", timeout=SECONDS)) == {"day": "", "rows": [1, 2, 3]}
    assert (await later.steps_async())["part"]["children"]["succeeded"] == 1
    assert (await later.result_async("mixed", timeout=SECONDS))["results"] == [14, 6]
    first = await whole.submit_async(idempotency_key="whole 1")
    second = await plainly(lambda: whole.submit(idempotency_key="whole 1"))
    assert (first, first.is_new, second.is_new) == (second, True, False)
    assert await (await whole.submit_at_async(timedelta(hours=1))).cancel_async() == "cancelled"


@pytest.mark.usefixtures("working")
async def test_a_recurring_workflow_is_a_job_like_any_other(tasks: Tasks, server_url: str) -> None:
    flow = nightly(tasks)
    job_id = await plainly(lambda: flow.schedule(cron="0 3 * * *", timezone="Europe/Berlin"))
    with pytest.raises(Conflict, match="nightly"):
        await flow.schedule_async(every="1h")

    def program() -> str:
        with Client(server_url) as client:
            job = client.get_job("nightly").document
            assert (job["id"], job["task"], job["schedule"]["timezone"]) == (job_id, "workflow", "Europe/Berlin")
            return str(client.trigger_job("nightly").document["id"])

    fired = foliot.WorkflowHandle(await plainly(program), server=tasks.app.server)
    assert await fired.result_async("load", timeout=SECONDS) == {"sum": 6, "upstream": ["extract"]}
    await fired.cancel_async(force=True)


@pytest.mark.usefixtures("working")
async def test_a_workflow_uses_the_given_client_or_app(
    tasks: Tasks, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOT_URL", "http://127.0.0.1:1")
    flow = foliot.Workflow()
    flow.step("simulate", execution_time_ms=1)
    with pytest.raises(Unreachable):
        await flow.submit_async()

    def program() -> str:
        with Client(server_url) as client:
            return flow.submit(client).wait(timeout=SECONDS)

    assert await plainly(program) == "completed"
    async with AsyncClient(server_url) as client:
        assert await (await flow.submit_async(client)).wait_async(timeout=SECONDS) == "completed"
    assert await (await flow.submit_async(tasks.app)).wait_async(timeout=SECONDS) == "completed"


def test_arguments_of_steps_are_checked_by_signature() -> None:
    app = foliot.App()

    @app.task
    def extract(day: date) -> list[int]:
        return [day.day]

    @app.task
    def load(rows: list[int], day: date, limit: int = 10) -> None: ...

    flow = foliot.Workflow("books")
    rows = flow.step(extract, day=date(2026, 1, 31))
    flow.step(load, rows=rows.result, day=rows.result["day"])
    flow.map("each", load, over=rows, item="rows", day=date(2026, 1, 31))
    steps = msgspec.to_builtins(flow.definition())["steps"]
    assert [step.get("payload") for step in steps] == [
        {"day": "2026-01-31"},
        {"rows": {"$result": "extract"}, "day": {"$result": "extract", "path": ["day"]}},
        {"day": "2026-01-31"},
    ]
    with pytest.raises(Invalid, match=r"step 'bad': payload\.day: is required"):
        flow.step("bad", load, rows=rows.result)
    with pytest.raises(Invalid, match=r"step 'bad': payload\.dya: there is no such field, did you mean 'day'"):
        flow.map("bad", load, over=[[1]], item="rows", dya=date(2026, 1, 31))
    assert len(flow.definition()["steps"]) == 3
