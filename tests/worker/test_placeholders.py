"""Placeholders on a real worker: commands, user tasks, steps and items."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import foliot
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.model.workflow import Workflow, check, plan
from foliot.store.store import Store
from foliot.submission.child_runs import with_declared
from tests.support.workers import ended, submit, worker_node
from tests.worker.test_ticks import backfill, end_of, steps_of

app = foliot.App()


@app.task
async def echo(text: str, item: Any = None) -> list[Any]:
    return [text, item]


@app.task
async def extract() -> dict[str, Any]:
    return {"rows": ["it's {{ attempt }}"], "count": 1}


def payload(**fields: Any) -> str:
    return msgspec.json.encode(fields).decode()


async def start(store: Store, *steps: dict[str, Any]) -> NewRun:
    workflow = msgspec.convert({"steps": steps}, Workflow)
    known = await store.workers.list_tasks(Namespace())
    run = NewRun(new_id(), "workflow", "default", payload=msgspec.json.encode(workflow).decode())
    planned = plan([with_declared(step, known) for step in check(workflow)])
    await store.workflows.insert_workflow(run, planned, "continue")
    store.hints.send(["default"])
    return run


async def test_a_backfill_runs_its_command_for_its_tick(store: Store) -> None:
    command = 'echo {{ scheduled_for | date }} "{{ previous_tick | format "%d.%m." }}" \'{{ job }} {{ is_backfill }}\''
    async with worker_node(store, app):
        _, run_id = await backfill(store, "shell", {"command": command})
        view = await end_of(store, run_id)
    assert view.output == b"2026-03-29 28.03. nightly true\n"


async def test_a_user_task_gets_rendered_texts_on_request(store: Store) -> None:
    text = payload(text="attempt {{ attempt }} of {{ task }} in {{ queue }} of {{ namespace }}")
    async with worker_node(store, app):
        rendered = await submit(store, "echo", payload=text, options='{"templates": true}')
        plain = await submit(store, "echo", payload=text)
        assert (await ended(store, rendered)).result[0] == "attempt 1 of echo in default of default"
        assert (await ended(store, plain)).result[0] == msgspec.json.decode(text)["text"]


async def test_a_command_without_templates_keeps_its_braces(store: Store) -> None:
    async with worker_node(store, app):
        run = await submit(
            store, "shell", payload=payload(command="echo '{{ attempt }}'"), options='{"templates": false}'
        )
        assert (await ended(store, run)).output == b"{{ attempt }}\n"


@pytest.mark.parametrize("text", ["{{ scheduled_for | date }}", "{{ nope }}", "{{ attempt"])
async def test_a_placeholder_without_a_value_fails_the_run_and_is_not_retried(store: Store, text: str) -> None:
    async with worker_node(store, app):
        view = await ended(store, await submit(store, "shell", payload=payload(command=f"echo {text}")))
    assert (view.state, view.attempt, view.error["kind"]) == (RunState.FAILED, 1, "TemplateError")
    assert view.error["message"].startswith("payload.command: ")


async def test_a_step_may_use_results_and_their_braces_are_data(store: Store) -> None:
    async with worker_node(store, app):
        run = await start(
            store,
            {"key": "extract", "task": "extract"},
            {"key": "load", "command": "echo {{ results.extract.rows[0] }}", "after": ["extract"]},
            {
                "key": "own",
                "task": "echo",
                "after": ["extract"],
                "templates": True,
                "payload": {"text": "{{ payload.item.count }}", "item": {"$result": "extract"}},
            },
        )
        steps = await steps_of(store, run.id)
    assert steps["load"].output == b"it's {{ attempt }}\n"
    assert steps["own"].result == ["1", {"rows": ["it's {{ attempt }}"], "count": 1}]


async def test_a_command_runs_over_the_items_of_a_map(store: Store) -> None:
    async with worker_node(store, app):
        run = await start(
            store,
            {"key": "extract", "task": "extract"},
            {
                "key": "each",
                "command": "echo got {{ payload.item }}",
                "after": ["extract"],
                "map": {"items": ["a b", "$(id)", "{{ nope }}"]},
            },
        )
        each = (await steps_of(store, run.id))["each"]
        items = await steps_of(store, each.id)
    assert [items[key].output for key in sorted(items)] == [b"got a b\n", b"got $(id)\n", b"got {{ nope }}\n"]
