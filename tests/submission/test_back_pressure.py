"""A full queue refuses jobs, and its depth is read at most once a second."""

from __future__ import annotations

import pytest

from foliot.errors import QueueFull
from foliot.model.namespace import Namespace
from foliot.store.queue_limits import QueueLimits
from foliot.store.store import Store
from foliot.submission.back_pressure import FRESH_SECONDS, BackPressure
from tests.support.fake_clock import FakeClock
from tests.support.runs import claim, insert

HOME = Namespace()


async def test_a_queue_is_full_at_its_depth_and_has_room_again(store: Store, fake_clock: FakeClock) -> None:
    pressure = BackPressure(store=store, clock=fake_clock)
    mail = HOME.qualified("mail")
    await store.queues.put_queue(mail, QueueLimits(max_depth=1))
    await pressure.check(HOME, "mail")
    await insert(store, queue=mail)
    await fake_clock.advance(FRESH_SECONDS + 0.1)
    with pytest.raises(QueueFull, match="the queue 'mail' is full") as refused:
        await pressure.check(HOME, "mail")
    assert refused.value.retry_after == 1
    await pressure.check(HOME, "other")
    await pressure.check(Namespace("team"), "mail")
    assert len(await claim(store, queue=mail)) == 1
    with pytest.raises(QueueFull):
        await pressure.check(HOME, "mail")
    await fake_clock.advance(FRESH_SECONDS + 0.1)
    await pressure.check(HOME, "mail")
