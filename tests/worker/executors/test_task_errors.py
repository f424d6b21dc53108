"""Decisions of a task about its own run: retry later, fail for good, snooze, skip; and rules about which failures are
retried."""

from __future__ import annotations

from typing import Any

import pytest

import foliot
from foliot.model.run import NewRun, RunView
from foliot.model.states import RunState
from foliot.scheduler.promoter import Promoter
from foliot.store.store import Store
from tests.support.waiting import until
from tests.support.workers import ended, submit, worker_node

AT_ONCE = '{"backoff": {"kind": "fixed", "base_seconds": 0.01}}'


async def waiting(store: Store, run: NewRun) -> RunView:
    """The run once its attempt has ended and it waits for the next one."""

    async def look() -> RunView | None:
        view = await store.runs.get_run(run.id)
        return view if view is not None and view.state is RunState.SCHEDULED else None

    view = await until(look)
    assert view is not None
    return view


async def outcomes(sql: Any, run: NewRun) -> list[str]:
    return [
        row[0]
        for row in await sql.fetch("select outcome from foliot.attempts where run_id = $1 order by token", run.id)
    ]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_task_sets_the_time_and_reason_of_its_retry(store: Store, sql: Any, is_async: bool) -> None:
    app = foliot.App()

    async def later() -> None:
        raise foliot.RetryIn(600, "asked to slow down")

    def plain() -> None:
        raise foliot.RetryIn(600, "asked to slow down")

    app.task(name="later", never_on=[foliot.RetryIn])(later if is_async else plain)
    async with worker_node(store, app):
        view = await waiting(store, run := await submit(store, "later"))
        now = await store.jobs.database_now()
    assert 590 < (view.due_at - now).total_seconds() <= 600
    assert (view.error["kind"], view.error["message"], view.attempt) == ("RetryIn", "asked to slow down", 1)
    assert await outcomes(sql, run) == ["error"]


async def test_requested_retries_use_up_retries(store: Store) -> None:
    app = foliot.App()

    @app.task(retries=0)
    async def later() -> None:
        raise foliot.RetryIn(0)

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "later"))
    assert (view.state, view.attempt) == (RunState.FAILED, 1)


async def test_a_task_fails_for_good_whatever_retries_are_left(store: Store) -> None:
    app = foliot.App()

    class Gone(foliot.Fail):
        pass

    @app.task(retries=1000, retry_on=[foliot.Fail])
    def give_up() -> None:
        raise Gone("there is no such customer")

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "give_up"))
    assert (view.state, view.reason, view.attempt) == (RunState.FAILED, "error", 1)
    assert view.error["message"] == "there is no such customer"
    assert "give_up" in view.error["traceback"]


async def test_a_snooze_frees_the_slot_and_is_not_an_attempt(store: Store, sql: Any) -> None:
    app = foliot.App()

    @app.task(retries=0)
    async def not_yet() -> None:
        raise foliot.Snooze(600, "the other side sleeps")

    @app.task
    async def other() -> str:
        return "ran"

    async with worker_node(store, app, slots=1):
        view = await waiting(store, run := await submit(store, "not_yet"))
        assert (await ended(store, await submit(store, "other"))).result == "ran"
        now = await store.jobs.database_now()
    assert (view.attempt, view.options) == (0, {"snoozes": 1})
    assert 590 < (view.due_at - now).total_seconds() <= 600
    assert view.error == {"kind": "Snooze", "message": "the other side sleeps"}
    assert await outcomes(sql, run) == ["snoozed"]


async def test_snoozes_are_counted_and_bounded_and_attempts_after_them_are_the_first_ones(
    store: Store, sql: Any
) -> None:
    app = foliot.App()
    seen: list[int] = []

    @app.task(max_snoozes=3)
    async def never(ctx: foliot.Context) -> None:
        seen.append(ctx.attempt)
        raise foliot.Snooze(0)

    promoter = Promoter(store=store, clock=store.database.clock, events=store.events)
    await promoter.start()
    async with worker_node(store, app):
        view = await ended(store, run := await submit(store, "never"))
    await promoter.stop()
    assert (view.state, view.error["kind"], view.options["snoozes"]) == (RunState.FAILED, "SnoozedTooOften", 3)
    assert seen == [1, 1, 1, 1]
    assert await outcomes(sql, run) == ["snoozed"] * 3


@pytest.mark.parametrize(
    ("options", "attempts"),
    [
        ('{"retries": 1, "backoff": {"kind": "fixed", "base_seconds": 0.01}}', 2),
        ('{"retries": 1, "backoff": {"kind": "fixed", "base_seconds": 0.01}, "retry_on": ["OSError"]}', 2),
        (
            '{"retries": 1, "backoff": {"kind": "fixed", "base_seconds": 0.01}, "retry_on": '
            '["builtins.ConnectionError"]}',
            2,
        ),
        ('{"retries": 1, "backoff": {"kind": "fixed", "base_seconds": 0.01}, "retry_on": ["ValueError"]}', 1),
        ('{"retries": 1, "backoff": {"kind": "fixed", "base_seconds": 0.01}, "never_on": ["ConnectionError"]}', 1),
    ],
)
async def test_an_error_class_includes_its_subclasses(store: Store, options: str, attempts: int) -> None:
    app = foliot.App()

    @app.task
    async def connect() -> None:
        raise ConnectionRefusedError("no")

    promoter = Promoter(store=store, clock=store.database.clock, events=store.events)
    await promoter.start()
    async with worker_node(store, app):
        view = await ended(store, await submit(store, "connect", options=options))
    await promoter.stop()
    assert (view.state, view.attempt) == (RunState.FAILED, attempts)


@pytest.mark.parametrize(("never_on", "attempts"), [("[75]", 1), ("[74]", 2)])
async def test_exit_codes_decide_like_errors(store: Store, never_on: str, attempts: int) -> None:
    app = foliot.App()

    @app.task
    def leave() -> None:
        raise SystemExit(75)

    options = f'{{"retries": 1, "backoff": {{"kind": "fixed", "base_seconds": 0.01}}, "never_on": {never_on}}}'
    promoter = Promoter(store=store, clock=store.database.clock, events=store.events)
    await promoter.start()
    async with worker_node(store, app):
        for task, payload in (("shell", '{"command": "exit 75"}'), ("leave", None)):
            view = await ended(store, await submit(store, task, payload=payload, options=options))
            assert (task, view.state, view.attempt) == (task, RunState.FAILED, attempts)
    await promoter.stop()


async def test_a_timeout_is_an_outcome_of_its_own_and_is_retried_like_a_failure(store: Store, sql: Any) -> None:
    app = foliot.App()

    @app.task(timeout=0.05, retries=1, backoff=foliot.Backoff(kind="list", waits=(0.01,)), retry_on=["Timeout"])
    async def slow(ctx: foliot.Context) -> None:
        await store.database.clock.sleep(30)

    promoter = Promoter(store=store, clock=store.database.clock, events=store.events)
    await promoter.start()
    async with worker_node(store, app):
        view = await ended(store, run := await submit(store, "slow"))
    await promoter.stop()
    assert (view.state, view.reason, view.attempt, view.error["kind"]) == (RunState.FAILED, "timeout", 2, "Timeout")
    assert await outcomes(sql, run) == ["timeout"]


async def test_invalid_options_fail_their_run_and_not_the_worker(store: Store) -> None:
    app = foliot.App()

    @app.task
    async def other() -> str:
        return "ran"

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "other", options='{"retries": "many"}'))
        assert (view.state, view.attempt, view.error["kind"]) == (RunState.FAILED, 1, "InvalidOptions")
        assert (await ended(store, await submit(store, "other"))).result == "ran"


@pytest.mark.parametrize("kind", ["async", "plain", "process"])
async def test_a_task_ends_its_run_as_skipped_with_a_reason(store: Store, sql: Any, kind: str) -> None:
    app = foliot.App()

    async def on_the_loop() -> None:
        raise foliot.Skip("no orders today")

    def in_a_thread() -> None:
        raise foliot.Skip("no orders today")

    functions = {"async": on_the_loop, "plain": in_a_thread, "process": skipping}
    app.task(name="report", retries=5, process=kind == "process")(functions[kind])
    async with worker_node(store, app):
        view = await ended(store, await submit(store, "report"))
    assert (view.state, view.reason, view.attempt) == (RunState.SKIPPED, "skipped", 1)
    assert view.error == {"kind": "Skip", "message": "no orders today"}


def skipping() -> None:
    raise foliot.Skip("no orders today")
