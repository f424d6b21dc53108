"""Workflows on a real worker and a real store: their order, inputs and results."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

import foliot
from foliot.events import Event, StuckFound
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.run import NewRun
from foliot.model.states import TERMINAL, RunState
from foliot.model.workflow import Workflow, check, plan
from foliot.scheduler.repairer import Repairer
from foliot.store.store import Store
from foliot.store.workflow_lists import Child
from foliot.submission.child_runs import with_declared
from tests.support.runs import find_stuck
from tests.support.waiting import until
from tests.support.workers import worker_node


async def start(store: Store, steps: list[dict[str, Any]], **fields: Any) -> UUID:
    definition = {"steps": steps, **fields}
    workflow = msgspec.convert(definition, Workflow)
    known = await store.workers.list_tasks(Namespace())
    planned = plan([with_declared(step, known) for step in check(workflow)])
    run = NewRun(new_id(), "workflow", "default", payload=msgspec.json.encode(definition).decode())
    await store.workflows.insert_workflow(run, planned, workflow.on_failure)
    store.hints.send(["default"])
    return run.id


async def finished(store: Store, workflow_id: UUID) -> tuple[RunState, dict[str, Child]]:
    async def is_over() -> bool:
        parent = await store.workflow_lists.get_parent(workflow_id)
        assert parent is not None
        run = await store.runs.get_run(parent.run_id)
        return run is not None and run.state in TERMINAL

    await until(is_over)
    parent = await store.workflow_lists.get_parent(workflow_id)
    assert parent is not None
    run = await store.runs.get_run(parent.run_id)
    assert run is not None
    assert await find_stuck(store) == []
    return run.state, {child.step: child for child in await store.workflow_lists.list_children(parent, 100_000)}


def states(children: dict[str, Child]) -> dict[str, str]:
    return {key: str(child.state) for key, child in children.items()}


@pytest.fixture
def app() -> foliot.App:
    app = foliot.App()

    @app.task(retries=0)
    async def good(ctx: foliot.Context, value: Any = None) -> Any:
        return {"value": value, "upstream": dict(ctx.upstream)}

    @app.task(retries=0)
    async def bad() -> None:
        raise ValueError("no")

    @app.task(retries=0)
    async def double(item: int) -> int:
        return item * 2

    return app


async def test_a_diamond_runs_in_order_and_passes_results(store: Store, app: foliot.App) -> None:
    async with worker_node(store, app):
        workflow_id = await start(
            store,
            [
                {"key": "last", "task": "good", "after": ["left", "right"]},
                {
                    "key": "left",
                    "task": "good",
                    "payload": {"value": {"$result": "first", "path": ["value"]}},
                    "after": ["first"],
                },
                {"key": "right", "task": "good", "payload": {"value": 3}, "after": ["first"]},
                {"key": "first", "task": "good", "payload": {"value": 7}},
            ],
        )
        state, children = await finished(store, workflow_id)
    assert state is RunState.SUCCEEDED
    assert set(states(children).values()) == {"succeeded"}
    last = msgspec.json.decode(children["last"].result)
    assert last["upstream"]["left"]["value"] == 7
    assert last["upstream"]["right"]["value"] == 3
    first, left = children["first"], children["left"]
    assert first.finished_at is not None
    assert left.started_at is not None
    assert first.finished_at <= left.started_at


async def test_a_failure_skips_later_steps_and_names_the_failed_one(store: Store, app: foliot.App) -> None:
    async with worker_node(store, app):
        workflow_id = await start(
            store,
            [
                {"key": "a", "task": "bad"},
                {"key": "b", "task": "good", "after": ["a"]},
                {"key": "c", "task": "good", "after": ["b"]},
                {"key": "d", "task": "good", "after": ["c"], "rule": "all_done"},
                {"key": "e", "task": "good"},
            ],
        )
        state, children = await finished(store, workflow_id)
    assert state is RunState.FAILED
    assert states(children) == {"a": "failed", "b": "skipped", "c": "skipped", "d": "succeeded", "e": "succeeded"}
    for key in ("b", "c"):
        assert children[key].reason == "dependency_failed"
        assert msgspec.json.decode(children[key].error)["message"] == "dependency_failed: a"


async def test_a_map_has_a_run_for_each_item_and_a_join(store: Store, app: foliot.App) -> None:
    async with worker_node(store, app):
        workflow_id = await start(
            store,
            [
                {"key": "numbers", "task": "double", "map": {"range": {"stop": 50}, "max_concurrency": 7}},
                {"key": "again", "task": "double", "map": {"result_of": "numbers"}, "after": ["numbers"]},
                {"key": "join", "task": "good", "after": ["again"]},
            ],
        )
        state, children = await finished(store, workflow_id)
    assert state is RunState.SUCCEEDED
    assert msgspec.json.decode(children["join"].result)["upstream"]["again"]["results"] == [
        number * 4 for number in range(50)
    ]


async def test_a_run_that_lost_its_count_is_repaired(
    store: Store, app: foliot.App, sql: Any, seen: list[Event]
) -> None:
    async with worker_node(store, app):
        workflow_id = await start(
            store, [{"key": "a", "task": "good"}, {"key": "b", "task": "good", "after": ["a"], "delay_seconds": 0}]
        )
        await finished(store, workflow_id)
    lost = await start(store, [{"key": "a", "task": "good"}, {"key": "b", "task": "good", "after": ["a"]}])
    await sql.execute(
        "delete from foliot.dependencies; update foliot.runs set created_at = created_at - interval '1 minute'"
    )
    async with worker_node(store, app):
        parent = await store.workflow_lists.get_parent(lost)
        assert parent is not None

        async def is_stuck() -> bool:
            found = {child.step: str(child.state) for child in await store.workflow_lists.list_children(parent, 10)}
            return found == {"a": "succeeded", "b": "waiting"}

        await until(is_stuck)
        repairer = Repairer(store=store, clock=store.database.clock, events=store.events)
        await repairer.run_once()
        assert [event.kind for event in seen if isinstance(event, StuckFound)] == ["dependent"]
        state, _ = await finished(store, lost)
    assert state is RunState.SUCCEEDED
