"""Workflows that fail, are cancelled, and are redriven: which steps run, which results are kept, and that teardown
always runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from foliot.store.store import Store
from tests.support.waiting import until
from tests.support.workflow_bench import WorkflowBench, act, states_of, steps_of


@pytest.fixture
async def bench(store: Store, client: httpx.AsyncClient) -> AsyncIterator[WorkflowBench]:
    async with WorkflowBench(store, client).running() as bench:
        yield bench


async def test_a_redrive_runs_failed_steps_and_their_dependents_and_keeps_the_rest(bench: WorkflowBench) -> None:
    bench.failing = {"b"}
    workflow_id = await bench.create(act("a"), act("b", "a"), act("c", "b"), act("d", "a"))
    shown = await bench.ended(workflow_id)
    assert (shown["state"], states_of(shown)) == (
        "failed",
        {"a": "succeeded", "b": "failed", "c": "skipped", "d": "succeeded"},
    )
    for number in (2, 3):
        if number == 3:
            bench.failing.clear()
        again = await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
        assert again["id"] == workflow_id
        assert again["run_id"] != shown["run_id"]
        shown = await bench.ended(workflow_id)
        assert bench.ran == {"a": 1, "b": number, "d": 1, **({"c": 1} if number == 3 else {})}
    assert (shown["state"], set(states_of(shown).values())) == ("succeeded", {"succeeded"})
    assert bench.saw["c"]["upstream"] == {"b": "b"}
    assert shown["progress"] == {
        "share": 1.0,
        "total": 4,
        "unfinished": 0,
        "succeeded": 4,
        "failed": 0,
        "cancelled": 0,
        "skipped": 0,
    }
    answer = await bench.client.post(f"/v1/workflows/{workflow_id}/redrive")
    assert (answer.status_code, "nothing to run again" in answer.text) == (409, True)


async def test_one_of_several_concurrent_redrives_wins(bench: WorkflowBench) -> None:
    bench.failing = {"a"}
    workflow_id = await bench.create(act("a"), act("b", "a"))
    await bench.ended(workflow_id)
    bench.failing.clear()
    bench.holding = {"a"}
    answers = await asyncio.gather(*(bench.client.post(f"/v1/workflows/{workflow_id}/redrive") for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409, 409]
    bench.holding.clear()
    shown = await bench.ended(workflow_id)
    assert shown["state"] == "succeeded"
    assert bench.ran == {"a": 2, "b": 1}


async def test_only_the_failed_items_of_a_map_run_again(bench: WorkflowBench) -> None:
    bench.failing = {"m2", "m5"}
    workflow_id = await bench.create(act("m", map={"range": {"stop": 8}, "max_concurrency": 3}), act("join", "m"))
    shown = await bench.ended(workflow_id)
    assert states_of(shown) == {"m": "failed", "join": "skipped"}
    assert steps_of(shown)["m"]["children"]["failed"] == 2
    for left in ({"m5"}, set()):
        bench.failing = left
        await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
        shown = await bench.ended(workflow_id)
    assert shown["state"] == "succeeded"
    assert bench.ran == {**{f"m{number}": 1 for number in range(8)}, "m2": 2, "m5": 3, "join": 1}
    assert bench.saw["join"]["upstream"]["m"]["results"] == [f"m{number}" for number in range(8)]


async def test_a_map_that_stopped_at_its_first_failure_creates_its_remaining_items(bench: WorkflowBench) -> None:
    bench.failing = {"m1"}
    over = {"range": {"stop": 6}, "max_concurrency": 1, "on_failure": "fail_fast"}
    workflow_id = await bench.create(act("m", map=over))
    assert (await bench.ended(workflow_id))["state"] == "failed"
    assert bench.ran == {"m0": 1, "m1": 1}
    bench.failing.clear()
    await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
    assert (await bench.ended(workflow_id))["state"] == "succeeded"
    assert bench.ran == {"m0": 1, "m1": 2, **{f"m{number}": 1 for number in range(2, 6)}}


async def test_a_map_whose_items_have_left_history_starts_over(bench: WorkflowBench, sql: Any) -> None:
    bench.failing = {"m1", "m2"}
    workflow_id = await bench.create(act("m", map={"range": {"stop": 4}}))
    assert (await bench.ended(workflow_id))["state"] == "failed"
    await sql.execute("delete from foliot.history where step = '1'")
    bench.failing.clear()
    await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
    assert (await bench.ended(workflow_id))["state"] == "succeeded"
    assert bench.ran == dict.fromkeys(("m0", "m1", "m2", "m3"), 2)


async def test_a_successful_map_runs_completely_when_its_upstream_is_run_again(bench: WorkflowBench) -> None:
    bench.failing = {"a"}
    workflow_id = await bench.create(act("a"), act("m", "a", rule="all_done", map={"range": {"stop": 3}}))
    assert states_of(await bench.ended(workflow_id)) == {"a": "failed", "m": "succeeded"}
    bench.failing.clear()
    await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
    assert (await bench.ended(workflow_id))["state"] == "succeeded"
    assert bench.ran == {"a": 2, "m0": 2, "m1": 2, "m2": 2}


async def test_a_map_over_a_changed_list_starts_over(bench: WorkflowBench) -> None:
    bench.failing, bench.results = {"m7", "x"}, {"list": [7, 8]}
    workflow_id = await bench.create(
        act("x"), act("list", "x", rule="all_done"), act("m", "list", map={"result_of": "list"})
    )
    assert states_of(await bench.ended(workflow_id)) == {"x": "failed", "list": "succeeded", "m": "failed"}
    bench.failing, bench.results = {"x"}, {"list": [8, 9]}
    for _ in range(2):
        await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
        shown = await bench.ended(workflow_id)
        bench.failing.clear()
    assert shown["state"] == "succeeded"
    # The items of the second list run once in each redrive, because their upstream was run again.
    assert (bench.ran["m7"], bench.ran["m8"], bench.ran["m9"]) == (1, 3, 2)


async def test_a_cancelled_workflow_can_be_run_again(bench: WorkflowBench) -> None:
    bench.holding = {"b"}
    workflow_id = await bench.create(act("a"), act("b", "a"), act("c", "b"), act("clean", teardown=True))
    await bench.is_under_way("b")
    await bench.post(f"/v1/workflows/{workflow_id}/cancel", reason="enough")
    shown = await bench.ended(workflow_id)
    assert (shown["state"], shown["reason"]) == ("cancelled", "cancelled")
    assert states_of(shown) == {"a": "succeeded", "b": "cancelled", "c": "cancelled", "clean": "succeeded"}
    bench.holding.clear()
    await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
    shown = await bench.ended(workflow_id)
    assert (shown["state"], bench.ran) == ("succeeded", {"a": 1, "b": 2, "c": 1, "clean": 2})


async def test_a_redrive_skips_a_cancelled_step_whose_rule_can_not_be_met(
    bench: WorkflowBench,
) -> None:
    bench.holding = {"a"}
    workflow_id = await bench.create(act("a"), act("b", "a", rule="one_failed"), act("c", "b", rule="all_done"))
    await bench.is_under_way("a")
    step = steps_of(await bench.get(workflow_id))["b"]
    await bench.post(f"/v1/runs/{step['id']}/cancel")
    bench.holding.clear()
    assert states_of(await bench.ended(workflow_id)) == {"a": "succeeded", "b": "cancelled", "c": "succeeded"}
    await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
    shown = await bench.ended(workflow_id)
    assert states_of(shown) == {"a": "succeeded", "b": "skipped", "c": "succeeded"}
    assert (steps_of(shown)["b"]["reason"], bench.ran) == ("rule_unmet", {"a": 1, "c": 2})


async def test_teardown_runs_after_fail_fast_has_ended_the_other_steps(bench: WorkflowBench) -> None:
    bench.failing, bench.holding = {"bad"}, {"slow"}
    steps = [act("bad", "gate"), act("slow", "gate"), act("gate"), act("later", "slow"), act("clean", teardown=True)]
    workflow_id = await bench.create(*steps, on_failure="fail_fast")
    shown = await bench.ended(workflow_id)
    assert shown["state"] == "failed"
    found = states_of(shown)
    # The slow step was either cancelling or had not started.
    assert found == {
        "gate": "succeeded",
        "bad": "failed",
        "slow": "cancelled",
        "later": "cancelled",
        "clean": "succeeded",
    }
    assert steps_of(shown)["later"]["reason"] == "fail_fast"


async def test_force_ends_teardown_and_runs_that_are_already_cancelling(bench: WorkflowBench) -> None:
    bench.holding = {"a", "clean"}
    workflow_id = await bench.create(act("a"), act("clean", teardown=True))
    await bench.is_under_way("a")
    await bench.post(f"/v1/workflows/{workflow_id}/cancel")
    await bench.is_under_way("clean")
    await bench.post(f"/v1/workflows/{workflow_id}/cancel", force=True)
    shown = await bench.ended(workflow_id)
    assert (shown["state"], states_of(shown)) == ("cancelled", {"a": "cancelled", "clean": "cancelled"})


def nested(key: str, *steps: Any, **fields: Any) -> dict[str, Any]:
    return {"key": key, "task": "workflow", "payload": {"steps": list(steps)}, **fields}


async def test_a_nested_workflow_ends_its_parent_like_a_step(bench: WorkflowBench) -> None:
    bench.failing = {"y"}
    workflow_id = await bench.create(
        act("a"),
        nested("good", act("x"), act("z", "x"), after=["a"]),
        nested("bad", act("y"), act("w", "y"), after=["a"]),
        act("after_good", "good"),
        act("after_bad", "bad"),
        act("last", "good", "bad"),
    )
    shown = await bench.ended(workflow_id)
    assert states_of(shown) == {
        "a": "succeeded", "good": "succeeded", "bad": "failed", "after_good": "succeeded", "after_bad": "skipped",
        "last": "skipped",
    }  # fmt: skip
    assert {steps_of(shown)[key]["error"]["message"] for key in ("after_bad", "last")} == {"dependency_failed: bad"}
    assert steps_of(shown)["bad"]["error"]["message"] == "a step has failed: y"
    bench.failing.clear()
    await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
    assert (await bench.ended(workflow_id))["state"] == "succeeded"
    assert (bench.ran["x"], bench.ran["y"], bench.ran["last"]) == (1, 2, 1)


async def test_a_cancel_reaches_workflows_at_any_depth(bench: WorkflowBench) -> None:
    bench.holding = {"deep", "m0", "m1"}
    inner = nested("middle", act("deep"), act("never", "deep"), act("clean", teardown=True))
    workflow_id = await bench.create(
        nested("outer", inner), act("m", map={"range": {"stop": 5}, "max_concurrency": 2}), act("after", "outer", "m")
    )
    await bench.is_under_way("deep", "m0", "m1")
    await bench.post(f"/v1/workflows/{workflow_id}/cancel")
    shown = await bench.ended(workflow_id)
    assert (shown["state"], set(states_of(shown).values())) == ("cancelled", {"cancelled"})
    assert bench.ran == {"deep": 1, "m0": 1, "m1": 1, "clean": 1}


async def test_a_single_step_that_is_cancelled_counts_as_failed(bench: WorkflowBench) -> None:
    bench.holding = {"a"}
    workflow_id = await bench.create(act("a"), act("b", "a"), act("c", "a", rule="one_failed"))
    await bench.is_under_way("a")
    await bench.post(f"/v1/runs/{steps_of(await bench.get(workflow_id))['a']['id']}/cancel")
    shown = await bench.ended(workflow_id)
    assert (shown["state"], states_of(shown)) == ("cancelled", {"a": "cancelled", "b": "skipped", "c": "succeeded"})
    assert steps_of(shown)["b"]["error"]["message"] == "dependency_failed: a"


async def test_a_large_workflow_is_accepted_within_seconds(
    bench: WorkflowBench, client: httpx.AsyncClient, sql: Any
) -> None:
    """The promise is ten thousand steps in under two seconds; a machine that runs other tests may need longer."""
    loop = asyncio.get_running_loop()
    steps = [
        {"key": f"s{n}", "task": "shell", "queue": "nobody", "command": "true", "after": [f"s{n - 1}"] if n else []}
        for n in range(10_000)
    ]
    began = loop.time()
    answer = await client.post("/v1/workflows", json={"steps": steps})
    took = loop.time() - began
    assert answer.status_code == 201, answer.text
    assert took < 30
    print(f"10,000 steps accepted in {took:.2f} s")  # noqa: T201
    await bench.post(f"/v1/workflows/{answer.json()['id']}/cancel")
    await until(lambda: sql.fetchval("select not exists (select from foliot.runs)"))
