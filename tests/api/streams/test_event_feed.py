"""Event streams: every ending once and in order, whichever transaction commits late; resumable anywhere; and cheap,
because one poll serves all followers."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest

from foliot.api.requests.parameters import cursor_of
from foliot.api.streams import event_feed, event_stream
from foliot.api.streams.event_feed import EventFeed, Filter, Place
from foliot.api.streams.event_stream import EventFollower, all_events, counted, run_events
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.sdk.operations import Operations, RunEvent
from foliot.store.store import Store
from tests.support.processes import FoliotProcess
from tests.support.runs import WORKER, claim, finish, insert
from tests.support.waiting import PATIENCE_SECONDS, until


class Follower:
    def __init__(self, stream: AsyncGenerator[bytes]) -> None:
        self._stream = stream
        self._found: list[tuple[str, Any]] = []
        self.comments = 0

    async def next(self) -> tuple[str, Any]:
        """The id of the next event, and its data."""
        while not self._found:
            async with asyncio.timeout(PATIENCE_SECONDS):
                text = (await anext(self._stream)).decode()
            for block in text.split("\n\n")[:-1]:
                fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
                self.comments += block.startswith(":")
                if fields:
                    assert fields["event"] == "run"
                    self._found.append((fields.get("id", ""), json.loads(fields["data"])))
        return self._found.pop(0)

    async def states(self, number: int) -> list[tuple[str, str]]:
        return [(event["id"], event["status"]) for event in [(await self.next())[1] for _ in range(number)]]

    async def endings(self, number: int) -> list[tuple[str, str]]:
        """The ids of the events and of their runs."""
        found: list[tuple[str, str]] = []
        while len(found) < number:
            event_id, event = await self.next()
            if event_id:
                found.append((event_id, event["id"]))
        return found


async def never() -> bool:
    return False


def following(store: Store, feed: EventFeed, stopping: asyncio.Event | None = None) -> EventFollower:
    return EventFollower(
        store=store, feed=feed, clock=store.database.clock, stopping=stopping or asyncio.Event(), is_gone=never
    )


def feed_of(store: Store) -> EventFeed:
    return EventFeed(store=store, clock=store.database.clock)


@asynccontextmanager
async def follower(
    store: Store,
    feed: EventFeed | None = None,
    wanted: Filter | None = None,
    since: Place | None = None,
    *,
    is_followed: bool = True,
) -> AsyncIterator[Follower]:
    feed = feed or feed_of(store)
    stream = counted(
        feed, all_events(following(store, feed), wanted or Filter(Namespace()), since, is_followed=is_followed)
    )
    found = Follower(stream)
    try:
        # The follower is registered before its first event, and its events begin there.
        await anext(stream)
        if is_followed:
            await feed.join()
        yield found
    finally:
        await stream.aclose()


async def test_endings_are_streamed_in_order_with_all_fields(store: Store) -> None:
    async with follower(store) as found:
        done = await finish(store, name="x", options='{"tags": ["red"]}')
        failed = await finish(store, RunState.FAILED, error="no luck")
        first, second = [await found.next() for _ in range(2)]
    assert (first[1]["id"], first[1]["status"], first[1]["name"], first[1]["tags"]) == (
        str(done),
        "completed",
        "x",
        ["red"],
    )
    assert (second[1]["id"], second[1]["state"], second[1]["reason"]) == (str(failed), "failed", "error")
    assert second[1]["error"] == {"kind": "ValueError", "message": "no luck"}
    assert cursor_of(first[0]) < cursor_of(second[0])


async def test_an_ending_that_commits_late_keeps_its_place(store: Store, database_url: str) -> None:
    slow, quick = await insert(store), await insert(store)
    claims = {claimed.run_id: claimed for claimed in await claim(store, count=2)}
    async with follower(store) as found:
        session = await asyncpg.connect(database_url)
        async with session.transaction():
            assert await store.outcomes.finish_in(
                session, WORKER, Outcome(slow, claims[slow].token, RunState.SUCCEEDED)
            )
            await store.outcomes.finish_runs(WORKER, [Outcome(quick, claims[quick].token, RunState.SUCCEEDED)])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.5):
                    await anext(found._stream)
        await session.close()
    # An interrupted generator has ended; another one resumes from before.
    async with follower(store, since=(datetime.now(UTC) - timedelta(minutes=1), UUID(int=0))) as again:
        assert [run for _, run in await again.endings(2)] == [str(slow), str(quick)]


async def test_concurrent_endings_are_streamed_once_and_in_order(store: Store, database_url: str) -> None:
    async def ending(number: int) -> list[str]:
        chance = random.Random(number)
        session = await asyncpg.connect(database_url)
        runs = [await insert(store, queue=f"q{number}") for _ in range(20)]
        for claimed in await claim(store, queue=f"q{number}", count=20):
            async with session.transaction():
                assert await store.outcomes.finish_in(
                    session, WORKER, Outcome(claimed.run_id, claimed.token, RunState.SUCCEEDED)
                )
                await asyncio.sleep(chance.uniform(0, 0.2))
        await session.close()
        return [str(run) for run in runs]

    async with follower(store) as found:
        working = [asyncio.create_task(ending(number)) for number in range(4)]
        told = await found.endings(80)
        made = [run for task in working for run in await task]
    assert sorted(run for _, run in told) == sorted(made)
    places = [cursor_of(event_id) for event_id, _ in told]
    assert places == sorted(places)


async def test_a_stream_resumes_after_any_event_on_another_server(store: Store) -> None:
    async with follower(store) as found:
        runs = [str(await finish(store)) for _ in range(5)]
        told = await found.endings(5)
    assert [run for _, run in told] == runs
    for number in (0, 2, 4):
        async with follower(store, since=cursor_of(told[number][0])) as again:
            assert [run for _, run in await again.endings(len(runs) - number - 1)] == runs[number + 1 :]
            runs.append(str(await finish(store)))
            assert [run for _, run in await again.endings(1)] == runs[-1:]


async def test_starts_and_retries_are_seen_before_the_end(store: Store) -> None:
    async with follower(store) as found:
        run_id = await insert(store)
        (first,) = await claim(store)
        assert await found.states(1) == [(str(run_id), "running")]
        await store.outcomes.retry_runs(
            WORKER, [Outcome(run_id, first.token, RunState.SCHEDULED, "error", delay_seconds=60)]
        )
        assert await found.states(1) == [(str(run_id), "retrying")]
        await store.runs.move_runs([run_id], RunState.READY)
        (second,) = await claim(store)
        assert await found.states(1) == [(str(run_id), "running")]
        await store.outcomes.finish_runs(WORKER, [Outcome(run_id, second.token, RunState.SUCCEEDED)])
        assert await found.states(1) == [(str(run_id), "completed")]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(Namespace(), queue="other"), ["other"]),
        (Filter(Namespace(), task="simulate"), ["simulate"]),
        (Filter(Namespace(), states=frozenset({"failed"})), ["failed"]),
        (Filter(Namespace(), tag="red"), ["red"]),
        (Filter(Namespace(), job_id=UUID(int=7)), []),
    ],
    ids=["queue", "task", "state", "tag", "job"],
)
async def test_filters_apply_to_past_and_future_events(store: Store, wanted: Filter, expected: list[str]) -> None:
    feed = feed_of(store)
    began = (datetime.now(UTC) - timedelta(minutes=1), UUID(int=0))
    async with follower(store, feed) as everything, follower(store, feed, wanted) as some:
        told, fitting = asyncio.create_task(everything.endings(4)), asyncio.create_task(some.endings(len(expected)))
        made = {
            "other": await finish(store, queue="other"),
            "simulate": await finish(store, task="simulate"),
            "failed": await finish(store, RunState.FAILED, error="x"),
            "red": await finish(store, options='{"tags": ["red"]}'),
        }
        assert [run for _, run in await told] == [str(run) for run in made.values()]
        assert [run for _, run in await fitting] == [str(made[name]) for name in expected]
    past = b"".join(
        [event async for event in all_events(following(store, feed_of(store)), wanted, began, is_followed=False)]
    ).decode()
    assert [name for name, run in made.items() if f'"id":"{run}"' in past] == expected


async def test_the_feed_polls_once_for_all_followers_and_stops_without_any(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    really = store.run_events.list_endings

    async def counting(*arguments: Any) -> Any:
        nonlocal looks
        looks += 1
        return await really(*arguments)

    monkeypatch.setattr(store.run_events, "list_endings", counting)
    feed = feed_of(store)
    async with follower(store, feed) as one, follower(store, feed) as two, follower(store, feed) as three:
        run = str(await finish(store))
        told = [await asyncio.gather(*(each.endings(1) for each in (one, two, three)))]
        assert {run_id for events in told[0] for _, run_id in events} == {run}
    began = looks
    await feed.look()
    assert looks == began
    assert began < 20


async def test_a_slow_follower_is_disconnected_and_resumes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "KEPT", 60)
    feed = feed_of(store)
    async with follower(store, feed) as quick:
        stream = all_events(following(store, feed), Filter(Namespace()), None, is_followed=True)
        slow = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        runs = [str(await finish(store)) for _ in range(2)]
        assert [run for _, run in await quick.endings(2)] == runs
        first = await slow
        # One poll finds at most as many events as the feed keeps, so two polls exceed it.
        for _ in range(2):
            for _ in range(40):
                await finish(store)
            await quick.endings(40)
        assert [event async for event in stream] == []
        last_id = first.decode().split("id: ")[1].split("\n")[0]
        async with follower(store, feed, since=cursor_of(last_id)) as again:
            assert len(await again.endings(80)) == 80


async def test_a_stream_sends_heartbeats_and_ends_when_the_server_stops(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.1)
    stopping, feed = asyncio.Event(), feed_of(store)
    stream = all_events(following(store, feed, stopping), Filter(Namespace()), None, is_followed=True)
    assert await anext(stream) == event_stream.HEARTBEAT
    stopping.set()
    assert [event async for event in stream] == []


async def test_one_run_is_followed_to_its_end(store: Store) -> None:
    run_id, feed = await insert(store), feed_of(store)
    async with asyncio.timeout(PATIENCE_SECONDS):
        stream = Follower(counted(feed, run_events(following(store, feed), run_id, "")))
        assert (await stream.next())[1]["status"] == "pending"
        (claimed,) = await claim(store)
        seen_id, seen = await stream.next()
        assert seen["status"] == "running"
        await store.outcomes.finish_runs(WORKER, [Outcome(run_id, claimed.token, RunState.SUCCEEDED)])
        assert (await stream.next())[1]["status"] == "completed"
        with pytest.raises(StopAsyncIteration):
            await stream.next()
    again = [event async for event in run_events(following(store, feed), run_id, seen_id)]
    assert [b'"completed"' in event for event in again] == [True]


async def test_events_are_streamed_over_http(client: httpx.AsyncClient, store: Store) -> None:
    run_id = await finish(store)
    answer = await client.get(f"/v1/runs/{run_id}/events")
    assert (answer.headers["content-type"].split(";")[0], answer.text.count("event: run")) == ("text/event-stream", 1)
    listed = await client.get("/v1/events", params={"since": "5m", "follow": "0"})
    assert (listed.text.count("event: run"), str(run_id) in listed.text) == (1, True)
    assert (await client.get("/v1/events", params={"since": "5m", "follow": "0", "state": "failed"})).text.count(
        "event: run"
    ) == 0
    assert (await client.get(f"/v1/runs/{new_id()}/events")).status_code == 404


@pytest.mark.parametrize(
    ("query", "headers", "field"),
    [
        ({"state": "faild"}, {}, "state"),
        ({"job": "nothing"}, {}, "job"),
        ({"since": "2d"}, {}, "since"),
        ({}, {"Last-Event-ID": "x"}, "Last-Event-ID"),
        ({}, {"Last-Event-ID": f"5.{UUID(int=1)}"}, "Last-Event-ID"),
    ],
    ids=["state", "job", "long-ago", "no-id", "old-id"],
)
async def test_invalid_requests_are_refused(
    client: httpx.AsyncClient, query: dict[str, str], headers: dict[str, str], field: str
) -> None:
    answer = await client.get("/v1/events", params=query, headers=headers)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


@pytest.mark.process
@pytest.mark.timeout(120)
async def test_the_client_gets_every_ending_once_although_the_server_is_killed(
    store: Store, database_url: str, free_tcp_port: int
) -> None:
    environment = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": str(free_tcp_port)}
    seen: list[RunEvent] = []

    def follow(number: int) -> None:
        with Operations(f"http://127.0.0.1:{free_tcp_port}") as client:
            for event in client.follow_events({"since": "10m"}):
                seen.append(event)
                if len(seen) == number:
                    return

    async def are(number: int) -> bool:
        return len(seen) >= number

    runs = [str(await finish(store)) for _ in range(3)]
    async with FoliotProcess("server", "--open", environment=environment) as server:
        await server.event("ProcessStarted", part="server")
        task = asyncio.create_task(asyncio.to_thread(follow, 9))
        await until(lambda: are(3))
        runs += [str(await finish(store)) for _ in range(3)]
        await until(lambda: are(6))
        server.kill_tree()
    runs += [str(await finish(store)) for _ in range(3)]
    async with FoliotProcess("server", "--open", environment=environment):
        await task
    assert [event.data["id"] for event in seen] == runs
