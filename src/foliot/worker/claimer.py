"""Takes ready runs, never more than there are free slots, and starts them.

It asks again at once while a queue has most of what it asked for (what another worker is taking is stepped over, and
may leave a claim a little short), when a hint says that there is work, when a slot frees while the queue is known to
hold more, and otherwise after a jittered poll: hints only shorten that wait. One that hears hints polls seldom, since
`scheduler/announcer.py` looks for all of them. Where many workers hear the same hint, most come too late: one that
found nothing lets the others go first, for a moment that grows each time, until it finds something again.

A claim whose answer got lost leaves runs that are ours without our knowing. For as long as such a statement usually
takes to end on the server, each turn first asks for the runs that we own but do not hold. A commit can take longer than
any limit, so every beat asks the same and casts doubt again. The runs of each answer start as it arrives: a later
statement that fails cannot leave them behind.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.events import EventBus, RunsClaimed
from foliot.model.histogram import histogram_of
from foliot.model.outcome import Outcome
from foliot.model.run import Claim
from foliot.model.states import RunState
from foliot.service import Service
from foliot.store.store import Store
from foliot.worker.attempts import Attempts
from foliot.worker.completer import Completer
from foliot.worker.holdings import Holdings

BATCH = 500
BACKLOG_MAX = 5000
BACKLOG_SECONDS = 0.02
HEARING_POLLS = 5
"""How many times longer the wait between two polls is for who hears hints."""
FIRST_HINT_DELAY_SECONDS = 0.001
LAST_HINT_DELAY_SECONDS = 0.05


class Claimer(Service):
    def __init__(
        self,
        *,
        store: Store,
        attempts: Attempts,
        holdings: Holdings,
        completer: Completer,
        tasks: Sequence[str],
        config: Config,
        clock: Clock,
        events: EventBus,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self.worker_id: UUID | None = None
        """None while this worker has no lease: then nothing is claimed."""
        self._store = store
        self._attempts = attempts
        self._holdings = holdings
        self._completer = completer
        self._tasks = list(tasks)
        self._config = config
        self._doubt_until = 0.0
        self._owns_unheld = False
        self.limited_queues: frozenset[str] = frozenset()
        """Those of ours that have a limit, as the last beat told."""
        self.is_listening: Callable[[], bool] = lambda: False
        """Whether hints can be heard right now."""
        self._more_is_ready = False
        self._is_hinted = False
        self._hint_delay_seconds = 0.0
        """How long others go first, at the most, when all have heard the same hint."""

    def hinted(self) -> None:
        """There may be work."""
        if not self._hint_delay_seconds:
            self.wake()
        elif not self._is_hinted:
            asyncio.get_running_loop().call_later(random.uniform(0, self._hint_delay_seconds), self.wake)  # noqa: S311
        self._is_hinted = True

    def slot_freed(self) -> None:
        if self._more_is_ready:
            self.wake()

    def doubt(self) -> None:
        """The worker owns a run that it did not hold when it beat: unless its claim has been answered since, the answer
        got lost."""
        self._owns_unheld = True
        self.wake()

    async def run_once(self) -> float:
        worker_id, slots = self.worker_id, self._slots()
        is_hinted, self._is_hinted = self._is_hinted, False
        if worker_id is None or not slots:
            self._more_is_ready = True
            return self._config.poll_seconds
        if self._completer.backlog > BACKLOG_MAX:
            return BACKLOG_SECONDS
        claims = await self._recover(worker_id, slots) if self._is_in_doubt() else []
        # Recovered runs were claimed before: they do not tell how much is ready.
        is_recovered = bool(claims)
        if not is_recovered:
            claims = await self._claim(worker_id, slots)
        taken = Counter(claim.queue for claim in claims)
        self._more_is_ready = is_recovered or any(2 * number >= slots[queue] for queue, number in taken.items())
        if not self._more_is_ready:
            # A job that came alone starts before anything is told of it. Where there are more, the next claim is to be
            # on its way first.
            await self.clock.sleep(0)
        if claims:
            self.events.emit(RunsClaimed(len(claims), histogram_of(claim.waited_seconds for claim in claims)))
        self._hint_delay_seconds = self._next_hint_delay(is_hinted, bool(claims))
        return 0 if self._more_is_ready else self._poll_seconds() * random.uniform(0.75, 1.0)  # noqa: S311

    def _poll_seconds(self) -> float:
        return self._config.poll_seconds * (HEARING_POLLS if self.is_listening() else 1)

    def _next_hint_delay(self, is_hinted: bool, has_found: bool) -> float:
        if has_found:
            return 0.0
        if not is_hinted:
            return self._hint_delay_seconds
        return min(max(2 * self._hint_delay_seconds, FIRST_HINT_DELAY_SECONDS), LAST_HINT_DELAY_SECONDS)

    def _slots(self) -> dict[str, int]:
        return {queue: min(free, BATCH) for queue, free in self._attempts.free_slots().items()}

    def _is_in_doubt(self) -> bool:
        return self._owns_unheld or self.clock.monotonic() < self._doubt_until

    async def _claim(self, worker_id: UUID, slots: dict[str, int]) -> list[Claim]:
        runs = self._store.runs
        claims = self._start(worker_id, await self._answer(runs.claim_runs(worker_id, slots, self._tasks)))
        for queue in self.limited_queues & slots.keys():
            claims += self._start(
                worker_id, await self._answer(runs.claim_limited_runs(worker_id, queue, slots[queue], self._tasks))
            )
        return claims

    async def _recover(self, worker_id: UUID, slots: dict[str, int]) -> list[Claim]:
        """Starts the runs of claims whose answer got lost, as far as there are slots. The others wait for the next
        turn."""
        self._owns_unheld = False
        free, claims = dict(slots), []
        for claim in await self._store.runs.recover_claims(worker_id, self._holdings.keys()):
            if free.get(claim.queue, 0) > 0:
                free[claim.queue] -= 1
                claims.append(claim)
            else:
                self._owns_unheld = True
        return self._start(worker_id, claims)

    async def give_back_unstarted(self) -> None:
        """For a worker that stops: the runs of claims whose answer got lost become ready again without having been
        started."""
        if self.worker_id is not None and self._is_in_doubt():
            for claim in await self._store.runs.recover_claims(self.worker_id, self._holdings.keys()):
                self._holdings.take([claim])
                self._completer.add(Outcome(claim.run_id, claim.token, RunState.READY), claim)

    def _start(self, worker_id: UUID, claims: list[Claim]) -> list[Claim]:
        if self.worker_id != worker_id:
            # The lease was lost while we asked. The reaper gives these runs back.
            return []
        self._attempts.start_all(claims)
        return claims

    async def _answer(self, claiming: Awaitable[list[Claim]]) -> list[Claim]:
        try:
            return await claiming
        except BaseException as error:
            if not isinstance(error, StoreUnavailable) or error.is_doubtful:
                self._doubt_until = self.clock.monotonic() + 2 * self._config.database_statement_seconds
            raise
