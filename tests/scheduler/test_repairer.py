"""The repairer finds runs that wait although nothing is left to wait for."""

from __future__ import annotations

from typing import Any

from foliot.events import Event, EventBus, StuckFound
from foliot.model.namespace import Namespace
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.model.workflow import Step, plan
from foliot.scheduler.repairer import INTERVAL_SECONDS, LOOK_SECONDS, Repairer
from foliot.store.store import Store
from tests.support.runs import WORKER, claim, insert


async def repair(store: Store, events: EventBus) -> float:
    """One round through all runs and workflows. Returns the wait after it."""
    repairer = Repairer(store=store, clock=store.database.clock, events=events)
    while (wait := await repairer.run_once()) == LOOK_SECONDS:
        pass
    return wait


async def test_a_healthy_run_is_not_reported(store: Store, events: EventBus, seen: list[Event]) -> None:
    await insert(store)
    assert await repair(store, events) == INTERVAL_SECONDS
    assert not [event for event in seen if isinstance(event, StuckFound)]


async def test_a_step_that_lost_its_dependency_is_reported_and_released(
    store: Store, events: EventBus, sql: Any, seen: list[Event]
) -> None:
    await insert(store)
    (parent,) = await claim(store)
    first, second = plan(
        [Step(key="a", task="send_invoice", queue="mail"), Step(key="b", task="t", queue="mail", after=("a",))]
    )
    assert await store.workflows.expand_workflow(
        parent.run_id, parent.token, WORKER, [first, second], "continue", Namespace()
    )
    await sql.execute(
        "delete from foliot.dependencies; update foliot.runs set created_at = created_at - interval '1 minute'"
    )
    (step,) = await claim(store)
    await store.outcomes.finish_runs(WORKER, [Outcome(step.run_id, step.token, RunState.SUCCEEDED)])
    await repair(store, events)
    assert [event.kind for event in seen if isinstance(event, StuckFound)] == ["dependent"]
    view = await store.runs.get_run(second.id)
    assert view is not None
    assert view.state is RunState.READY
