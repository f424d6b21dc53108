"""Workflows that branch: conditions on results, statuses and parameters, and what follows from them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from foliot.model.ids import new_id
from foliot.scheduler.conditions import decide_conditions
from foliot.store.store import Store
from tests.support.workflow_bench import WorkflowBench, act, states_of, steps_of

PARAMETERS = {"region": {"type": "string", "enum": ["eu", "us"], "default": "eu"}, "amount": {"type": "integer"}}


@pytest.fixture
async def bench(store: Store, client: httpx.AsyncClient) -> AsyncIterator[WorkflowBench]:
    async with WorkflowBench(store, client).running() as bench:
        yield bench


async def test_a_result_decides_which_branch_runs_and_a_join_follows(bench: WorkflowBench) -> None:
    bench.results = {"check": {"amount": 42}}
    shown = await bench.ended(
        await bench.create(
            act("check"),
            act("large", "check", when="steps.check.result.amount > 100"),
            act("small", "check", when="steps.check.result.amount <= 100"),
            act("join", "large", "small", rule="none_failed_min_one_success"),
            act("after_large", "large"),
        )
    )
    assert states_of(shown) == {
        "check": "succeeded", "large": "skipped", "small": "succeeded", "join": "succeeded", "after_large": "skipped",
    }  # fmt: skip
    assert shown["status"] == "completed"
    steps = steps_of(shown)
    assert (steps["large"]["reason"], steps["large"]["when"]) == ("condition", "steps.check.result.amount > 100")
    assert steps["large"]["error"] == {
        "kind": "ConditionFalse",
        "message": "steps.check.result.amount > 100 is false: steps.check.result.amount is 42",
    }
    assert steps["after_large"]["reason"] == "dependency_skipped"


async def test_a_status_decides_after_a_failure(bench: WorkflowBench) -> None:
    bench.failing = {"check"}
    shown = await bench.ended(
        await bench.create(
            act("check"),
            act("alarm", "check", when="steps.check.status == 'failed'"),
            act("go_on", "check", when="steps.check.status == 'completed'"),
            act("far", "alarm", when="steps.check.status in ['failed', 'cancelled']", rule="all_success"),
        )
    )
    assert states_of(shown) == {"check": "failed", "alarm": "succeeded", "go_on": "skipped", "far": "succeeded"}
    assert [steps_of(shown)[key]["rule"] for key in ("alarm", "far")] == ["all_done", "all_success"]


async def test_an_error_in_a_condition_fails_the_step_and_says_why(bench: WorkflowBench) -> None:
    bench.results = {"check": {"amount": 42}}
    shown = await bench.ended(
        await bench.create(
            act("check"), act("next", "check", when="steps.check.result.amuont > 1"), act("last", "next")
        )
    )
    assert states_of(shown) == {"check": "succeeded", "next": "failed", "last": "skipped"}
    error = steps_of(shown)["next"]["error"]
    assert error["kind"] == "ConditionError"
    assert "there is no 'amuont' in {\"amount\":42}" in error["message"]
    assert shown["status"] == "failed"


async def test_parameters_decide_and_reach_payloads(bench: WorkflowBench) -> None:
    steps = [
        act("eu", when="params.region == 'eu'", payload={"value": {"$param": "amount"}}),
        act("us", when="params.region == 'us'"),
        {
            "key": "command",
            "task": "act",
            "templates": True,
            "payload": {"name": "command", "value": "{{ params.region }}!"},
        },
    ]
    shown = await bench.ended(await bench.create(*steps, parameters=PARAMETERS, params={"amount": 7}))
    assert states_of(shown) == {"eu": "succeeded", "us": "skipped", "command": "succeeded"}
    assert (bench.saw["eu"]["value"], bench.saw["command"]["value"]) == (7, "eu!")
    assert (shown["params"], shown["parameters"]) == ({"region": "eu", "amount": 7}, PARAMETERS)


async def test_a_redrive_decides_again(bench: WorkflowBench) -> None:
    bench.failing, bench.results = {"check"}, {"check": {"ok": True}}
    workflow_id = await bench.create(
        act("check"), act("alarm", "check", when="steps.check.status == 'failed'"), act("next", "check",
            when="steps.check.result.ok")
    )  # fmt: skip
    assert states_of(await bench.ended(workflow_id)) == {"check": "failed", "alarm": "succeeded", "next": "skipped"}
    bench.failing.clear()
    await bench.post(f"/v1/workflows/{workflow_id}/redrive", 201)
    assert states_of(await bench.ended(workflow_id)) == {"check": "succeeded", "alarm": "skipped", "next": "succeeded"}


async def test_a_condition_is_decided_before_a_signal_and_a_delay(bench: WorkflowBench) -> None:
    shown = await bench.ended(
        await bench.create(
            act("signal", when="false", signal={}),
            act("delay", when="false", delay_seconds=3600),
            act("soon", when="true", delay_seconds=0.05),
            {"key": "items", "task": "act", "payload": {"name": "items"}, "map": {"items": [1]}, "when": "false"},
            {"key": "inner", "task": "workflow", "payload": {"steps": [act("x")]}, "when": "false"},
        )
    )
    assert states_of(shown) == {
        "signal": "skipped", "delay": "skipped", "soon": "succeeded", "items": "skipped",
        "inner": "skipped",
    }  # fmt: skip


async def test_a_rule_that_is_met_early_sees_steps_that_still_run(bench: WorkflowBench) -> None:
    bench.holding = {"slow"}
    workflow_id = await bench.create(
        act("fast"), act("slow"),
        act("early", "fast", "slow", rule="one_success", when="steps.slow.status == 'running' or steps.slow.status == "
        "'pending'"),
        act("late", "fast", "slow", rule="one_success", when="steps.slow.result == 'slow'"),
    )  # fmt: skip
    await bench.step_is(workflow_id, "early", "succeeded")
    error = (await bench.step_is(workflow_id, "late", "failed"))["error"]["message"]
    assert "steps.slow.result: the step 'slow' is" in error
    bench.holding.clear()
    await bench.ended(workflow_id)


async def test_a_nested_workflow_has_parameters_of_its_own(bench: WorkflowBench) -> None:
    inner = {
        "steps": [act("small", when="params.amount < 10"), act("large", when="params.amount >= 10")],
        "parameters": {"amount": {"type": "integer"}},
        "params": {"amount": {"$param": "outer"}},
    }
    workflow_id = await bench.create(
        {"key": "inner", "task": "workflow", "payload": inner},
        parameters={"outer": {"type": "integer"}},
        params={"outer": 12},
    )
    shown = await bench.ended(workflow_id)
    assert shown["status"] == "completed"
    assert dict(bench.ran) == {"large": 1}


async def test_a_scheduled_workflow_keeps_its_params(bench: WorkflowBench, client: httpx.AsyncClient) -> None:
    fields = {"parameters": PARAMETERS, "params": {"amount": 3}, "cron": "0 3 1 1 *", "name": "yearly"}
    await bench.create(act("a", when="params.amount == 3", payload={"value": {"$param": "region"}}), **fields)
    run = await bench.post("/v1/jobs/yearly/trigger", 201)
    shown = await bench.ended(run["id"])
    assert (shown["params"], states_of(shown)) == ({"region": "eu", "amount": 3}, {"a": "succeeded"})
    assert bench.saw["a"]["value"] == "eu"


async def test_explain_names_the_condition(client: httpx.AsyncClient, store: Store) -> None:
    body = {"steps": [act("a"), act("b", "a", when="steps.a.result == 1"), act("c", when="true")]}
    body["steps"] = [{**step, "task": "simulate", "payload": {}} for step in body["steps"]]
    made = (await client.post("/v1/workflows", json=body)).json()
    waiting = (await client.get(f"/v1/explain/{made['steps']['b']}")).json()
    assert [gate["detail"] for gate in waiting["gates"] if gate["gate"] == "condition"] == [
        "is skipped then unless steps.a.result == 1"
    ]
    held = (await client.get(f"/v1/explain/{made['steps']['c']}")).json()
    assert held["summary"] == "a scheduler node is about to decide whether true"
    assert await decide_conditions(store) == 1
    open_now = (await client.get(f"/v1/explain/{made['steps']['c']}")).json()
    assert {gate["gate"]: gate["is_open"] for gate in open_now["gates"]}["condition"]


async def test_two_nodes_that_decide_at_once_change_it_once(client: httpx.AsyncClient, store: Store) -> None:
    steps = [{"key": key, "task": "simulate", "when": when} for key, when in (("a", "true"), ("b", "false"))]
    made = (await client.post("/v1/workflows", json={"steps": steps})).json()
    held = await store.conditions.list_conditions(10)
    assert len(held) == 2
    assert await decide_conditions(store) == 2
    assert await store.conditions.pass_conditions(list(held)) == []
    assert await decide_conditions(store) == 0
    shown = (await client.get(f"/v1/workflows/{made['id']}")).json()
    assert states_of(shown) == {"a": "ready", "b": "skipped"}


async def test_a_cancelled_step_is_left_to_the_cancel(client: httpx.AsyncClient, store: Store) -> None:
    steps = [{"key": "a", "task": "simulate", "when": "true"}]
    made = (await client.post("/v1/workflows", json={"steps": steps})).json()
    await client.post(f"/v1/workflows/{made['id']}/cancel")
    assert await decide_conditions(store) == 0
    assert states_of((await client.get(f"/v1/workflows/{made['id']}")).json()) == {"a": "cancelled"}


async def test_a_condition_corrupted_in_sql_fails_only_its_step(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    steps = [{"key": key, "task": "simulate", "when": "true"} for key in ("a", "b")]
    made = (await client.post("/v1/workflows", json={"steps": steps})).json()
    await sql.execute(
        "update foliot.runs set options = jsonb_set(options, '{condition}', '7') where id = $1::uuid",
        made["steps"]["a"],
    )
    assert await decide_conditions(store) == 2
    shown = (await client.get(f"/v1/workflows/{made['id']}")).json()
    assert states_of(shown) == {"a": "failed", "b": "ready"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"steps": [act("a", when="steps.b.result == 1"), act("b", "a")]}, "steps[0].when"),
        ({"steps": [act("a"), act("b", when="steps.a.result == 1")]}, "steps[1].when"),
        ({"steps": [act("a", when="params.region == 'eu'")]}, "steps[0].when"),
        ({"steps": [act("a", when="1 +")]}, "steps[0].when"),
        ({"steps": [act("a", when="")]}, "steps[0].when"),
        ({"steps": [act("a", when=7)]}, "steps[0].when"),
        ({"steps": [act("a", when="x" * 3000)]}, "steps[0].when"),
        ({"steps": [act("a", payload={"value": {"$param": "nope"}})]}, "steps[0].payload.value"),
        ({"steps": [{"key": "a", "command": "echo {{ params.nope }}"}]}, "steps[0].command"),
        ({"steps": [act("a")], "params": {"region": "eu"}}, "params.region"),
        ({"steps": [act("a")], "parameters": PARAMETERS}, "params.amount"),
        ({"steps": [act("a")], "parameters": PARAMETERS, "params": {"amount": "7"}}, "params.amount"),
        ({"steps": [act("a")], "parameters": PARAMETERS, "params": {"amount": 7, "region": "mars"}}, "params.region"),
        ({"steps": [act("a")], "parameters": {"a": {"type": "int"}}}, "parameters.a.type"),
        ({"steps": [act("a")], "parameters": {"a b": {}}, "params": {"a b": 1}}, "parameters.a b"),
        ({"steps": [act("a")], "parameters": PARAMETERS, "params": {"amount": "x"}, "cron": "@daily", "name": "n"},
            "params.amount"),
    ],
)  # fmt: skip
async def test_an_invalid_workflow_is_refused_and_nothing_is_stored(
    client: httpx.AsyncClient, store: Store, sql: Any, fields: dict[str, Any], field: str
) -> None:
    await store.workers.register_worker(new_id(), "bench", {"default": 1}, ["act", "shell"], {})
    answer = await client.post("/v1/workflows", json=fields)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert [await sql.fetchval(f"select count(*) from foliot.{table}") for table in ("runs", "parents", "jobs")] == [
        0,
        0,
        0,
    ]
