"""Turns messages of a source into jobs, each message into exactly one.

The key of a message, its place in the topic and its job are stored in one transaction, and only then is the message
acknowledged. A message that is delivered again, because the process died in between or the broker repeated it, finds
its key. A message that can't become a job is stored as a dead message, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from foliot.brokers.events import MessagesTaken
from foliot.errors import Busy, Invalid, StoreUnavailable
from foliot.model.run import NewRun, SubmittedRun
from foliot.model.source import IncomingMessage, StoredSource, Unusable, job_of
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.submission.admission import Admission
from foliot.submission.announcement import announce_runs

KEEP_SECONDS = 7 * 86_400.0
"""How long a message that is delivered again is known."""
SEPARATOR = "\x1d"
"""Not in the keys of requests, nor in those of messages."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """Messages of one batch, by what becomes of them."""

    jobs: Mapping[str, NewRun]
    """By key."""
    dead: Sequence[tuple[str, str, IncomingMessage]]
    """Each with its id and the reason."""
    ignored: int


@dataclass(frozen=True, slots=True)
class Taken:
    submitted: Sequence[SubmittedRun]
    repeated: int
    ignored: int
    dead: Sequence[str]
    """The reason for each message that can't become a job."""


class Intake:
    def __init__(self, *, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission

    async def take(
        self, stored: StoredSource, messages: Sequence[IncomingMessage], places: Mapping[str, int] | None = None
    ) -> Taken:
        """Returns once all jobs are stored, and the places behind them. Raises `Busy` if a queue is full, and
        `StoreUnavailable`. Then none of the messages may be acknowledged."""
        found = await self._sorted(stored, messages)
        try:
            return await self._store_all(stored, found, places)
        except (Busy, StoreUnavailable):
            raise
        except Exception as error:
            if len(messages) > 1:
                # One of them can't be stored. The others must not wait for it.
                taken = [await self.take(stored, [message]) for message in messages]
                if places:
                    await self._store_all(stored, Sorted({}, [], 0), places)
                return Taken(
                    [run for one in taken for run in one.submitted],
                    sum(one.repeated for one in taken),
                    sum(one.ignored for one in taken),
                    [reason for one in taken for reason in one.dead],
                )
            dead = [(_id_of(message), f"the job can't be stored: {error}", message) for message in messages]
            return await self._store_all(stored, Sorted({}, dead, 0), places)

    async def _sorted(self, stored: StoredSource, messages: Sequence[IncomingMessage]) -> Sorted:
        jobs: dict[str, NewRun] = {}
        dead: list[tuple[str, str, IncomingMessage]] = []
        ignored = 0
        for message in messages:
            try:
                found = job_of(stored.source, message)
                if found is None:
                    ignored += 1
                    continue
                key, job = found
                accepted = await self._admission.accept(stored.namespace, job)
            except (Unusable, Invalid) as error:
                dead.append((_id_of(message), str(error), message))
                continue
            if isinstance(accepted, NewRun):
                jobs.setdefault(key, accepted)
        return Sorted(jobs, dead, ignored)

    async def _store_all(self, stored: StoredSource, found: Sorted, places: Mapping[str, int] | None) -> Taken:
        prefix = f"{stored.name}{SEPARATOR}"

        async def work(within: Transaction) -> tuple[list[SubmittedRun], int]:
            submitted: list[SubmittedRun] = []
            if found.jobs:
                keys = [prefix + key for key in found.jobs]
                new = await self._store.idempotency.take_keys(within, keys, "source", keep_seconds=KEEP_SECONDS)
                if runs := [run for key, run in found.jobs.items() if prefix + key in new]:
                    submitted = await self._store.submissions.submit_within(within, runs)
            buried = await self._store.sources.bury_messages(within, stored.name, found.dead) if found.dead else 0
            if places:
                await self._store.sources.store_places(within, stored.name, places)
            return submitted, buried

        submitted, buried = await self._store.database.in_transaction("take_messages", work)
        announce_runs(self._store, [(run.queue, run.state) for run in submitted], len(submitted))
        repeated = len(found.jobs) - len(submitted)
        self._store.events.emit(MessagesTaken(stored.name, len(submitted), repeated, found.ignored, buried))
        return Taken(submitted, repeated, found.ignored, [reason for _, reason, _ in found.dead])


def _id_of(message: IncomingMessage) -> str:
    """A message without an id is known by its content."""
    return message.id or sha256(message.body).hexdigest()
