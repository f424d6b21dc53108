"""Claims ready runs, never more than there are free slots, and starts them.

The claimer claims again at once while a claim returns most of the runs it requested (runs that another worker is
claiming are skipped, so a claim may come back a little short), when a hint arrives, and when a slot frees while the
queue is known to hold more. Otherwise it polls, with jitter. A claimer that receives hints polls rarely, since
`scheduler/announcer.py` polls for all of them. When many workers receive the same hint, most come too late: a claimer
that finds nothing delays its next claim after a hint, longer each time, until it finds a run again.

With a broker, the claimer claims the runs that `worker/inbox.py` received, by their ids. It still polls once in a
while, and keeps polling while it finds runs that the broker did not announce. While the broker does not answer, it
polls and follows the hints of PostgreSQL.

A claim whose answer was lost leaves runs that this worker owns without knowing. For as long as such a statement
usually takes to end on the server, each turn first reads the runs that the worker owns but does not hold. A commit can
take longer than any limit, so every heartbeat checks for such runs too. The runs of each answer start as it arrives, so
that a later statement that fails cannot strand them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from random import uniform
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
from foliot.worker.attempts import Attempts
from foliot.worker.backend import WorkerStore
from foliot.worker.completer import Completer
from foliot.worker.declined_runs import DeclinedRuns
from foliot.worker.holdings import Holdings
from foliot.worker.identity import WorkerIdentity
from foliot.worker.inbox import Inbox

BATCH = 500
BACKLOG_MAX = 5000
BACKLOG_SECONDS = 0.02
FIRST_HINT_DELAY_SECONDS = 0.001
LAST_HINT_DELAY_SECONDS = 0.05


class Claimer(Service):
    def __init__(
        self,
        *,
        store: WorkerStore,
        identity: WorkerIdentity,
        attempts: Attempts,
        holdings: Holdings,
        declined: DeclinedRuns,
        completer: Completer,
        tasks: Sequence[str],
        is_listening: Callable[[], bool] = lambda: False,
        hearing_polls: float = 5,
        config: Config,
        clock: Clock,
        events: EventBus,
    ) -> None:
        """`hearing_polls`: a claimer that receives hints waits this many times longer between polls."""
        super().__init__(clock=clock, events=events)
        self._store = store
        self._hearing_polls = hearing_polls
        self._identity = identity
        self._attempts = attempts
        self._holdings = holdings
        self._declined = declined
        self._completer = completer
        self._tasks = list(tasks)
        self._is_listening = is_listening
        self._config = config
        self._recover_until = 0.0
        self._owns_unheld = False
        self.limited_queues: frozenset[str] = frozenset()
        """This worker's queues that have a limit, according to the last heartbeat."""
        self._more_is_ready = False
        self._is_hinted = False
        self.inbox: Inbox | None = None
        """The hints of a broker. None: PostgreSQL sends them."""
        self._poll_at = 0.0
        self._announced_at = 0.0
        """When a run that the broker announced was last claimed."""
        self._hint_delay_seconds = 0.0
        """The longest delay before this worker follows a hint that other workers receive too."""

    def on_hint(self) -> None:
        """There may be ready runs."""
        if self._follows_broker():
            # The scheduler gets the same hint, and announces the runs.
            return
        if not self._hint_delay_seconds:
            self.wake()
        elif not self._is_hinted:
            asyncio.get_running_loop().call_later(uniform(0, self._hint_delay_seconds), self.wake)  # noqa: S311
        self._is_hinted = True

    def on_slot_freed(self) -> None:
        if self.inbox is not None:
            self.inbox.on_slot_freed()
        if self._more_is_ready:
            # One wake is enough: the next turn finds out again whether there is more.
            self._more_is_ready = False
            self.wake()

    def poll_soon(self) -> None:
        """Runs are ready that no broker announces."""
        self._poll_at = 0.0
        self.wake()

    def recover_lost_claims(self) -> None:
        """At its last heartbeat, the worker owned a run that it did not hold. Unless its claim was answered since, the
        answer was lost."""
        self._owns_unheld = True
        self.wake()

    async def run_once(self) -> float:
        worker_id, slots = self._identity.claiming_id, self._slots()
        is_hinted, self._is_hinted = self._is_hinted, False
        if worker_id is None or not slots:
            self._more_is_ready = True
            return self._config.poll_seconds
        if self._completer.backlog > BACKLOG_MAX:
            return BACKLOG_SECONDS
        claims = await self._recover(worker_id, slots) if self._may_have_lost_claims() else []
        # Recovered runs were claimed before: they say nothing about how many are ready.
        is_recovered = bool(claims)
        if not is_recovered:
            claims = await (self._claim_announced if self._follows_broker() else self._claim)(worker_id, slots)
        taken = Counter(claim.queue for claim in claims)
        self._more_is_ready = is_recovered or any(2 * number >= slots[queue] for queue, number in taken.items())
        if not self._more_is_ready:
            # A single run starts before its claim is reported. When there are more, the next claim is sent first.
            await self.clock.sleep(0)
        if claims:
            self.events.emit(RunsClaimed(len(claims), histogram_of(claim.waited_seconds for claim in claims)))
        self._hint_delay_seconds = self._next_hint_delay(is_hinted, bool(claims))
        if self._more_is_ready:
            return 0
        if self._follows_broker():
            return max(0.001, self._poll_at - self.clock.monotonic())
        return self._poll_seconds() * uniform(0.75, 1.0)  # noqa: S311

    def _poll_seconds(self) -> float:
        is_hearing = self._follows_broker() or self._is_listening()
        return self._config.poll_seconds * (self._hearing_polls if is_hearing else 1)

    def _follows_broker(self) -> bool:
        return self.inbox is not None and self.inbox.is_reachable

    def _next_hint_delay(self, is_hinted: bool, has_found: bool) -> float:
        if has_found:
            return 0.0
        if not is_hinted:
            return self._hint_delay_seconds
        return min(max(2 * self._hint_delay_seconds, FIRST_HINT_DELAY_SECONDS), LAST_HINT_DELAY_SECONDS)

    def _slots(self) -> dict[str, int]:
        return {queue: min(free, BATCH) for queue, free in self._attempts.free_slots().items()}

    def _may_have_lost_claims(self) -> bool:
        return self._owns_unheld or self.clock.monotonic() < self._recover_until

    async def _claim(self, worker_id: UUID, slots: dict[str, int]) -> list[Claim]:
        store = self._store.claims
        claiming = store.claim_runs(worker_id, slots, self._tasks, self._declined.ids())
        claims = self._start(worker_id, await self._answer(claiming))
        return claims + await self._claim_limited(worker_id, slots, self.limited_queues & slots.keys())

    async def _claim_limited(self, worker_id: UUID, slots: dict[str, int], queues: Iterable[str]) -> list[Claim]:
        store, claims = self._store.claims, list[Claim]()
        for queue in queues:
            claiming = store.claim_limited_runs(worker_id, queue, slots[queue], self._tasks, self._declined.ids())
            claims += self._start(worker_id, await self._answer(claiming))
        return claims

    async def _claim_announced(self, worker_id: UUID, slots: dict[str, int]) -> list[Claim]:
        """Claims the runs that a broker announced. Polls if it is time to, because a broker can lose anything."""
        now = self.clock.monotonic()
        announced = self.inbox.take(slots) if self.inbox else {}
        if announced:
            claims = await self._claim_by_id(worker_id, slots, announced)
            self._announced_at = now if claims else self._announced_at
            return claims
        if now < self._poll_at:
            return []
        claims = await self._claim(worker_id, slots)
        is_silent = now - self._announced_at > self._config.poll_seconds
        # Runs that the broker did not announce. Perhaps no scheduler node announces any.
        self._poll_at = now if claims and is_silent else now + self._poll_seconds() * uniform(0.75, 1.0)  # noqa: S311
        return claims

    async def _claim_by_id(
        self, worker_id: UUID, slots: dict[str, int], announced: dict[str, list[UUID]]
    ) -> list[Claim]:
        store, claims = self._store.claims, list[Claim]()
        # Runs of a queue with a limit are claimed in its order, and counted.
        limited = self.limited_queues & announced.keys()
        if ids := [run_id for queue, found in announced.items() if queue not in limited for run_id in found]:
            claiming = store.claim_runs_by_id(worker_id, ids, slots, self._tasks, self._declined.ids())
            claims += self._start(worker_id, await self._answer(claiming))
        return claims + await self._claim_limited(worker_id, slots, limited)

    async def _recover(self, worker_id: UUID, slots: dict[str, int]) -> list[Claim]:
        """Starts the runs of claims whose answer was lost, while slots last. The others wait for the next turn."""
        self._owns_unheld = False
        free, claims = dict(slots), []
        for claim in await self._store.claims.recover_claims(worker_id, self._holdings.keys()):
            if free.get(claim.queue, 0) > 0:
                free[claim.queue] -= 1
                claims.append(claim)
            else:
                self._owns_unheld = True
        return self._start(worker_id, claims)

    async def give_back_unstarted(self) -> None:
        """When the worker stops: makes the runs of claims whose answer was lost ready again, without starting them."""
        worker_id = self._identity.claiming_id
        if worker_id is not None and self._may_have_lost_claims():
            for claim in await self._store.claims.recover_claims(worker_id, self._holdings.keys()):
                self._holdings.take([claim])
                self._completer.add(Outcome(claim.run_id, claim.token, RunState.READY), claim)

    def _start(self, worker_id: UUID, claims: list[Claim]) -> list[Claim]:
        if self._identity.claiming_id != worker_id:
            # The lease was lost during the claim. The reaper gives these runs back.
            return []
        self._attempts.start_all(claims)
        return claims

    async def _answer(self, claiming: Awaitable[list[Claim]]) -> list[Claim]:
        try:
            return await claiming
        except BaseException as error:
            if not isinstance(error, StoreUnavailable) or error.is_doubtful:
                self._recover_until = self.clock.monotonic() + 2 * self._config.database_statement_seconds
            raise
