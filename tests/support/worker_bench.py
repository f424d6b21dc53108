"""The parts of a worker on the real store, each run by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.outcome import Attempted, Ending
from foliot.model.run import NewRun, RunOptions
from foliot.sdk.context import Context
from foliot.store.store import Store
from foliot.worker.attempts import Attempts
from foliot.worker.claimer import Claimer
from foliot.worker.completer import Completer
from foliot.worker.declined_runs import DeclinedRuns
from foliot.worker.holdings import Holdings
from foliot.worker.identity import WorkerIdentity
from foliot.worker.known_tasks import KnownTask

AT_MOST_ONCE = RunOptions(retries=0, timeout_seconds=60, guarantee="at_most_once")
NUMBER = 20


class Bench:
    """A claimer, attempts and a completer on the real store, each run by hand."""

    def __init__(self, store: Store, clock: Clock, events: EventBus) -> None:
        self.store = store
        self.holdings, self.identity = Holdings(), WorkerIdentity(new_id())
        self.started: Counter[tuple[UUID, int]] = Counter()
        self.completer = Completer(
            store=store, identity=self.identity, holdings=self.holdings, clock=clock, events=events
        )
        self.attempts = Attempts(
            tasks={"task": KnownTask(self._run, AT_MOST_ONCE)},
            slots={"default": NUMBER},
            output_max_bytes=1000,
            holdings=self.holdings,
            on_outcome=self.completer.add,
        )
        self.claimer = Claimer(
            store=store,
            identity=self.identity,
            attempts=self.attempts,
            holdings=self.holdings,
            declined=DeclinedRuns(clock),
            completer=self.completer,
            tasks=["task"],
            config=Config(),
            clock=clock,
            events=events,
        )

    async def register(self) -> None:
        await self.store.workers.register_worker(self.identity.id, "worker", {"default": NUMBER}, ["task"])

    async def _run(self, payload: dict[str, Any], context: Context) -> Attempted:
        self.started[context.run_id, context.token] += 1
        return Attempted(Ending.SUCCEEDED)

    async def insert(self, number: int) -> None:
        await self.store.run_inserts.insert_runs(
            [NewRun(id=new_id(), task="task", queue="default") for _ in range(number)]
        )

    async def turn(self) -> None:
        await self.claimer.run_once()
        await self.attempts.ended()

    async def flush(self) -> None:
        while self.completer.backlog:
            await self.completer.run_once()

    async def running(self) -> int:
        return len(await self.store.claims.recover_claims(self.identity.id, []))


def lose_next_answer(monkeypatch: pytest.MonkeyPatch, runs: Any, name: str) -> None:
    """Executes the next call and loses its answer."""
    real = getattr(runs, name)

    async def losing(*arguments: Any) -> None:
        monkeypatch.setattr(runs, name, real)
        await real(*arguments)
        raise StoreUnavailable("the answer got lost", is_doubtful=True)

    monkeypatch.setattr(runs, name, losing)
