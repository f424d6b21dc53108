"""`ctx.sync`: durable steps for plain functions, which run in threads."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from foliot.model.backoff import Backoff
from foliot.model.checkpoint import seconds_of
from foliot.sdk.durable_context import Wait, called, poll_options, step_options

if TYPE_CHECKING:
    from foliot.sdk.durable import Durable
    from foliot.sdk.task_submission import Submitting

P = ParamSpec("P")
T = TypeVar("T")


class SyncSteps:
    """The methods of `foliot.Context` of the same names, without `await`. Steps run one after the other."""

    __slots__ = ("_durable",)

    def __init__(self, durable: Durable) -> None:
        self._durable = durable

    def step(
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        retries: int = 0,
        backoff: Backoff | None = None,
        timeout: Wait | None = None,
        **kwargs: Any,
    ) -> T:
        """Calls a function once and records its result. See `Context.step`."""
        call = functools.partial(function, *args, **kwargs)
        options = step_options(retries, backoff, timeout)
        result: T = self._done(self._durable.step(name, function, call, options))
        return result

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
    ) -> T:
        """Calls a function until it returns something other than None or False. See `Context.poll`."""
        call = functools.partial(function, *args, **kwargs)
        result: T = self._done(self._durable.poll(name, function, call, *poll_options(every, at_most, timeout)))
        return result

    def sleep(self, wait: Wait, /, name: str | None = None) -> None:
        """Sleeps without a slot. See `Context.sleep`."""
        self._done(self._durable.sleep(seconds_of(wait, field="sleep"), name))

    def wait_signal(self, name: str, /, *, timeout: Wait | None = None) -> Any:
        """Waits for a signal without a slot. See `Context.wait_signal`."""
        seconds = None if timeout is None else seconds_of(timeout, field="timeout")
        return self._done(self._durable.wait_signal(name, seconds))

    @overload
    def call(self, task: Submitting[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    def call(self, name: str, task: Submitting[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    def call(self, name: str, task: str, /, **kwargs: Any) -> Any: ...

    @overload
    def call(self, task: str, /, **kwargs: Any) -> Any: ...

    def call(self, name: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Runs a task as a run of its own and waits for it. See `Context.call`."""
        return self._done(self._durable.call(*called(name, args, kwargs)))

    def _done(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._durable.loop).result()
