"""Messages reach their channels over real HTTP: in order, once, and however the far end behaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import httpx
import msgspec
import pytest

from foliot.alerts.channels.base import Channel, ChannelError
from foliot.alerts.deliverer import CLAIM_SECONDS, GIVE_UP_SECONDS, PER_MINUTE, AlertDeliverer
from foliot.alerts.message import AlertMessage
from foliot.events import EventBus
from foliot.store.alerts import WAITING_MAX
from foliot.store.store import Store
from tests.support.alerts import Watch, put_rule
from tests.support.fake_clock import FakeClock
from tests.support.http import Answering, answer, answering


class Hook:
    """A channel that posts messages as they are."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def send(self, message: AlertMessage, delivery_id: str) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            body = msgspec.json.encode({"delivery": delivery_id, "message": message})
            found = await client.post(self._url, content=body, timeout=300)
        if found.status_code == 429:
            raise ChannelError("429", permanent=False, retry_after=float(found.headers["retry-after"]))
        if not found.is_success:
            raise ChannelError(str(found.status_code), permanent=found.status_code == 410)


class Hooks:
    def __init__(self, far_end: Answering) -> None:
        self._far_end = far_end

    async def open(self, name: str) -> Channel:
        return Hook(f"{self._far_end.url}/{name}")


@pytest.fixture
async def far_end() -> AsyncIterator[Answering]:
    async with answering() as far_end:
        far_end.answers["/ops"] = answer()
        yield far_end


class Post:
    """An evaluator and a deliverer, with alerts that a test opens and resolves by switching a rule."""

    def __init__(self, watch: Watch, deliverer: AlertDeliverer, far_end: Answering) -> None:
        self.watch = watch
        self.deliverer = deliverer
        self.far_end = far_end

    async def open(self, *channels: str) -> None:
        await put_rule(self.watch.store, "workers", "few_workers", channels=channels, repeat="1h")
        await self.watch.look()

    async def resolve(self, *channels: str) -> None:
        await put_rule(self.watch.store, "workers", "few_workers", channels=channels, enabled=False)
        await self.watch.look()

    async def send(self) -> None:
        while await self.deliverer.run_once() == 0:
            pass

    def got(self, path: str = "/ops") -> list[dict[str, Any]]:
        return [json.loads(asked.body) for asked in self.far_end.asked if asked.path == path]

    async def states(self) -> list[tuple[str, str | None]]:
        (alert,) = await self.watch.alerts("open", "resolved")
        found = await self.watch.store.alert_deliveries.list_deliveries(alert.id)
        return [(one.state, one.error) for one in found[::-1]]


@pytest.fixture
def post(watch: Watch, store: Store, fake_clock: FakeClock, events: EventBus, far_end: Answering) -> Post:
    deliverer = AlertDeliverer(store=store, channels=Hooks(far_end), clock=fake_clock, events=events)
    return Post(watch, deliverer, far_end)


async def test_a_message_is_sent_once_and_its_resolution_too(post: Post) -> None:
    await post.open("ops")
    await post.send()
    await post.send()
    await post.resolve("ops")
    await post.send()
    opened, resolved = post.got()
    assert opened["message"]["event"] == "opened"
    assert resolved["message"]["event"] == "resolved"
    assert opened["message"]["alert_id"] == resolved["message"]["alert_id"]
    assert opened["delivery"] != resolved["delivery"]
    assert datetime.fromisoformat(resolved["message"]["resolved_at"])
    assert await post.states() == [("sent", None), ("sent", None)]


async def test_a_far_end_that_fails_gets_the_same_message_again_and_in_order(post: Post, fake_clock: FakeClock) -> None:
    post.far_end.answers["/ops"] = answer("503 Busy")
    await post.open("ops")
    await post.send()
    await post.resolve("ops")
    await post.send()
    assert [one["message"]["event"] for one in post.got()] == ["opened", "opened"]
    post.far_end.answers["/ops"] = answer()
    await fake_clock.advance(60)
    await post.send()
    assert [one["message"]["event"] for one in post.got()] == ["opened", "opened", "opened", "resolved"]
    assert len({one["delivery"] for one in post.got()[:3]}) == 1


async def test_a_refusal_that_is_permanent_is_not_repeated(post: Post, fake_clock: FakeClock) -> None:
    post.far_end.answers["/ops"] = answer("410 Gone")
    await post.open("ops")
    for _ in range(3):
        await post.send()
        await fake_clock.advance(600)
    assert len(post.got()) == 1
    assert await post.states() == [("failed", "410")]


async def test_a_far_end_says_when_to_come_again(post: Post, fake_clock: FakeClock) -> None:
    post.far_end.answers["/ops"] = answer("429 Slow down", Retry_After="900")
    await post.open("ops")
    await post.send()
    await fake_clock.advance(890)
    await post.send()
    assert len(post.got()) == 1
    await fake_clock.advance(20)
    await post.send()
    assert len(post.got()) == 2


async def test_a_hung_channel_delays_no_other(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliot.alerts.deliverer.SEND_SECONDS", 0.3)
    post.far_end.answers["/hang"] = b""
    await post.open("hang", "ops")
    await post.send()
    assert len(post.got()) == 1
    assert len(post.got("/hang")) == 1
    assert sorted(await post.states()) == [("sent", None), ("waiting", "no answer within 0.3 seconds")]


async def test_a_message_whose_sender_died_is_sent_again_under_the_same_id(post: Post, fake_clock: FakeClock) -> None:
    await post.open("ops")
    (claimed,) = await post.watch.store.alert_deliveries.claim_deliveries(8, CLAIM_SECONDS, PER_MINUTE)
    await post.send()
    assert post.got() == []
    await fake_clock.advance(CLAIM_SECONDS + 1)
    await post.send()
    assert [one["delivery"] for one in post.got()] == [str(claimed.id)]
    # The report of the first one is outdated now.
    await post.watch.store.alert_deliveries.finish_delivery(claimed, "failed", "late")
    assert await post.states() == [("sent", None)]


async def test_a_channel_gets_a_limited_number_of_messages_in_a_minute(
    post: Post, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.alerts.deliverer.PER_MINUTE", 3)
    for number in range(5):
        await put_rule(post.watch.store, f"rule-{number}", "few_workers", channels=["ops"])
    await post.watch.look()
    await post.send()
    assert len(post.got()) == 3
    await fake_clock.advance(61)
    await post.send()
    assert len(post.got()) == 5


async def test_messages_beyond_the_bound_are_dropped_and_counted(
    post: Post, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert WAITING_MAX == 1000
    monkeypatch.setattr("foliot.store.alerts.WAITING_MAX", 1)
    await post.open("ops")
    await post.watch.look(3600)
    assert await sql.fetch("select state from foliot.alert_deliveries order by number") == [("waiting",), ("dropped",)]


async def test_a_message_is_given_up_after_a_day(post: Post, fake_clock: FakeClock) -> None:
    post.far_end.answers["/ops"] = answer("503 Busy")
    await post.open("ops")
    await fake_clock.advance(GIVE_UP_SECONDS + 1)
    await post.send()
    assert await post.states() == [("failed", "503")]


async def test_many_deliverers_send_each_message_once(post: Post) -> None:
    for number in range(20):
        await put_rule(post.watch.store, f"rule-{number}", "few_workers", channels=["ops", f"other-{number % 3}"])
    for number in range(3):
        post.far_end.answers[f"/other-{number}"] = answer()
    await post.watch.look()
    others = [
        AlertDeliverer(
            store=post.watch.store,
            channels=Hooks(post.far_end),
            clock=post.watch.clock,
            events=post.watch.store.events,
        )
        for _ in range(4)
    ]
    # Another one may hold the last messages while this one finds none.
    while any([await one.run_once() == 0 for one in others]):
        await asyncio.gather(*(one.run_once() for one in others))
    sent = [json.loads(asked.body)["delivery"] for asked in post.far_end.asked]
    assert len(sent) == len(set(sent)) == 40
