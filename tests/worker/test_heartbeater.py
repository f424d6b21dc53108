from __future__ import annotations

import asyncio

from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.store.store import open_store
from foliot.store.workers import Beat
from foliot.worker.attempts import Attempts
from foliot.worker.heartbeater import Heartbeater
from foliot.worker.holdings import Holdings
from foliot.worker.identity import WorkerIdentity
from tests.support.fake_clock import FakeClock
from tests.support.waiting import PATIENCE_SECONDS


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


async def test_a_request_that_can_not_be_given_up_does_not_keep_the_lease(
    fake_clock: FakeClock, events: EventBus
) -> None:
    """A cancelled statement may wait for PostgreSQL before it ends."""
    config, holdings, identity = Config(), Holdings(), WorkerIdentity(new_id())
    may_end, is_lost = asyncio.Event(), asyncio.Event()

    class Stubborn:
        async def beat(self, *_: object) -> Beat:
            try:
                await may_end.wait()
            finally:
                await may_end.wait()
            raise AssertionError("never")

    async def lose() -> None:
        is_lost.set()

    heartbeater = Heartbeater(
        workers=Stubborn(),
        identity=identity,
        attempts=Attempts(
            tasks={}, slots={}, output_max_bytes=0, holdings=holdings, on_outcome=lambda _outcome, _claim: None
        ),
        holdings=holdings,
        on_beat=lambda _: None,
        config=config,
        on_lease_lost=lose,
        clock=fake_clock,
        events=events,
    )
    # Its trust is almost over.
    heartbeater.begin_lease(fake_clock.monotonic() - config.worker_ttl_seconds + 2.05)
    turn = asyncio.create_task(heartbeater.run_once())
    await asyncio.sleep(0)
    await fake_clock.advance(1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await is_lost.wait()
        await turn
    may_end.set()
    await heartbeater.on_stop()
