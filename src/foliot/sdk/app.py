"""`foliot.App`: registers the tasks of an application.

    import foliot

    app = foliot.App()

    @app.task(queue="mail", retries=5, timeout=30)
    async def send_invoice(customer_id: int) -> str:
        return f"sent to {customer_id}"

`send_invoice.submit(customer_id=7)` submits a job. A worker started with `foliot worker shop.tasks:app` runs it and
passes the payload as keyword arguments. Async functions run on the worker's event loop, plain functions in threads, and
functions declared with `process=True` in Python processes that can be killed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import FrameType
from typing import Any, Concatenate, Protocol, TypedDict, Unpack, cast, overload

import msgspec

from foliot.config import BUILT_IN_TASKS, did_you_mean
from foliot.errors import Invalid
from foliot.model.backoff import Backoff
from foliot.model.catchup import Catchup
from foliot.model.circuit_breaker import Circuit
from foliot.model.guarantee import Guarantee
from foliot.model.overlap import Overlap
from foliot.model.run import RunOptions
from foliot.model.schedule import Schedule, from_cron, timetable_of
from foliot.sdk.context import Context
from foliot.sdk.default_connection import Server
from foliot.sdk.signature import Signature
from foliot.sdk.task_submission import Prepared, Submitting
from foliot.sdk.type_variables import P, R
from foliot.triggers.dst import DstFold, DstGap
from foliot.validation_errors import to_invalid

Function = Callable[..., Any]
Cause = type[BaseException] | str | int

DEFAULT_QUEUE = "default"
NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")


@dataclass(frozen=True, slots=True)
class Task(Submitting[P, R]):
    """A registered task: a function and its options. `@app.task` creates it; `submit` and its variants submit jobs."""

    name: str
    function: Function
    queue: str
    options: RunOptions
    schedule: Schedule | None = None
    """The schedule of the recurring job that a worker creates when it starts."""
    circuit: Circuit | None = None
    in_process: bool = False
    """The task runs in its own Python process."""
    app: App = field(kw_only=True, repr=False, compare=False)
    signature: Signature = field(kw_only=True, repr=False, compare=False)

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function directly, without a job."""
        return self.function(*args, **kwargs)

    def fields(self) -> dict[str, Any]:
        return {"task": self.name} | ({"tags": list(self.options.tags)} if self.options.tags else {})

    def server(self) -> Server:
        return self.app.server

    def signature_of_task(self) -> Signature:
        return self.signature

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
        templates: bool | None = None,
    ) -> Prepared[P, R]:
        """Returns this task with options for its jobs. Options that are not given keep the task's own values.

            send_invoice.with_options(priority=5, unique="customer 7").submit(customer_id=7)

        Args:
            timeout: Timeout of each attempt, in seconds.
            retry_on: Errors to retry: exception classes, their names, or exit codes.
            never_on: Errors that are never retried.
            unique: A key that only one unfinished job may have. To choose what happens on a conflict, pass
                `{"key": ..., "on_conflict": "return_existing" | "reject" | "replace"}`.
            expires_at: The job does not start after this time.
            idempotency_key: Submitting again with this key returns the first job instead of creating another.
            tags: Words to find the job's runs by. They replace the task's tags.
            notify: Webhooks to call when the job ends: `{"url": ..., "on": ["failed"]}`, or a list of such.
            templates: Render placeholders such as `{{ attempt }}` in the payload.
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
            "templates": templates,
        }
        return Prepared(
            self.fields() | {name: value for name, value in given.items() if value is not None},
            self.server(),
            self.signature,
        )


class App:
    """The tasks of an application.

    Args:
        url: The server that jobs are submitted to (`http://...`), or a database (`postgresql://...`). Defaults to
            FOLIOT_URL, or else to the server on this machine.
        token: Defaults to FOLIOT_TOKEN.
        namespace: Defaults to FOLIOT_NAMESPACE.
    """

    def __init__(self, *, url: str | None = None, token: str | None = None, namespace: str | None = None) -> None:
        self.tasks: dict[str, Task[..., Any]] = {}
        self.server = Server(url, token, namespace)

    def close(self) -> None:
        """Closes the connections that jobs were submitted over. The next submission opens a new one."""
        self.server.close()

    def around(self, function: Function) -> Function:
        """The function that workers call for a task. Integrations override it, to prepare a context and clean up."""
        return function

    @overload
    def task(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...

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
    ) -> Decorator: ...

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
    ) -> Task[..., Any] | Decorator:
        """Registers a function as a task. Use it as a decorator, with or without arguments.

            @app.task(queue="mail", retries=5, timeout=30)
            async def send_invoice(customer_id: int) -> str: ...

        With `cron` or `every`, a worker that starts with this app creates a recurring job with the task's name. If the
        job exists, the worker updates its schedule and queue, and keeps its priority, payload, options and pauses. A
        schedule that you remove from the code stays on the server, because another app may declare it: pause or delete
        the job yourself.

        Args:
            name: Defaults to the function's name.
            timeout: Timeout of each attempt, in seconds.
            retry_on: Retry only these errors: exception classes or their names, including subclasses, or exit codes.
                `Timeout` is the error of an attempt that took too long.
            never_on: Never retry these errors.
            tags: Words to find the task's runs by.
            process: Run the task in its own Python process. Use this for code that must be killable or that keeps a
                core busy.

        Raises:
            Invalid: A name, an option or the schedule is invalid, or the name is already taken.
        """

        here = inspect.currentframe()
        caller = here.f_back if here else None

        def register(function: Function) -> Task[..., Any]:
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
            signature = Signature(function, local_names(function, caller), called=self.around(function))
            task: Task[..., Any] = Task(
                known_as, function, queue, options, declared, circuit, process, app=self, signature=signature
            )
            self._add(task)
            return task

        return cast("Decorator", register) if function is None else register(function)

    def _add(self, task: Task[..., Any]) -> None:
        for what, value in (("task name", task.name), ("queue", task.queue)):
            if not NAME_PATTERN.fullmatch(value):
                raise Invalid(f"{what} {value!r}: must be up to 200 letters, digits, and . _ : -", field=what)
        try:
            msgspec.convert(msgspec.to_builtins(task.options), RunOptions)
        except msgspec.ValidationError as error:
            raise Invalid(f"task {task.name!r}: {to_invalid(error, whole='options').detail}", field="options") from None
        if task.options.guarantee == "transactional" and not task.is_async:
            raise Invalid(
                f"task {task.name!r}: a transactional task must be an async function",
                field="guarantee",
            )
        if task.in_process and not re.fullmatch(r"[\w.]+", getattr(task.function, "__qualname__", "")):
            raise Invalid(
                f"task {task.name!r}: process=True requires a function at the top level of a module", field="process"
            )
        if task.name in self.tasks or task.name in BUILT_IN_TASKS:
            raise Invalid(f"a task named {task.name!r} already exists; pass another name=", field="name")
        self.tasks[task.name] = task


class Decorator(Protocol):
    """`@app.task(...)`. The context is no argument of a payload; type checkers know that if it comes first."""

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class ScheduleFields(TypedDict, total=False):
    """The schedule arguments of `@app.task`, as in the API."""

    cron: str | Sequence[str]
    every: str
    timezone: str
    dst_gap: DstGap
    dst_fold: DstFold
    jitter_seconds: int
    overlap: Overlap
    catchup: Catchup


def local_names(function: Function, caller: FrameType | None) -> dict[str, Any] | None:
    """The local names of the function that declares a task, if the task's annotations are text and may need them."""
    if caller is None or not caller.f_code.co_flags & inspect.CO_NEWLOCALS:
        return None
    is_text = any(isinstance(one, str) for one in getattr(function, "__annotations__", {}).values())
    return dict(caller.f_locals) if is_text else None


def declared_schedule(name: str, function: Function, given: ScheduleFields) -> Schedule | None:
    """Builds a task's schedule. Raises `Invalid` for an invalid schedule, or a function with required arguments."""
    if unknown := sorted(set(given) - set(ScheduleFields.__annotations__)):
        fields = inspect.signature(App.task).parameters
        known = [one for one in fields if one not in ("self", "function", "schedule")] + [
            *ScheduleFields.__annotations__
        ]
        hint = did_you_mean(unknown[0], known) or f"; the options are {', '.join(known)}"
        raise TypeError(f"task {name!r}: there is no option {unknown[0]!r}{hint}")
    if not given:
        return None
    if ("cron" in given) == ("every" in given):
        raise Invalid(f"task {name!r}: pass either cron or every", field="cron")
    try:
        schedule = msgspec.convert(given, Schedule)
        if schedule.cron is not None:
            schedule = msgspec.structs.replace(schedule, **from_cron(schedule.cron, given.get("timezone")))
        timetable_of(schedule, name, 0, None)
    except (msgspec.ValidationError, Invalid) as error:
        found = error if isinstance(error, Invalid) else to_invalid(error, whole="schedule")
        raise Invalid(f"task {name!r}: {found.detail}", field="schedule") from None
    for parameter in inspect.signature(function).parameters.values():
        is_open = (
            parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            or parameter.default is not parameter.empty
        )
        if parameter.name != "ctx" and not is_open:
            raise Invalid(
                f"task {name!r}: the argument {parameter.name!r} of a scheduled task must have a default",
                field="schedule",
            )
    return schedule


def named_causes(causes: Sequence[Cause] | None) -> tuple[str | int, ...] | None:
    """Replaces exception classes with their names, as options are stored."""
    if causes is None:
        return None
    return tuple(f"{cause.__module__}.{cause.__qualname__}" if isinstance(cause, type) else cause for cause in causes)
