"""The checkpoints of one attempt of a durable function.

The function runs from the top in every attempt. It asks for each step by name: a recorded one returns its result, a new
one runs and is recorded. Once nothing is left but waits for an instant, a signal or a called run, the function is ended
with `Suspended`, and its run gives up its slot: see `suspension.py`.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.backoff import DEFAULT_BACKOFF, Backoff, wait_seconds
from foliot.model.checkpoint import (
    BYTES_MAX,
    CHECKPOINTS_MAX,
    Checkpoint,
    Kind,
    check_checkpoint_name,
)
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.checkpoints import Checkpoints
from foliot.sdk.step_results import decode_result, encode_result, type_of_result
from foliot.sdk.suspension import Suspension
from foliot.sdk.task_exceptions import ChildFailed, Control, PollTimeout, Rejected, SignalTimeout, StepError

NOT_YET = ("null", "false")
STEP_KEY: ContextVar[str | None] = ContextVar("foliot_step_key", default=None)
SWALLOWED = Attempted(
    Ending.FAILED,
    error=error_of(
        "SuspensionSwallowed",
        "the function caught foliot.Suspended, or the cancellation that ends it, and continued; "
        "let BaseException pass where it waits",
    ),
    is_retryable=False,
)

RAISED_BY_ITSELF = replace(
    SWALLOWED, error=error_of("Suspended", "the function raised foliot.Suspended by itself; only ctx may")
)


@dataclass(frozen=True, slots=True)
class StepOptions:
    retries: int = 0
    backoff: Backoff | None = None
    timeout_seconds: float | None = None


NO_OPTIONS = StepOptions()


class Durable:
    """Everything that one attempt knows of its checkpoints. Used on the event loop only."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        *,
        run_id: UUID,
        main: asyncio.Task[Any] | None,
        loop: asyncio.AbstractEventLoop,
        log: Callable[[str], None],
    ) -> None:
        self.checkpoints = checkpoints
        self.loop = loop
        self.main = main
        """None: the function runs in a thread."""
        self._run_id = run_id
        self._log = log
        self._records: dict[str, Checkpoint] | None = None
        self._loaded_at = 0.0
        self._loading = asyncio.Lock()
        self._taken: set[str] = set()
        self._bytes = 0
        self._sleeps = 0
        self.suspension = Suspension(checkpoints, main=main, loop=loop)

    # --- what the function asks for

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        call: Callable[[], Any],
        options: StepOptions = NO_OPTIONS,
    ) -> Any:
        """`call` is the function with its arguments."""
        qualified = qualified_name(function)
        record = await self._begin(name, "step", qualified)
        if record is None:
            with self.suspension.at_work():
                text, seconds = await self._performed(name, function, call, options)
                await self.checkpoints.record(name, "step", function=qualified, result=text, took_seconds=seconds)
                self._count(text)
        else:
            text = record.result or "null"
        return decode_result(text, type_of_result(function), name)

    async def poll(
        self,
        name: str,
        function: Callable[..., Any],
        call: Callable[[], Any],
        backoff: Backoff,
        limit_seconds: float | None,
    ) -> Any:
        """Calls the function until it returns something other than None or False, with recorded sleeps between."""
        qualified = qualified_name(function)
        record = await self._begin(name, "step", qualified)
        if record is not None:
            return decode_result(record.result, type_of_result(function), name)
        slept = 0.0
        for number in count(1):
            wait, pause = f"{name} wait {number}", wait_seconds(backoff, number, 0.0)
            # After this wait was recorded, the function is not called again for what came before it.
            if wait not in (self._records or {}):
                with self.suspension.at_work():
                    text, seconds = await self._performed(name, function, call, NO_OPTIONS)
                    if text not in NOT_YET:
                        await self.checkpoints.record(
                            name, "step", function=qualified, result=text, took_seconds=seconds
                        )
                        self._count(text)
                        break
                if limit_seconds is not None and slept + pause > limit_seconds:
                    raise PollTimeout(f"{name!r} returned nothing within {limit_seconds:g} s, polled {number} times")
            await self.sleep(pause, wait)
            slept += pause
        return decode_result(text, type_of_result(function), name)

    async def transaction(self, name: str, function: Callable[..., Any], call: Callable[[Any], Awaitable[Any]]) -> Any:
        qualified = qualified_name(function)
        record = await self._begin(name, "transaction", qualified)
        if record is not None:
            return decode_result(record.result, type_of_result(function), name)

        async def work(connection: Any) -> str:
            with self._inside(name):
                return encode_result(await call(connection), name, self.checkpoints.result_max_bytes)

        with self.suspension.at_work():
            text = await self.checkpoints.transact(name, qualified, work)
            self._count(text)
        return decode_result(text, type_of_result(function), name)

    async def sleep(self, seconds: float, name: str | None) -> None:
        if name is None:
            self._sleeps += 1
            name = "sleep" if self._sleeps == 1 else f"sleep {self._sleeps}"
        record = await self._begin(name, "sleep", None)
        if record is None:
            with self.suspension.at_work():
                due_at = await self.checkpoints.record(name, "sleep", wait_seconds=seconds)
            record = Checkpoint(name, "sleep", is_done=False, due_at=due_at, left_seconds=seconds)
            left = seconds
        else:
            left = self._left(record)
        if left <= 0:
            return
        if left > self.checkpoints.in_place_seconds:
            await self.suspension.park(replace(record, left_seconds=left))
            return
        with self.suspension.at_work():
            await self.checkpoints.pause(left)

    async def wait_signal(self, name: str, timeout_seconds: float | None) -> Any:
        record = await self._begin(name, "signal", None)
        if record is None:
            with self.suspension.at_work():
                record = await self.checkpoints.await_signal(name, timeout_seconds)
        if not record.is_done:
            record = await self.suspension.park(record)
        if record.error is None:
            return msgspec.json.decode(record.result or "null")
        if record.error.kind == "SignalTimeout":
            raise SignalTimeout(f"no signal {name!r} arrived in time")
        raise Rejected(f"rejected by signal {name!r}: {record.error.message}")

    async def call(self, name: str, job: Mapping[str, Any], convert: Callable[[str | None], Any]) -> Any:
        record = await self._begin(name, "call", str(job["task"]))
        if record is None:
            with self.suspension.at_work():
                child_id = await self.checkpoints.call(name, job)
            record = Checkpoint(name, "call", is_done=False, child_id=child_id)
        if not record.is_done:
            record = await self.suspension.park(record)
        if (error := record.error) is not None:
            raise ChildFailed(name, record.child_id, error.kind, error.message, error.state)
        return convert(record.result)

    def key_of(self, name: str) -> str:
        return f"{self._run_id}:{name}"

    # --- how it ends

    async def concluded(self, attempted: Attempted) -> Attempted:
        """The ending of the attempt, given that of its function."""
        await self.close()
        if self.suspension.is_under_way:
            if attempted.ending is not Ending.SUSPENDED:
                return SWALLOWED
            return replace(attempted, result=msgspec.json.encode(self.suspension.awaits()).decode())
        if attempted.ending is Ending.SUSPENDED:
            return RAISED_BY_ITSELF
        if attempted.ending is Ending.SUCCEEDED:
            await self._warn_of_unused()
        return attempted

    async def _warn_of_unused(self) -> None:
        if unused := sorted((self._records or {}).keys() - self._taken):
            self._log(
                f"warning: the function no longer asks for these recorded steps: {', '.join(unused)}. "
                "Were they renamed or removed?"
            )
            await self.checkpoints.note_unused(unused)

    async def close(self) -> None:
        """The function has ended."""
        await self.suspension.close()

    # --- inside

    async def _begin(self, name: str, kind: Kind, function: str | None) -> Checkpoint | None:
        """The record of this name. None: it is new."""
        check_checkpoint_name(name)
        if STEP_KEY.get() is not None:
            raise StepError(f"{kind} {name!r}: a step's function can't use steps or waits of its own")
        self.suspension.check()
        if name in self._taken:
            raise StepError(
                f"{kind} {name!r}: the function has used this name before; give each step and wait a name of its own, "
                f"such as f'{name}-{{item}}' in a loop"
            )
        self._taken.add(name)
        if self._records is None:
            await self._load()
        record = (self._records or {}).get(name)
        if record is None:
            self._refuse_more(name)
            return None
        if record.kind != kind:
            raise StepError(
                f"{kind} {name!r}: an earlier attempt recorded a {record.kind} of this name; "
                "new code needs a new name for it"
            )
        if function is not None and record.function not in (None, function):
            self._log(f"{kind} {name!r} was recorded by {record.function}; its result is used for {function}")
        return record

    async def _load(self) -> None:
        async with self._loading:
            if self._records is None:
                found = () if self.checkpoints.starts_empty else await self.checkpoints.load()
                self._loaded_at = self.checkpoints.monotonic()
                self._bytes = sum(len(one.result or "") for one in found)
                self._records = {one.name: one for one in found}

    def _refuse_more(self, name: str) -> None:
        if len(self._taken) > CHECKPOINTS_MAX:
            raise StepError(f"step {name!r}: a run has at most {CHECKPOINTS_MAX} steps and waits; call other runs")
        if self._bytes > BYTES_MAX:
            raise StepError(
                f"step {name!r}: the recorded results of this run have more than {BYTES_MAX} bytes; "
                "store large results elsewhere and return their location"
            )

    def _count(self, text: str) -> None:
        self._bytes += len(text)

    def _left(self, record: Checkpoint) -> float:
        if record.is_done or record.left_seconds is None:
            return 0.0
        return record.left_seconds - (self.checkpoints.monotonic() - self._loaded_at)

    async def _performed(
        self, name: str, function: Callable[..., Any], call: Callable[[], Any], options: StepOptions
    ) -> tuple[str, float]:
        """The JSON text of the result, and how long the try took that returned it."""
        retry = 0
        while True:
            began_at = self.checkpoints.monotonic()
            try:
                value = await self._tried(name, function, call, options.timeout_seconds)
                text = encode_result(value, name, self.checkpoints.result_max_bytes)
            except Control:
                raise
            except Exception as error:
                retry += 1
                if retry > options.retries:
                    raise
                delay = wait_seconds(options.backoff or DEFAULT_BACKOFF, retry, random.random())  # noqa: S311
                self._log(f"step {name!r} failed with {type(error).__name__}; retry {retry} in {delay:.1f} s")
                await self.checkpoints.pause(delay)
            else:
                return text, self.checkpoints.monotonic() - began_at

    async def _tried(
        self,
        name: str,
        function: Callable[..., Any],
        call: Callable[[], Any],
        timeout_seconds: float | None,
    ) -> Any:
        try:
            async with asyncio.timeout(timeout_seconds) as limit:
                with self._inside(name):
                    value = call() if inspect.iscoroutinefunction(function) else await self.checkpoints.in_thread(call)
                    return await value if inspect.isawaitable(value) else value
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"step {name!r} ran longer than its {timeout_seconds:g} s") from None
            raise

    @contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        token = STEP_KEY.set(self.key_of(name))
        try:
            yield
        finally:
            STEP_KEY.reset(token)


def qualified_name(function: Callable[..., Any]) -> str:
    named = inspect.unwrap(getattr(function, "func", function))
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', type(named).__name__)}"[:500]
