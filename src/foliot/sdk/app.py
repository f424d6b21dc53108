"""`foliot.App`: the tasks of an application, by name.

    import foliot

    app = foliot.App()

    @app.task(queue="mail", retries=5, timeout=30)
    async def send_invoice(customer_id: int) -> str:
        return f"sent to {customer_id}"

`foliot worker shop.tasks:app` then runs jobs that name `send_invoice`, with the job's payload as keyword arguments.
Async functions run on the worker's event loop, plain ones in threads, and those declared with `process=True` in Python
processes that can be killed. `send_invoice.submit(customer_id=7)` submits such a job from anywhere.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

import msgspec

from foliot.config import BUILT_IN_TASKS
from foliot.errors import ApplicationError, Invalid
from foliot.model.backoff import Backoff
from foliot.model.circuit_breaker import Circuit
from foliot.model.guarantee import Guarantee
from foliot.model.run import RunOptions
from foliot.model.schedule import Catchup, Overlap, Schedule, from_cron, timetable_of
from foliot.sdk.default_connection import Server
from foliot.sdk.task_submission import Prepared, Submitting
from foliot.triggers.dst import DstFold, DstGap

Function = Callable[..., Any]
Cause = type[BaseException] | str | int

DEFAULT_QUEUE = "default"
NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")


@dataclass(frozen=True, slots=True)
class Task(Submitting):
    """A function that jobs can name, and what it says of itself. See `foliot.sdk.task_submission` for what submits it."""

    name: str
    function: Function
    queue: str
    options: RunOptions
    schedule: Schedule | None = None
    """Of the recurring job that a worker makes when it starts."""
    circuit: Circuit | None = None
    in_process: bool = False
    """Whether it runs in a Python process of its own."""
    app: App = field(kw_only=True, repr=False, compare=False)

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function here and now, with no job involved."""
        return self.function(*args, **kwargs)

    def fields(self) -> dict[str, Any]:
        return {"task": self.name} | ({"tags": list(self.options.tags)} if self.options.tags else {})

    def server(self) -> Server:
        return self.app.server

    def with_options(
        self,
        *,
        name: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        retries: int | None = None,
        timeout: float | None = None,
        backoff: Backoff | None = None,
        retry_on: Sequence[Cause] | None = None,
        never_on: Sequence[Cause] | None = None,
        max_snoozes: int | None = None,
        unique: str | Mapping[str, str] | None = None,
        expires_at: datetime | None = None,
        idempotency_key: str | None = None,
        tags: Sequence[str] | None = None,
        notify: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Prepared:
        """This task with options for the jobs that are submitted from what is returned. Where they are silent, the
        task's own hold.

        `unique` is a key of which one job at a time may wait or run, or `{"key": ..., "on_conflict": "return_existing"
        | "reject" | "replace"}`. `idempotency_key` makes a repeated `submit` find the job that the first one made.
        `tags` are words to find its runs by, in place of the task's own; `notify` is who is told of its end: `{"url":
        ..., "on": ["failed"]}`, or several of these.
        """
        given = {
            "name": name,
            "queue": queue,
            "priority": priority,
            "retries": retries,
            "timeout_seconds": timeout,
            "backoff": None if backoff is None else msgspec.to_builtins(backoff),
            "retry_on": named_causes(retry_on),
            "never_on": named_causes(never_on),
            "max_snoozes": max_snoozes,
            "unique": {"key": unique} if isinstance(unique, str) else unique,
            "expires_at": None if expires_at is None else expires_at.isoformat(),
            "idempotency_key": idempotency_key,
            "tags": None if tags is None else list(tags),
            "notify": notify,
        }
        return Prepared(
            self.fields() | {name: value for name, value in given.items() if value is not None}, self.server()
        )


class App:
    """A registry of tasks. `url`, `token` and `namespace` say where their jobs are submitted to; by default, what
    FOLIOT_URL, FOLIOT_TOKEN and FOLIOT_NAMESPACE say. A URL of a database (`postgresql://...`) leads straight there."""

    def __init__(self, *, url: str | None = None, token: str | None = None, namespace: str | None = None) -> None:
        self.tasks: dict[str, Task] = {}
        self.server = Server(url, token, namespace)

    def close(self) -> None:
        """Lets go of the connections over which jobs were submitted. The next one that is makes a new one."""
        self.server.close()

    @overload
    def task(self, function: Function, /) -> Task: ...

    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        retries: int | None = None,
        timeout: float | None = None,
        backoff: Backoff | None = None,
        guarantee: Guarantee | None = None,
        circuit: Circuit | None = None,
        retry_on: Sequence[Cause] | None = None,
        never_on: Sequence[Cause] | None = None,
        max_snoozes: int | None = None,
        tags: Sequence[str] = (),
        process: bool = False,
        **schedule: Unpack[ScheduleFields],
    ) -> Callable[[Function], Task]: ...

    def task(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        retries: int | None = None,
        timeout: float | None = None,
        backoff: Backoff | None = None,
        guarantee: Guarantee | None = None,
        circuit: Circuit | None = None,
        retry_on: Sequence[Cause] | None = None,
        never_on: Sequence[Cause] | None = None,
        max_snoozes: int | None = None,
        tags: Sequence[str] = (),
        process: bool = False,
        **schedule: Unpack[ScheduleFields],
    ) -> Task | Callable[[Function], Task]:
        """Registers a function under its own name, or the one given. `timeout` is in seconds.

        `retry_on` and `never_on` say which failures are worth another attempt: classes of exceptions, or their names,
        which hold for what is derived from them, too; or exit codes. `Timeout` is an attempt that took too long.

        `tags` are words to find its runs by; those of its recurring job have them, too, if it is made here.

        `process=True` runs it in a Python process of its own: for code that must be killable, or that keeps a core
        busy.

        With `cron` or `every`, a worker that starts with this app makes the recurring job of the task's name, or
        changes its schedule and queue to what is written here; its priority, payload, options and pauses stay as they
        are. A schedule that is taken out of the code leaves the job alone, since another app may have it: pause or
        delete it yourself.
        """

        def register(function: Function) -> Task:
            options = RunOptions(
                retries=retries,
                timeout_seconds=timeout,
                backoff=backoff,
                retry_on=named_causes(retry_on),
                never_on=named_causes(never_on),
                max_snoozes=max_snoozes,
                guarantee=guarantee,
                tags=tuple(tags) or None,
            )
            known_as = name or function.__name__
            declared = declared_schedule(known_as, function, schedule)
            task = Task(known_as, function, queue, options, declared, circuit, process, app=self)
            self._add(task)
            return task

        return register if function is None else register(function)

    def _add(self, task: Task) -> None:
        for what, value in (("task name", task.name), ("queue", task.queue)):
            if not NAME_PATTERN.fullmatch(value):
                raise Invalid(f"{what} {value!r}: letters, digits, and . _ : - are allowed, up to 200", field=what)
        try:
            msgspec.convert(msgspec.to_builtins(task.options), RunOptions)
        except msgspec.ValidationError as error:
            raise Invalid(f"task {task.name!r}: {str(error).replace('`$.', '`')}", field="options") from None
        if task.options.guarantee == "transactional" and not task.is_async:
            raise Invalid(
                f"task {task.name!r}: a transactional task is an async function: it awaits its connection",
                field="guarantee",
            )
        if task.in_process and not re.fullmatch(r"[\w.]+", getattr(task.function, "__qualname__", "")):
            raise Invalid(f"task {task.name!r}: process=True takes a function at the top of a module", field="process")
        if task.name in self.tasks or task.name in BUILT_IN_TASKS:
            raise Invalid(f"there is a task named {task.name!r} already; give this one another name=", field="name")
        self.tasks[task.name] = task


class ScheduleFields(TypedDict, total=False):
    """What `@app.task` may say about when; as in the API."""

    cron: str | Sequence[str]
    every: str
    timezone: str
    dst_gap: DstGap
    dst_fold: DstFold
    jitter_seconds: int
    overlap: Overlap
    catchup: Catchup


def declared_schedule(name: str, function: Function, given: ScheduleFields) -> Schedule | None:
    """Raises `Invalid` where it is written for a schedule that makes no sense, or a function that nobody would give its
    arguments."""
    if unknown := sorted(set(given) - set(ScheduleFields.__annotations__)):
        raise TypeError(f"task() got an unexpected keyword argument {unknown[0]!r}")
    if not given:
        return None
    if ("cron" in given) == ("every" in given):
        raise Invalid(f"task {name!r}: give either cron or every", field="cron")
    try:
        schedule = msgspec.convert(given, Schedule)
        if schedule.cron is not None:
            schedule = msgspec.structs.replace(schedule, **from_cron(schedule.cron, given.get("timezone")))
        timetable_of(schedule, name, 0, None)
    except (msgspec.ValidationError, Invalid) as error:
        raise Invalid(f"task {name!r}: {str(error).replace('`$.', '`')}", field="schedule") from None
    for parameter in inspect.signature(function).parameters.values():
        is_open = (
            parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            or parameter.default is not parameter.empty
        )
        if parameter.name != "ctx" and not is_open:
            raise Invalid(
                f"task {name!r}: on a schedule, nobody gives it its {parameter.name!r}; it needs a default",
                field="schedule",
            )
    return schedule


def named_causes(causes: Sequence[Cause] | None) -> tuple[str | int, ...] | None:
    """Classes by their names, which is how options are stored."""
    if causes is None:
        return None
    return tuple(f"{cause.__module__}.{cause.__qualname__}" if isinstance(cause, type) else cause for cause in causes)


def load_app(reference: str) -> App:
    """The app that `module:attribute` names; modules in the working directory count."""
    module_name, _, attribute = reference.partition(":")
    attribute = attribute or "app"
    if not module_name or module_name.startswith("."):
        raise ApplicationError(f"{reference!r}: an app is named as MODULE:APP, for example shop.tasks:app")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise ApplicationError(
                f"{reference!r}: there is no module {error.name!r} in {here} or on the Python path"
            ) from None
        raise
    app = getattr(module, attribute, None)
    if not isinstance(app, App):
        found = "nothing" if app is None else f"a {type(app).__name__}"
        raise ApplicationError(f"{reference!r}: expected a foliot.App in {module_name}.{attribute}, found {found}")
    return app
