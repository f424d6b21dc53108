"""The output of a run as server-sent events, while it runs and until it has ended.

    event: output    id: <token>:<position>  data: {"attempt": 1, "text": "..."}
    event: progress  data: {"attempt": 1, "share": 0.5, "message": "..."}
    event: end       data: {"state": "succeeded", "status": "completed", "reason": null, "attempt": 1}

The id is the reader's position: a client that sends it back as Last-Event-ID resumes there, on any server. Retries are
followed too, unless one attempt was selected. A follower keeps one slice of output in memory, and of an ended attempt
its stored output, until it disconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from uuid import UUID

import msgspec

from foliot.clock import Clock
from foliot.model.log_text import complete_length, pieces_from
from foliot.model.states import TERMINAL, RunState, status_of
from foliot.store.logs import PART_MAX_BYTES, Followed
from foliot.store.run_lists import AttemptItem
from foliot.store.store import Store

LOOK_SECONDS = 0.5
# Also how soon a revoked token is noticed.
HEARTBEAT_SECONDS = 2.0
PARTS = 4
HEARTBEAT = b": still here\n\n"


class OutputEvent(msgspec.Struct, frozen=True):
    attempt: int
    text: str


class ProgressEvent(msgspec.Struct, frozen=True):
    attempt: int
    share: float | None = None
    message: str | None = None


class EndEvent(msgspec.Struct, frozen=True):
    state: str
    status: str
    reason: str | None
    attempt: int


EVENTS = {"output": OutputEvent, "progress": ProgressEvent, "end": EndEvent}


class LogStream:
    def __init__(
        self,
        run_id: UUID,
        *,
        store: Store,
        clock: Clock,
        stopping: asyncio.Event,
        is_gone: Callable[[], Awaitable[bool]],
        position: tuple[int, int] | None = None,
        only_attempt: AttemptItem | None = None,
    ) -> None:
        self._run_id = run_id
        self._store = store
        self._clock = clock
        self._stopping = stopping
        self._is_gone = is_gone
        self._token, self._position = position or (only_attempt.token if only_attempt else 0, 0)
        self._attempt = only_attempt.attempt if only_attempt else 0
        self._is_one_attempt = only_attempt is not None
        self._progress: object = None

    async def events(self) -> AsyncGenerator[bytes]:
        silent_since = self._clock.monotonic()
        while not self._stopping.is_set() and not await self._is_gone():
            # Read the state first, and then the output: output that a run wrote before its end is stored by the time
            # that it has ended.
            run = await self._store.logs.follow_run(self._run_id)
            if run is None:
                return
            is_over = run.state is not RunState.RUNNING or run.token != self._token
            async for event in self._news(run, is_over=is_over):
                yield event
                silent_since = self._clock.monotonic()
            if is_over:
                if not self._is_one_attempt and await self._turn_to_next():
                    continue
                if self._is_one_attempt or run.state in TERMINAL:
                    yield _event("end", _ending(run))
                    return
            if self._clock.monotonic() - silent_since >= HEARTBEAT_SECONDS:
                yield HEARTBEAT
                silent_since = self._clock.monotonic()
            await self._clock.wait(self._stopping, LOOK_SECONDS)

    async def _news(self, run: Followed, *, is_over: bool) -> AsyncIterator[bytes]:
        if self._token:
            self._attempt = self._attempt or await self._attempt_number()
            async for text in self._kept() if is_over else self._written():
                yield _event("output", OutputEvent(self._attempt, text), f"{self._token}:{self._position}")
        if (
            not is_over
            and run.progress is not None
            and run.progress != self._progress
            and run.progress["attempt"] == run.attempt
        ):
            self._progress = run.progress
            yield _event("progress", run.progress)

    async def _written(self) -> AsyncIterator[str]:
        """Only complete characters: the rest of the last one may still arrive."""
        while chunk := await self._store.logs.read_logs(self._run_id, self._token, self._position, parts=PARTS):
            length = complete_length(chunk)
            if not length:
                return
            self._position += length
            yield chunk[:length].decode("utf-8", "replace")

    async def _kept(self) -> AsyncIterator[str]:
        kept = await self._store.logs.get_output(self._run_id, self._token)
        if kept is None:
            # The worker died or released the run. Show what it wrote before.
            async for text in self._written():
                yield text
            return
        for reached, piece in pieces_from(kept, self._position):
            begin = 0
            while begin < len(piece):
                slice_ = piece[begin : begin + PART_MAX_BYTES]
                length = complete_length(slice_) or len(slice_) if begin + PART_MAX_BYTES < len(piece) else len(slice_)
                begin += length
                self._position = reached - len(piece) + begin
                yield slice_[:length].decode("utf-8", "replace")

    async def _turn_to_next(self) -> bool:
        """Moves on to the next attempt; at the beginning, to the latest one."""
        attempts = [one for one in await self._store.run_lists.list_attempts(self._run_id) if one.token > self._token]
        if not attempts:
            return False
        chosen = attempts[0] if self._token else attempts[-1]
        self._token, self._position, self._attempt = chosen.token, 0, chosen.attempt
        return True

    async def _attempt_number(self) -> int:
        attempts = await self._store.run_lists.list_attempts(self._run_id)
        return next((one.attempt for one in attempts if one.token == self._token), 0)


def _ending(run: Followed) -> EndEvent:
    return EndEvent(run.state, status_of(run.state, run.attempt), run.reason, run.attempt)


def _event(kind: str, data: object, event_id: str = "") -> bytes:
    head = f"event: {kind}\nid: {event_id}\n" if event_id else f"event: {kind}\n"
    return head.encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"
