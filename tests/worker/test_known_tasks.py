"""The tasks that a worker knows, and how it runs each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

import foliot
from foliot.config import BUILT_IN_TASKS, Config
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.store.store import Store
from foliot.worker.checkpoints import CheckpointWriter
from foliot.worker.direct import DirectBackend
from foliot.worker.identity import WorkerIdentity
from foliot.worker.known_tasks import (
    CANCEL_SECONDS,
    CLEANUP_SECONDS,
    KnownTask,
    TaskSurroundings,
    known_tasks,
    queues_of_tasks,
)
from foliot.worker.task_runtime import TaskRuntime

KnowTasks = Callable[[foliot.App, Config], dict[str, KnownTask]]


@pytest.fixture
async def know(store: Store) -> AsyncIterator[KnowTasks]:
    runtime = TaskRuntime(Config(), slots=1)

    def known(app: foliot.App, config: Config) -> dict[str, KnownTask]:
        identity, namespace = WorkerIdentity(new_id()), Namespace(config.namespace)
        clock, events = store.database.clock, store.events
        backend = DirectBackend(store, config=config, clock=clock, listen_url=None)
        checkpoints = CheckpointWriter(
            backend=backend, config=config, namespace=namespace, identity=identity, clock=clock, events=events
        )
        surroundings = TaskSurroundings(backend, config, clock, namespace, identity, runtime, checkpoints.open)
        return known_tasks(app, surroundings)

    yield known
    await runtime.close()


async def test_a_worker_knows_every_built_in_task_that_is_not_disabled(know: KnowTasks) -> None:
    assert know(foliot.App(), Config()).keys() == BUILT_IN_TASKS
    config = Config(disabled_tasks="shell, http")
    expected = BUILT_IN_TASKS - {"shell", "http"}
    assert know(foliot.App(), config).keys() == expected
    assert queues_of_tasks(foliot.App(), config, Namespace(config.namespace)).keys() == expected


async def test_an_async_function_without_a_context_may_never_wait(know: KnowTasks) -> None:
    app = foliot.App()

    @app.task
    async def alone() -> None: ...

    @app.task
    async def with_context(ctx: foliot.Context) -> None: ...

    @app.task
    def plain() -> None: ...

    known = know(app, Config())
    assert [known[name].may_never_wait for name in ("alone", "with_context", "plain")] == [True, False, False]
    assert [known[name].asks_for_context for name in ("alone", "with_context", "plain")] == [False, True, False]
    assert [known[name].stop_seconds for name in ("alone", "plain", "shell")] == [
        CANCEL_SECONDS,
        CLEANUP_SECONDS,
        CLEANUP_SECONDS,
    ]
