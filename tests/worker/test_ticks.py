"""Every run knows its tick: in tasks of every kind, in commands, and in all runs derived from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

import foliot
from foliot.model.ids import new_id, tick_run_id
from foliot.model.job import RecurringJob
from foliot.model.namespace import Namespace
from foliot.model.run import RunView
from foliot.model.states import TERMINAL, RunState
from foliot.model.tick import tick_of
from foliot.store.store import Store
from foliot.submission.backfill import neighbours_of
from foliot.triggers.base import to_datetime, to_instant
from tests.support.jobs import make_job
from tests.support.waiting import until
from tests.support.workers import ended, submit, worker_node
from tests.worker.ticks_app import app, seen

BERLIN = ZoneInfo("Europe/Berlin")
# The clocks change in the night before the second of these days.
DAYS = [datetime(2026, 3, day, 4, tzinfo=BERLIN) for day in (28, 29, 30)]
EXPECTED = ["2026-03-29T04:00:00+02:00", "2026-03-28T04:00:00+01:00", "2026-03-30T04:00:00+02:00", "Europe/Berlin"]


async def backfill(store: Store, task: str, payload: Any = None) -> tuple[RecurringJob, UUID]:
    """A run for the second of these days."""
    job = await make_job(store, name="nightly", task=task, cron="0 4 * * *", timezone="Europe/Berlin")
    if payload is not None:
        changed = replace(job, payload=payload)
        assert await store.jobs.change_job(job, changed, None, None, None)
    run_id, tick = tick_run_id(job.id, to_instant(DAYS[1])), to_instant(DAYS[1])
    between = dict(zip([run_id], neighbours_of(job, [tick]), strict=True))
    await store.backfill.insert_backfill(job.id, {run_id: to_datetime(tick)}, RunState.READY, between)
    store.hints.send(["default"])
    return job, run_id


async def end_of(store: Store, run_id: UUID) -> RunView:
    async def look() -> RunView | None:
        # No scheduler runs here that would promote a due retry.
        await store.due_runs.promote_due_runs(100)
        view = await store.runs.get_run(run_id)
        return view if view is not None and view.state in TERMINAL else None

    view = await until(look)
    assert view is not None
    return view


async def steps_of(store: Store, run_id: UUID) -> Mapping[str, RunView]:
    parent = await store.workflow_lists.get_parent(run_id)
    assert parent is not None
    children = await store.workflow_lists.list_children(parent, 100)
    return {child.step: await end_of(store, child.id) for child in children}


@pytest.mark.parametrize("task", ["seen_on_the_loop", "seen_in_a_thread", "seen_in_a_process"])
async def test_a_task_knows_its_tick_and_its_neighbours_in_the_zone_of_its_job(store: Store, task: str) -> None:
    async with worker_node(store, app):
        job, run_id = await backfill(store, task)
        view = await end_of(store, run_id)
    assert view.result == [*EXPECTED, "nightly", str(job.id), True]


async def test_a_one_off_run_has_no_tick(store: Store) -> None:
    async with worker_node(store, app):
        view = await ended(store, await submit(store, "seen_on_the_loop"))
    assert view.result == [None, None, None, None, None, None, False]


async def test_a_command_gets_its_tick_in_variables(store: Store) -> None:
    async with worker_node(store, app):
        _, run_id = await backfill(store, "shell", {"command": "env | grep ^FOLIOT_ | sort"})
        view = await end_of(store, run_id)
        plain = await ended(store, await submit(store, "shell", payload='{"command": "env | grep ^FOLIOT_"}'))
    found = dict(line.split("=", 1) for line in (view.output or b"").decode().splitlines())
    assert [found[f"FOLIOT_{name}"] for name in ("SCHEDULED_FOR", "PREVIOUS_TICK", "NEXT_TICK", "TIMEZONE")] == EXPECTED
    assert (found["FOLIOT_JOB"], found["FOLIOT_IS_BACKFILL"]) == ("nightly", "true")
    assert "TICK" not in (plain.output or b"").decode()


async def test_retries_and_reruns_keep_the_tick(store: Store) -> None:
    async with worker_node(store, app):
        _, run_id = await backfill(store, "fails_at_first")
        view = await end_of(store, run_id)
        assert view.result == [2, EXPECTED[0]]
        again = new_id()
        await store.dead_letters.rerun_runs(Namespace(), {run_id: again}, is_any_state=True)
        store.hints.send(["default"])
        assert (await end_of(store, again)).result == [2, EXPECTED[0]]


async def test_steps_and_items_have_the_tick_of_the_workflow(store: Store) -> None:
    steps = [
        {"key": "first", "task": "seen_on_the_loop"},
        {"key": "each", "task": "seen_with_item", "after": ["first"], "map": {"items": [1, 2]}},
        {"key": "inner", "task": "workflow", "payload": {"steps": [{"key": "deep", "task": "seen_in_a_thread"}]}},
    ]
    async with worker_node(store, app):
        job, run_id = await backfill(store, "workflow", {"steps": steps})
        assert (await end_of(store, run_id)).state is RunState.SUCCEEDED
        outer = await steps_of(store, run_id)
        expected = [*EXPECTED, "nightly", str(job.id), True]
        assert outer["first"].result == expected
        assert [item.result for item in (await steps_of(store, outer["each"].id)).values()] == [expected] * 2
        assert (await steps_of(store, outer["inner"].id))["deep"].result == expected


async def test_a_triggered_run_has_the_time_of_its_trigger(store: Store, sql: Any) -> None:
    job = await make_job(store, cron="0 4 * * *", timezone="Europe/Berlin")
    run_id, now = new_id(), await store.jobs.database_now()
    between = job.timetable.around(to_instant(now))
    await store.jobs.insert_triggered_run(run_id, job.id, between=between)
    view = await store.runs.get_run(run_id)
    assert view is not None
    tick = tick_of(view.options)
    assert tick is not None
    assert (tick.at, tick.origin) == (view.due_at.timestamp(), "trigger")
    assert tick.previous is not None
    assert tick.next is not None
    assert tick.previous <= now.timestamp() < tick.next
    assert tick.next - tick.previous in (23 * 3600, 24 * 3600, 25 * 3600)


def test_seen_is_empty_without_a_tick() -> None:
    context = foliot.Context(run_id=new_id(), token=1, attempt=1, task="t", on_output=lambda _: None)
    assert seen(context) == [None, None, None, None, None, None, False]
