"""Every pair of states on real PostgreSQL: a run moves from one to the other if and only if the table of states allows
it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.outcome import Outcome
from foliot.model.run import NewRun
from foliot.model.states import LIVE, TERMINAL, TRANSITIONS, RunState
from foliot.model.workflow import Step, plan
from foliot.scheduler.conditions import decide_conditions
from foliot.store.store import Store
from tests.support.runs import claim_runs

WORKER, TOKEN = new_id(), 7
SUSPENDED = [RunState.WAITING, RunState.SCHEDULED, RunState.HELD]


async def place(store: Store, sql: Any, state: RunState) -> UUID:
    """Inserts a run in a state by hand, with the columns that belong to it."""
    run_id = new_id()
    await store.run_inserts.insert_runs([NewRun(id=run_id, task="t", queue="q")])
    worker = WORKER if state is RunState.RUNNING else None
    if state in LIVE:
        held_by = "limit" if state is RunState.HELD else None
        await sql.execute("update foliot.runs set state = $2, worker_id = $3, token = $4, started_at = now(), held_by "
        "= $5 where id = $1",
                          run_id, state, worker, TOKEN, held_by)  # fmt: skip
        return run_id
    await sql.execute(
        """
        with gone as (delete from foliot.runs where id = $1 returning *)
        insert into foliot.history (id, created_at, due_at, finished_at, token, attempt, lost, priority, worker_id,
            state, queue, task)
        select id, created_at, due_at, now(), $3, attempt, lost, priority, $4, $2, queue, task from gone
        """,
        run_id, state, TOKEN, WORKER,
    )  # fmt: skip
    return run_id


async def state_of(sql: Any, run_id: UUID) -> list[str]:
    rows = await sql.fetch(
        "select state from foliot.runs where id = $1 union all select state from foliot.history where id = $1", run_id
    )
    return [row[0] for row in rows]


def ways_to(store: Store, sql: Any, source: RunState, target: RunState) -> list[Callable[[UUID], Awaitable[object]]]:
    """Every store statement that can move a run into `target`."""
    runs, outcomes = store.runs, store.outcomes

    def outcome(run_id: UUID) -> list[Outcome]:
        return [Outcome(run_id, TOKEN, target, "error")]

    async def promote(run_id: UUID) -> None:
        await store.due_runs.promote_due_runs(1000)

    async def claim(run_id: UUID) -> None:
        await claim_runs(store, WORKER, {"q": 1000}, ["t"])

    async def lose(run_id: UUID) -> None:
        await store.lost_runs.lose_runs(1000, 1000 if target is RunState.READY else 1)

    def move(run_id: UUID) -> Awaitable[object]:
        return runs.move_runs([run_id], target)

    def close(run_id: UUID) -> Awaitable[object]:
        return runs.close_runs([run_id], target, "test")

    def finish(run_id: UUID) -> Awaitable[object]:
        return outcomes.finish_runs(WORKER, outcome(run_id))

    def retry(run_id: UUID) -> Awaitable[object]:
        return outcomes.retry_runs(WORKER, outcome(run_id))

    def release(run_id: UUID) -> Awaitable[object]:
        return outcomes.release_runs(WORKER, outcome(run_id))

    ways: dict[RunState, list[Callable[[UUID], Awaitable[object]]]] = {
        RunState.WAITING: [move, partial(expand, store), partial(suspend, store, sql, target)],
        RunState.SCHEDULED: [
            move,
            retry,
            partial(end_upstream, store, sql, target),
            partial(suspend, store, sql, target),
        ],
        RunState.HELD: [move, partial(end_upstream, store, sql, target), partial(suspend, store, sql, target)],
        RunState.READY: [
            move,
            promote,
            release,
            lose,
            partial(end_upstream, store, sql, target),
            partial(signal, store, sql),
            partial(suspend, store, sql, target),
            partial(nudge, store, sql),
            partial(signal_function, store, sql),
        ],
        RunState.RUNNING: [claim],
        RunState.SUCCEEDED: [finish, partial(end_last_child, store, sql, target)],
        RunState.FAILED: [
            finish,
            lose,
            partial(decide, store, sql, target),
            partial(end_last_child, store, sql, target),
        ],
        RunState.CANCELLED: [finish, close, partial(cancel, store), partial(end_last_child, store, sql, target)],
        RunState.SKIPPED: [
            finish,
            close,
            partial(decide, store, sql, target),
            partial(end_upstream, store, sql, target),
        ],
    }
    ways[RunState.SKIPPED if source in (RunState.READY, RunState.WAITING) else RunState.CANCELLED].append(
        partial(expire, store, sql)
    )
    return ways[target]


async def expire(store: Store, sql: Any, run_id: UUID) -> None:
    await sql.execute(
        "update foliot.runs set started_at = null, expires_at = now() - interval '1 second' where id = $1", run_id
    )
    await store.expiry.expire_runs(1000)


async def cancel(store: Store, run_id: UUID) -> None:
    await store.cancellation.mark_cancelled([run_id], "test", is_forced=False)
    await store.cancellation.close_cancelled(1000)


async def expand(store: Store, run_id: UUID) -> None:
    steps = plan([Step(key="only", task="t", queue="other")])
    await store.workflows.expand_workflow(run_id, TOKEN, WORKER, steps, "continue", Namespace())


async def end_last_child(store: Store, sql: Any, target: RunState, run_id: UUID) -> None:
    """Ends the last child of the run."""
    child_id = await place(store, sql, RunState.RUNNING)
    await sql.execute(
        """
        insert into foliot.parents (id, root_id, run_id, kind, created_at, on_failure, total, next_index, capacity,
            unfinished)
        values ($1, $1, $1, 'workflow', now(), 'continue', 1, 1, 1, 1)
        """,
        run_id,
    )
    await sql.execute("update foliot.runs set parent_id = $2, step = 'only' where id = $1", child_id, run_id)
    await store.outcomes.finish_runs(WORKER, [Outcome(child_id, TOKEN, target, "error")])


async def end_upstream(store: Store, sql: Any, target: RunState, run_id: UUID) -> None:
    """Ends the upstream run that the run waits for."""
    upstream_id = await place(store, sql, RunState.RUNNING)
    await sql.execute("update foliot.runs set has_dependents = true where id = $1", upstream_id)
    await sql.execute("insert into foliot.dependencies (upstream_id, run_id) values ($1, $2)", upstream_id, run_id)
    await sql.execute(
        """
        update foliot.runs set rule = 'all_success', unmet = 1, met_succeeded = 0, met_failed = 0, met_skipped = 0,
            delay_seconds = $2,
            options = $3::jsonb
        where id = $1
        """,
        run_id, 60.0 if target is RunState.SCHEDULED else None, '{"signal": {}}' if target is RunState.HELD else None,
    )  # fmt: skip
    end = RunState.FAILED if target is RunState.SKIPPED else RunState.SUCCEEDED
    await store.outcomes.finish_runs(WORKER, [Outcome(upstream_id, TOKEN, end, "error")])


async def decide(store: Store, sql: Any, target: RunState, run_id: UUID) -> None:
    """Decides the condition that holds the run."""
    when = "false" if target is RunState.SKIPPED else "params.x"
    await sql.execute(
        "update foliot.runs set options = jsonb_build_object('condition', jsonb_build_object('when', $2::text)), "
        "held_by = case when state = 'held' then 'condition' end where id = $1",
        run_id, when,
    )  # fmt: skip
    await decide_conditions(store)


async def signal(store: Store, sql: Any, run_id: UUID) -> None:
    await sql.execute(
        "update foliot.runs set options = '{\"signal\": {}}', held_by = case when state = 'held' then 'signal' end "
        "where id = $1",
        run_id,
    )
    await store.signals.signal_run(run_id, "{}")


async def suspend(store: Store, sql: Any, target: RunState, run_id: UUID) -> None:
    """Suspends the function of the run in a wait that leads to this state."""
    child_id = new_id()
    await sql.execute("insert into foliot.dependencies values ($1, $2, 'wake')", child_id, run_id)
    awaits = {
        RunState.WAITING: f'{{"children": {{"ship": "{child_id}"}}}}',
        RunState.SCHEDULED: '{"until": "2126-01-01T00:00:00Z"}',
        RunState.HELD: '{"signals": ["approved"]}',
        RunState.READY: '{"until": "2026-01-01T00:00:00Z"}',
    }
    outcome = Outcome(run_id, TOKEN, RunState.SCHEDULED, "suspended", result=awaits[target])
    await store.checkpoints.suspend_runs(WORKER, [outcome])


async def nudge(store: Store, sql: Any, run_id: UUID) -> None:
    """Ends the run that the function of the run waits for."""
    if await sql.fetchval("select state <> all ($1) from foliot.runs where id = $2", SUSPENDED, run_id) is not False:
        return
    await sql.execute("update foliot.runs set awaits = '{\"children\": {}}' where id = $1", run_id)
    await sql.execute("insert into foliot.nudges values ($1, 'wake')", run_id)
    await store.checkpoints.take_nudges()


async def signal_function(store: Store, sql: Any, run_id: UUID) -> None:
    await sql.execute(
        "update foliot.runs set awaits = $2, held_by = case when state = 'held' then 'signal' end where id = $1",
        run_id,
        '{"signals": ["approved"]}',
    )
    await store.checkpoints.signal(run_id, "approved", "{}")


@pytest.mark.parametrize("source", RunState)
async def test_only_the_transitions_of_the_table_exist(store: Store, sql: Any, source: RunState) -> None:
    reached = {target for target in RunState if target is not source and await can_reach(store, sql, source, target)}
    assert reached == TRANSITIONS[source]


async def can_reach(store: Store, sql: Any, source: RunState, target: RunState) -> bool:
    is_reached = False
    for way in ways_to(store, sql, source, target):
        run_id = await place(store, sql, source)
        await way(run_id)
        states = await state_of(sql, run_id)
        assert states in ([source], [target]), f"{source} became {states}"
        is_reached = is_reached or states == [target]
        await sql.execute("delete from foliot.runs")
        await sql.execute("delete from foliot.parents")
        await sql.execute("delete from foliot.dependencies")
    return is_reached


async def test_live_and_finished_runs_are_kept_apart_by_constraints(store: Store, sql: Any) -> None:
    run_id = await place(store, sql, RunState.READY)
    for state in TERMINAL:
        with pytest.raises(Exception, match="runs_state_is_live"):
            await sql.execute("update foliot.runs set state = $2 where id = $1", run_id, state)


@pytest.mark.parametrize("fence", ["token", "worker"])
@pytest.mark.parametrize("target", [RunState.SUCCEEDED, RunState.SCHEDULED, RunState.READY])
async def test_a_write_with_the_wrong_fence_changes_nothing(
    store: Store, sql: Any, target: RunState, fence: str
) -> None:
    run_id = await place(store, sql, RunState.RUNNING)
    worker, token = (WORKER, TOKEN - 1) if fence == "token" else (new_id(), TOKEN)
    write = {
        RunState.SUCCEEDED: store.outcomes.finish_runs,
        RunState.SCHEDULED: store.outcomes.retry_runs,
        RunState.READY: store.outcomes.release_runs,
    }[target]
    assert await write(worker, [Outcome(run_id, token, target, "error")]) == 0
    assert await state_of(sql, run_id) == ["running"]
    assert await sql.fetchval("select count(*) from foliot.attempts") == 0
