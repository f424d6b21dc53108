"""The tasks that a worker can run: its app's functions and the built-in tasks, by qualified name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from foliot.clock import Clock
from foliot.config import BUILT_IN_TASKS, Config, hidden_paths
from foliot.errors import ConfigurationError
from foliot.model.namespace import Namespace
from foliot.model.run import RunOptions
from foliot.sdk.app import DEFAULT_QUEUE, App, Task
from foliot.sdk.durable_context import CheckpointSource
from foliot.worker.backend import Backend
from foliot.worker.executors.base import Executor
from foliot.worker.executors.durable import durable
from foliot.worker.executors.http import http
from foliot.worker.executors.processes.process_pool import in_a_process
from foliot.worker.executors.python import asks_for_context, in_a_thread, on_the_loop
from foliot.worker.executors.shell import shell
from foliot.worker.executors.simulate import simulate
from foliot.worker.executors.transactional import in_a_transaction
from foliot.worker.executors.wait import wait
from foliot.worker.executors.waits import wait_for_file, wait_for_row, wait_for_url
from foliot.worker.executors.workflow import map_items, workflow
from foliot.worker.handover import Handover
from foliot.worker.identity import WorkerIdentity
from foliot.worker.task_runtime import TaskRuntime

CANCEL_SECONDS = 5.0
"""How long a cancelled async function may take to end. After that its attempt ends without it."""
CLEANUP_SECONDS = 20.0
"""The same limit for our own executors, which may have to kill processes and wait for them."""


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A task that this worker can run, with every option set except the back-off."""

    executor: Executor
    options: RunOptions
    asks_for_context: bool = True
    """A task without a context cannot see upstream results. They are read only if its payload refers to one."""
    may_never_wait: bool = False
    """An async function that takes its payload and nothing else."""
    may_print: bool = False
    """A function that runs in the worker's own process."""
    stop_seconds: float = CLEANUP_SECONDS
    """How long it may take to stop."""


@dataclass(frozen=True)
class TaskSurroundings:
    """Everything that executors are built from."""

    backend: Backend
    config: Config
    clock: Clock
    namespace: Namespace
    identity: WorkerIdentity
    runtime: TaskRuntime
    checkpoints: CheckpointSource

    @cached_property
    def handover(self) -> Handover:
        return Handover(self.backend.calls, namespace=self.namespace)


def queues_of_tasks(app: App, config: Config, namespace: Namespace) -> dict[str, str]:
    """The default queue of each task, except the built-in tasks that the configuration disables."""
    built_in = dict.fromkeys(BUILT_IN_TASKS - config.tasks_disabled(), DEFAULT_QUEUE)
    queues = built_in | {name: task.queue for name, task in app.tasks.items()}
    return {namespace.qualified(task): namespace.qualified(queue) for task, queue in queues.items()}


def known_tasks(app: App, surroundings: TaskSurroundings) -> dict[str, KnownTask]:
    config, namespace = surroundings.config, surroundings.namespace
    defaults = RunOptions(retries=config.retries, timeout_seconds=config.timeout_seconds)
    disabled = config.tasks_disabled()
    known = {
        name: KnownTask(executor, defaults)
        for name, executor in _built_in_executors(surroundings).items()
        if name not in disabled
    }
    known |= {task.name: _known_task(task, defaults, surroundings) for task in app.tasks.values()}
    return {namespace.qualified(name): task for name, task in known.items()}


def _built_in_executors(surroundings: TaskSurroundings) -> dict[str, Executor]:
    child_runs, config, clock = surroundings.backend.child_runs, surroundings.config, surroundings.clock
    namespace, identity = surroundings.namespace, surroundings.identity
    return {
        "http": http(config, clock),
        "map": map_items(child_runs, namespace, identity),
        "shell": shell(config, surroundings.runtime.launchers, hidden_paths(config)),
        "simulate": simulate(clock),
        "wait": wait,
        "wait_for_file": durable(wait_for_file(config), surroundings.checkpoints, is_threaded=False),
        "wait_for_row": durable(wait_for_row(config), surroundings.checkpoints, is_threaded=False),
        "wait_for_url": durable(wait_for_url(config), surroundings.checkpoints, is_threaded=False),
        "workflow": workflow(child_runs, namespace, identity),
    }


def _known_task(task: Task, defaults: RunOptions, surroundings: TaskSurroundings) -> KnownTask:
    asks = asks_for_context(task.function)
    is_on_loop = task.is_async and not task.in_process
    return KnownTask(
        _executor_of(task, surroundings),
        task.options.or_else(defaults),
        asks_for_context=asks,
        may_never_wait=is_on_loop and not asks and task.options.guarantee != "transactional",
        may_print=not task.in_process,
        stop_seconds=CANCEL_SECONDS if is_on_loop else CLEANUP_SECONDS,
    )


def _executor_of(task: Task, surroundings: TaskSurroundings) -> Executor:
    config, runtime = surroundings.config, surroundings.runtime
    limit, refuse = config.result_max_bytes, surroundings.handover.refuse(task)
    if task.options.guarantee == "transactional":
        database = surroundings.backend.database
        if database is None:
            raise ConfigurationError(
                f"the task {task.name!r} is transactional: it needs a worker with access to the database"
            )
        return in_a_transaction(
            task.function,
            store=database,
            identity=surroundings.identity,
            limit_seconds=task.options.timeout_seconds or config.timeout_seconds,
            result_max_bytes=limit,
            signature=task.signature,
            refuse=refuse,
        )
    if task.in_process:
        return in_a_process(task.function, runtime.processes, result_max_bytes=limit, refuse=refuse)
    executor = (
        on_the_loop(task.function, result_max_bytes=limit, signature=task.signature, refuse=refuse)
        if task.is_async
        else in_a_thread(
            task.function, runtime.threads, result_max_bytes=limit, signature=task.signature, refuse=refuse
        )
    )
    if not asks_for_context(task.function):
        return executor
    return durable(executor, surroundings.checkpoints, is_threaded=not task.is_async)
