"""Signals, delays and references: when steps start, and the values that they get."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from foliot.config import Config
from foliot.store.store import Store
from tests.support.workflow_bench import WorkflowBench, act, states_of, steps_of


@pytest.fixture
async def bench(store: Store, client: httpx.AsyncClient) -> AsyncIterator[WorkflowBench]:
    async with WorkflowBench(store, client).running() as bench:
        yield bench


async def run_of(bench: WorkflowBench, workflow_id: str, key: str) -> str:
    found: str = steps_of(await bench.get(workflow_id))[key]["id"]
    return found


async def test_a_signal_starts_a_step_and_passes_its_payload(bench: WorkflowBench) -> None:
    workflow_id = await bench.create(act("a", signal={}), act("b", "a"), {"key": "w", "signal": {}})
    await bench.step_is(workflow_id, "a", "held")
    assert not bench.ran
    for key in ("a", "w"):
        await bench.post(f"/v1/runs/{await run_of(bench, workflow_id, key)}/signal", payload={"by": key})
    shown = await bench.ended(workflow_id)
    assert set(states_of(shown).values()) == {"succeeded"}
    assert bench.saw["a"]["signal"] == {"by": "a"}
    assert steps_of(shown)["w"]["result"] == {"by": "w"}


async def test_an_early_signal_is_kept_and_a_second_one_is_refused(bench: WorkflowBench) -> None:
    bench.holding = {"first"}
    workflow_id = await bench.create(act("first"), act("a", "first", signal={"timeout_seconds": 60}))
    await bench.is_under_way("first")
    run_id = await run_of(bench, workflow_id, "a")
    assert (await bench.post(f"/v1/runs/{run_id}/signal", payload=1))["state"] == "waiting"
    assert "has had its signal" in (await bench.post(f"/v1/runs/{run_id}/signal", 409, payload=2))["detail"]
    bench.holding.clear()
    assert (await bench.ended(workflow_id))["state"] == "succeeded"
    assert bench.saw["a"]["signal"] == 1
    assert "has had its signal" in (await bench.post(f"/v1/runs/{run_id}/signal", 409))["detail"]


async def test_a_refusing_signal_fails_the_step(bench: WorkflowBench) -> None:
    workflow_id = await bench.create(act("a", signal={}), act("b", "a"))
    await bench.post(f"/v1/runs/{await run_of(bench, workflow_id, 'a')}/signal", approved=False, message="too dear")
    shown = await bench.ended(workflow_id)
    assert states_of(shown) == {"a": "failed", "b": "skipped"}
    assert steps_of(shown)["a"]["error"]["message"] == "rejected by signal: too dear"
    assert not bench.ran
    # A redriven step waits for a new signal.
    await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
    await bench.step_is(workflow_id, "a", "held")
    await bench.post(f"/v1/runs/{await run_of(bench, workflow_id, 'a')}/signal")
    assert (await bench.ended(workflow_id))["state"] == "succeeded"


async def test_a_missing_signal_fails_the_step_or_lets_it_continue(bench: WorkflowBench) -> None:
    in_vain = {"timeout_seconds": 0.2}
    workflow_id = await bench.create(act("a", signal=in_vain), act("b", signal=in_vain | {"on_timeout": "continue"}))
    shown = await bench.ended(workflow_id)
    assert states_of(shown) == {"a": "failed", "b": "succeeded"}
    assert steps_of(shown)["a"]["error"]["kind"] == "SignalTimeout"
    assert bench.saw["b"]["signal"] is None


async def test_only_a_step_that_waits_for_a_signal_accepts_one(bench: WorkflowBench) -> None:
    bench.holding = {"a"}
    workflow_id = await bench.create(act("a"))
    await bench.is_under_way("a")
    run_id = await run_of(bench, workflow_id, "a")
    assert "does not wait for one" in (await bench.post(f"/v1/runs/{run_id}/signal", 409))["detail"]
    for fields in ({"every": "1h"}, {"delay_seconds": 60}, {"schedule_time": "2040-01-01T00:00:00Z"}):
        assert "signal" in (await bench.post("/v1/jobs", 422, task="act", signal={}, **fields))["detail"]


async def test_a_run_that_waits_for_a_signal_can_be_cancelled_and_its_rerun_waits_again(bench: WorkflowBench) -> None:
    workflow_id = await bench.create(act("a", signal={}))
    run_id = await run_of(bench, workflow_id, "a")
    await bench.post(f"/v1/runs/{run_id}/cancel")
    assert (await bench.ended(workflow_id))["state"] == "cancelled"
    again = await bench.post(f"/v1/runs/{run_id}/rerun", 201)
    assert again["state"] == "held"
    await bench.post(f"/v1/runs/{again['id']}/signal")
    await bench.is_under_way("a")


async def test_a_map_may_wait_for_a_signal(bench: WorkflowBench) -> None:
    workflow_id = await bench.create(act("m", signal={}, map={"items": [1, 2]}))
    await bench.step_is(workflow_id, "m", "held")
    await bench.post(f"/v1/runs/{await run_of(bench, workflow_id, 'm')}/signal")
    assert (await bench.ended(workflow_id))["state"] == "succeeded"
    assert bench.ran == {"m1": 1, "m2": 1}


async def test_a_delay_counts_from_the_release_of_the_step(bench: WorkflowBench, sql: Any) -> None:
    workflow_id = await bench.create(act("first", delay_seconds=0.3), act("second", "first", delay_seconds=0.4))
    assert (await bench.ended(workflow_id))["state"] == "succeeded"
    rows = await sql.fetch(
        "select step, created_at, started_at, finished_at from foliot.history where parent_id = $1 order by step",
        workflow_id,
    )
    first, second = rows
    assert (first["started_at"] - first["created_at"]).total_seconds() >= 0.3
    assert (second["started_at"] - first["finished_at"]).total_seconds() >= 0.4


async def test_payloads_refer_to_results_and_parts_of_them(bench: WorkflowBench) -> None:
    bench.results = {"a": {"rows": [{"id": 7}, {"id": 8}]}}
    pointing = {
        "value": [{"$result": "a", "path": ["rows", 1, "id"]}, {"deep": {"$result": "a"}}, {"$result": "a", "other": 1}]
    }
    workflow_id = await bench.create(act("a"), act("b", "a", payload=pointing))
    assert (await bench.ended(workflow_id))["state"] == "succeeded"
    assert bench.saw["b"]["value"] == [8, {"deep": bench.results["a"]}, {"$result": "a", "other": 1}]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"$result": "a", "path": ["rows", 5]}, "has nothing at ['rows', 5]"),
        ({"$result": "a", "path": ["rows", "x"]}, "has nothing at ['rows', 'x']"),
        ({"$result": "failed"}, "the result of 'failed', but there is none"),
    ],
    ids=["no_such_place", "no_number", "of_a_failed_step"],
)
async def test_a_dangling_reference_fails_the_step_with_an_error(
    bench: WorkflowBench, reference: Any, message: str
) -> None:
    bench.failing, bench.results = {"failed"}, {"a": {"rows": []}}
    workflow_id = await bench.create(
        act("a"), act("failed"), act("b", "a", "failed", rule="all_done", payload={"value": reference})
    )
    shown = await bench.ended(workflow_id)
    assert states_of(shown)["b"] == "failed"
    assert message in steps_of(shown)["b"]["error"]["message"]
    assert "b" not in bench.ran


async def test_references_inside_a_workflow_are_those_of_its_own_steps(bench: WorkflowBench) -> None:
    bench.results = {"first": 1, "a": 2}
    steps = [act("a"), act("b", "a", payload={"value": {"$result": "a"}})]
    inner = {"key": "inner", "task": "workflow", "after": ["first"], "payload": {"steps": steps}}
    each = inner | {"key": "each", "map": {"items": ["continue"], "item_name": "on_failure"}}
    workflow_id = await bench.create(act("first"), inner, each)
    assert (await bench.ended(workflow_id))["state"] == "succeeded"
    assert bench.saw["b"]["value"] == 2
    assert bench.ran == {"first": 1, "a": 2, "b": 2}


async def test_a_result_that_is_too_large_fails_with_advice(bench: WorkflowBench, config: Config) -> None:
    bench.results = {"a": "x" * (config.result_max_bytes + 10)}
    workflow_id = await bench.create(act("a"), act("b", "a"))
    shown = await bench.ended(workflow_id)
    assert states_of(shown) == {"a": "failed", "b": "skipped"}
    message = steps_of(shown)["a"]["error"]["message"]
    assert f"result_max_bytes = {config.result_max_bytes}: store it elsewhere" in message


async def test_a_map_over_a_value_that_is_not_a_list_fails_with_an_error(bench: WorkflowBench) -> None:
    workflow_id = await bench.create(act("a"), act("m", "a", map={"result_of": "a"}))
    shown = await bench.ended(workflow_id)
    assert "is not a list but str" in steps_of(shown)["m"]["error"]["message"]
