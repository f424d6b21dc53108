"""The part of `ctx` that durable functions use: steps, sleeps, signals and calls that survive the death of a worker.

    @app.task
    async def order(order_id: int, ctx: foliot.Context) -> str:
        payment = await ctx.step("charge", charge, order_id)
        await ctx.sleep("1h")
        await ctx.wait_signal("approved", timeout="2d")
        return await ctx.call("ship", ship, payment=payment)

A plain function uses the same methods without `await` on `ctx.sync`.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from foliot.model.backoff import Backoff
from foliot.model.checkpoint import seconds_of
from foliot.sdk.task_exceptions import StepError

if TYPE_CHECKING:
    from uuid import UUID

    from foliot.sdk.checkpoints import Checkpoints
    from foliot.sdk.durable import Durable, StepOptions
    from foliot.sdk.durable_sync import SyncSteps
    from foliot.sdk.task_submission import Submitting

P = ParamSpec("P")
T = TypeVar("T")
Wait = str | float | timedelta


class CheckpointSource(Protocol):
    """Opens the checkpoints of an attempt."""

    def __call__(self, run_id: UUID, token: int, task: str) -> Checkpoints: ...


class Surroundings:
    """The event loop, the task and the checkpoints of an attempt that may use durable steps."""

    __slots__ = ("durable", "loop", "main", "source")

    def __init__(
        self, source: CheckpointSource, loop: asyncio.AbstractEventLoop, main: asyncio.Task[Any] | None
    ) -> None:
        self.source = source
        self.loop = loop
        self.main = main
        """None: the function runs in a thread."""
        self.durable: Durable | None = None


class DurableContext:
    """The durable methods of the context."""

    __slots__ = ("_surroundings",)

    _surroundings: Surroundings
    run_id: UUID
    token: int
    task: str

    def write(self, chunk: bytes) -> None:
        raise NotImplementedError  # pragma: no cover

    # With options first: to a type checker, a function of any parameters takes them too.

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Awaitable[T]],
        /,
        *args: Any,
        retries: int,
        backoff: Backoff | None = None,
        timeout: Wait | None = None,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Awaitable[T]],
        /,
        *args: Any,
        timeout: Wait,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        retries: int,
        backoff: Backoff | None = None,
        timeout: Wait | None = None,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        timeout: Wait,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def step(
        self,
        name: str,
        function: Callable[P, Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def step(
        self,
        name: str,
        function: Callable[P, T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, T]: ...

    def step(  # type: ignore[misc]
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        retries: int = 0,
        backoff: Backoff | None = None,
        timeout: Wait | None = None,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, Any]:
        """Calls a function once and records its result. A later attempt gets the recorded result.

        The result must be JSON; the function's return annotation says what it becomes again. A plain function runs in a
        thread. An error is not recorded: it is raised, and a later attempt calls the function again. If the worker dies
        between the function's effect and the record, the function is called again too; pass `foliot.step_key()` to
        services that accept an idempotency key.

        Args:
            name: Unique in the function. In a loop, such as `f"item-{item}"`.
            retries: How often to call the function again after an error, within the attempt.
            backoff: The waits between these calls.
            timeout: The longest time that a call may take.
        """
        durable = self._awaited("step")
        call = functools.partial(_function_of(function), *args, **kwargs)
        options = step_options(retries, backoff, timeout)
        return durable.step(name, _function_of(function), call, options)

    @overload
    def poll(
        self,
        name: str,
        function: Callable[..., Awaitable[T | None]],
        /,
        *args: Any,
        every: Wait = 10.0,
        at_most: Wait = 300.0,
        timeout: Wait | None = None,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def poll(
        self,
        name: str,
        function: Callable[..., T | None],
        /,
        *args: Any,
        every: Wait = 10.0,
        at_most: Wait = 300.0,
        timeout: Wait | None = None,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, T]: ...

    def poll(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        every: Wait = 10.0,
        at_most: Wait = 300.0,
        timeout: Wait | None = None,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, Any]:
        """Calls a function until it returns something other than None or False, and records that as a step does.

        Between the calls the run holds no slot. An error of the function ends the attempt.

        Args:
            every: The first wait. Each wait is twice as long as the one before.
            at_most: The longest wait.
            timeout: The sum of all waits after which `PollTimeout` is raised.
        """
        call = functools.partial(_function_of(function), *args, **kwargs)
        return self._awaited("poll").poll(name, _function_of(function), call, *poll_options(every, at_most, timeout))

    def transaction(
        self,
        name: str,
        function: Callable[Concatenate[Any, P], Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, T]:
        """Calls an async function with a connection to Foliot's database, and commits its effect and the record of its
        result together: both happen exactly once.

        The connection is one of asyncpg, inside a transaction. The function must not commit or roll back.
        """

        async def call(connection: Any) -> T:
            return await function(connection, *args, **kwargs)

        return self._awaited("transaction").transaction(name, function, call)

    def sleep(self, wait: Wait, /, name: str | None = None) -> Coroutine[Any, Any, None]:
        """Sleeps for a time, such as `"1h"`, a timedelta or a number of seconds, however often the worker restarts.

        A sleep of more than a second gives up the run's slot. Sleeps without a name are told apart by their order.
        """
        return self._awaited("sleep").sleep(seconds_of(wait, field="sleep"), name)

    def wait_signal(self, name: str, /, *, timeout: Wait | None = None) -> Coroutine[Any, Any, Any]:
        """Waits for a signal without a slot, and returns its payload. A signal that was sent before is not lost.

        Raises:
            SignalTimeout: No signal arrived in time.
            Rejected: The signal rejects the run.
        """
        seconds = None if timeout is None else seconds_of(timeout, field="timeout")
        return self._awaited("wait_signal").wait_signal(name, seconds)

    @overload
    def call(self, task: Submitting[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]: ...

    @overload
    def call(
        self, name: str, task: Submitting[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def call(self, name: str, task: str, /, **kwargs: Any) -> Coroutine[Any, Any, Any]: ...

    @overload
    def call(self, task: str, /, **kwargs: Any) -> Coroutine[Any, Any, Any]: ...

    def call(self, name: Any, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Runs a task as a run of its own, waits for it without a slot, and returns its result.

        `ctx.call(ship, order_id=7)` names the call like its task. Give several calls of a task different names:
        `ctx.call(f"ship-{item}", ship, item=item)`, also together in `asyncio.gather`. A task of another program is
        called by its name. The called run is cancelled if this run ends before it.

        Raises:
            ChildFailed: The called run failed, or was cancelled or skipped.
        """
        return self._awaited("call").call(*called(name, args, kwargs))

    @property
    def sync(self) -> SyncSteps:
        """The same methods for a plain function, without `await`: `ctx.sync.step("charge", charge, order_id)`."""
        from foliot.sdk.durable_sync import SyncSteps

        durable = self._durable("sync")
        if durable.main is not None:
            raise StepError("ctx.sync is for plain functions; in an async function, await ctx.step(...) and its like")
        return SyncSteps(durable)

    def run_in(self, surroundings: Surroundings) -> None:
        """Makes durable steps available. The worker calls this."""
        self._surroundings = surroundings

    def _awaited(self, method: str) -> Durable:
        durable = self._durable(method)
        if durable.main is None:
            raise StepError(f"ctx.{method}: a plain function uses ctx.sync.{method}(...), without await")
        return durable

    def _durable(self, method: str) -> Durable:
        try:
            surroundings = self._surroundings
        except AttributeError:
            raise StepError(
                f"ctx.{method}: not available in this task. Durable steps need an async or a plain function; "
                "declare the task without process=True and without guarantee='transactional'"
            ) from None
        if surroundings.durable is None:
            from foliot.sdk.durable import Durable

            surroundings.durable = Durable(
                surroundings.source(self.run_id, self.token, self.task),
                run_id=self.run_id,
                main=surroundings.main,
                loop=surroundings.loop,
                log=self._note,
            )
        return surroundings.durable

    def _note(self, line: str) -> None:
        self.write(f"{line}\n".encode("utf-8", "backslashreplace"))


def step_key() -> str:
    """Returns an idempotency key for the step that is running: the same in every attempt of its run.

    Raises:
        StepError: No step is running here.
    """
    from foliot.sdk.durable import STEP_KEY

    if (found := STEP_KEY.get()) is None:
        raise StepError("foliot.step_key(): only the function of a step has a key")
    return found


def step_options(retries: int, backoff: Backoff | None, timeout: Wait | None) -> StepOptions:
    from foliot.sdk.durable import StepOptions

    return StepOptions(retries, backoff, None if timeout is None else seconds_of(timeout, field="timeout"))


def poll_options(every: Wait, at_most: Wait, timeout: Wait | None) -> tuple[Backoff, float | None]:
    first, longest = seconds_of(every, field="every"), seconds_of(at_most, field="at_most")
    if not 0 < first <= 86_400:
        raise StepError("every: must be more than 0 seconds, and at most a day")
    backoff = Backoff(base_seconds=first, cap_seconds=max(first, longest), jitter=0.0)
    return backoff, None if timeout is None else seconds_of(timeout, field="timeout")


def called(
    name: str | Submitting[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str, dict[str, Any], Callable[[str | None], Any]]:
    """The name of a call, its job, and what turns the result's JSON text into the task's return type."""
    from foliot.sdk.current_trace import in_current_trace
    from foliot.sdk.jobs import job_of
    from foliot.sdk.step_results import decode_result
    from foliot.sdk.task_submission import Submitting
    from foliot.sdk.value_types import ANY

    target: str | Submitting[Any, Any] = name
    if isinstance(name, str) and args and isinstance(args[0], str | Submitting):
        target, args = args[0], args[1:]
    if isinstance(target, Submitting):
        fields, payload, signature = target.fields(), target.payload_of(args, kwargs), target.signature_of_task()
    elif args:
        raise StepError(f"call {target!r}: pass arguments by name; the task's function is not here")
    else:
        fields, payload, signature = {"task": target}, kwargs, None
    named = name if isinstance(name, str) else str(fields["task"])
    wanted = ANY if signature is None else signature.result

    def convert(result: str | None) -> Any:
        return decode_result(result, wanted, named)

    return named, in_current_trace(job_of(fields, payload)), convert


def _function_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a task that is used as a step."""
    from foliot.sdk.app import Task

    return function.function if isinstance(function, Task) else function
