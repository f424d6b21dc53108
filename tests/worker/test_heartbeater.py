from __future__ import annotations

from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.store.store import open_store
from foliot.worker.attempts import Attempts
from foliot.worker.heartbeater import Heartbeater
from foliot.worker.holdings import Holdings
from foliot.worker.identity import WorkerIdentity
from tests.support.fake_clock import FakeClock


async def test_a_slowly_acquired_lease_is_renewed_at_once(
    database_url: str, fake_clock: FakeClock, events: EventBus
) -> None:
    """The worker trusts its lease from before the request. If PostgreSQL was unavailable meanwhile, little of it is
    left."""
    config = Config()
    registered, holdings, identity = [], Holdings(), WorkerIdentity(new_id())
    async with open_store(database_url, config=config, clock=fake_clock, events=events, part="test") as store:

        async def begin_anew() -> None:
            asked_at = fake_clock.monotonic()
            await fake_clock.advance(config.worker_ttl_seconds - 3)
            registered.append(new_id())
            await store.workers.register_worker(registered[-1], "worker", {}, [])
            identity.register(registered[-1])
            heartbeater.begin_lease(asked_at)

        heartbeater = Heartbeater(
            workers=store.workers,
            identity=identity,
            attempts=Attempts(
                tasks={}, slots={}, output_max_bytes=0, holdings=holdings, on_outcome=lambda _outcome, _claim: None
            ),
            holdings=holdings,
            on_beat=lambda _: None,
            config=config,
            on_lease_lost=begin_anew,
            clock=fake_clock,
            events=events,
        )
        # No worker is registered under the first id.
        heartbeater.begin_lease(fake_clock.monotonic())
        for _ in range(5):
            await fake_clock.advance(await heartbeater.run_once())
        assert len(registered) == 1, "it gave up a lease that was in force"
