"""The pulse: counts, changes and notices of a namespace, once a second, with one query for all followers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from foliot.api.streams.pulse import PulseFeed, pulses
from foliot.errors import StoreUnavailable
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.roles import Role
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.pulse import Beat
from foliot.store.store import Store
from tests.support.runs import WORKER, claim, finish, insert
from tests.support.secured_app import secured_app
from tests.support.tokens import bearer, make_token
from tests.support.waiting import PATIENCE_SECONDS


async def never() -> bool:
    return False


def document_of(text: bytes) -> dict[str, Any]:
    head, data = text.decode().strip().split("\n")
    assert head == "event: pulse"
    found: dict[str, Any] = json.loads(data.removeprefix("data: "))
    return found


class Page:
    def __init__(self, stream: AsyncGenerator[bytes]) -> None:
        self._stream = stream
        self._found: list[dict[str, Any]] = []

    async def next(self) -> dict[str, Any]:
        if not self._found:
            async with asyncio.timeout(PATIENCE_SECONDS):
                text = await anext(self._stream)
            self._found = [document_of(part + b"\n\n") for part in text.split(b"\n\n")[:-1]]
        return self._found.pop(0)

    async def until(self, name: str, value: Any) -> dict[str, Any]:
        """The first document whose list of changes with that name contains the value."""
        while True:
            document = await self.next()
            if value in document["changed"][name]:
                return document


@asynccontextmanager
async def page(store: Store, feed: PulseFeed | None = None, namespace: str = "default") -> AsyncIterator[Page]:
    clock = store.database.clock
    stream = pulses(
        feed or PulseFeed(store=store, clock=clock),
        Namespace(namespace),
        clock=clock,
        stopping=asyncio.Event(),
        is_gone=never,
        is_followed=True,
    )
    try:
        yield Page(stream)
    finally:
        await stream.aclose()


async def test_a_healthy_system_has_counts_workers_and_no_notice(store: Store, sql: Any) -> None:
    await store.workers.register_worker(WORKER, "a", {"mail": 3, "team/mail": 9}, ["send_invoice"])
    await sql.execute(
        "update foliot.shards set owner_id = $1, expires_at = clock_timestamp() + interval '1 hour'", new_id()
    )
    for _ in range(4):
        await insert(store)
    await claim(store)
    await insert(store, delay_seconds=600)
    await insert(store, queue="team/mail")
    await sql.execute("update foliot.runs set due_at = due_at - interval '1 minute' where state = 'ready'")
    async with page(store) as ours, page(store, namespace="team") as theirs:
        document, other = await ours.next(), await theirs.next()
    assert {state: count["count"] for state, count in document["counts"].items()} == {
        "ready": 3, "running": 1, "scheduled": 1, "held": 0
    }  # fmt: skip
    assert 60 <= document["oldest_ready_seconds"] < 120
    assert document["workers"] == {"living": 1, "draining": 0, "slots": 3}
    assert document["notices"] == []
    assert (other["counts"]["ready"]["count"], other["counts"]["running"]["count"]) == (1, 0)
    assert other["workers"]["slots"] == 9


async def test_each_document_lists_the_changes_since_the_previous_one(client: httpx.AsyncClient, store: Store) -> None:
    old = await finish(store)
    async with page(store) as ours, page(store, namespace="team") as theirs:
        first = await ours.next()
        assert (first["changed"]["runs"], first["rates"]) == ([], {})
        new = await insert(store)
        await ours.until("runs", str(new))
        await finish(store, RunState.FAILED, error="no", queue="other", task="simulate")
        document = await ours.until("queues", "other")
        while "failed" not in document["rates"]:
            document = await ours.next()
        assert document["rates"]["failed"] > 0
        assert str(old) not in document["changed"]["runs"]
        secret = await insert(store, queue="team/mail", task="team/send")
        seen = await theirs.until("runs", str(secret))
        assert (seen["changed"]["queues"], seen["changed"]["tasks"]) == (["mail"], ["send"])
        assert str(secret) not in (await ours.next())["changed"]["runs"]


async def test_changes_through_the_api_are_listed_in_their_namespace(store: Store) -> None:
    token = await make_token(store, Role.ADMIN, "team")
    async with (
        secured_app(store) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
        page(store, namespace="team") as theirs,
        page(store) as ours,
    ):
        await theirs.next()
        await ours.next()
        for path, body in (("/v1/tokens", {"name": "ci", "role": "viewer"}), ("/v1/queues/mail/pause", {})):
            assert (await client.post(path, json=body, headers=bearer(token))).status_code < 300
        document = await theirs.until("actions", {"action": "pause_queue", "target": "mail"})
        assert [one["action"] for one in document["changed"]["actions"]] == ["pause_queue"]
        assert (await ours.next())["changed"]["actions"] == []


async def test_notices_explain_why_nothing_starts(store: Store, sql: Any) -> None:
    await store.pauses.put_pause("everything", "", None, "a flood", "ann")
    async with page(store) as ours:
        notices = {notice["kind"]: notice for notice in (await ours.next())["notices"]}
    assert set(notices) == {"everything_paused", "no_worker", "shards_unowned"}
    assert (notices["everything_paused"]["reason"], notices["everything_paused"]["actor"]) == ("a flood", "ann")
    assert "100 of 100" in notices["shards_unowned"]["text"]


async def test_a_read_only_database_is_recognized(sql: Any) -> None:
    take = queries.load("pulse")["take_pulse"].sql
    for is_read_only in (True, False):
        await sql.execute(f"set default_transaction_read_only = {is_read_only}")
        (row,) = await sql.fetch(take, ["default"], 10, 10, None)
        assert row["is_read_only"] == is_read_only


async def test_a_read_only_or_missing_database_is_reported_and_the_stream_continues(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = store.pulse.take_pulse

    async def reading(namespaces: list[str]) -> list[Beat]:
        return [replace(beat, is_read_only=True) for beat in await take(namespaces)]

    async def gone(_: list[str]) -> list[Beat]:
        raise StoreUnavailable("away")

    async with page(store) as ours:
        with monkeypatch.context() as patched:
            patched.setattr(type(store.pulse), "take_pulse", staticmethod(reading))
            assert "read_only" in {notice["kind"] for notice in (await ours.next())["notices"]}
            patched.setattr(type(store.pulse), "take_pulse", staticmethod(gone))
            document = await ours.next()
            assert [notice["kind"] for notice in document["notices"]] == ["database_unavailable"]
            assert document["counts"] is None
        assert (await ours.next())["counts"] is not None


async def test_a_hundred_pages_share_one_query_a_second(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: Counter[str] = Counter()
    fetch = store.database.fetch

    async def counted(query: Any, *arguments: Any, **named: Any) -> Any:
        looks[query.name] += 1
        return await fetch(query, *arguments, **named)

    monkeypatch.setattr(store.database, "fetch", counted)
    feed = PulseFeed(store=store, clock=store.database.clock)

    async def watch() -> list[dict[str, Any]]:
        async with page(store, feed) as ours:
            return [await ours.next() for _ in range(3)]

    seen = await asyncio.gather(*(watch() for _ in range(100)))
    assert looks["take_pulse"] <= 4
    assert all(document in [one for documents in seen for one in documents] for document in seen[0])


async def test_one_document_without_following(client: httpx.AsyncClient, app: FastAPI) -> None:
    answer = await client.get("/v1/pulse", params={"follow": "0"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert document_of(answer.content)["counts"]["ready"] == {"count": 0, "more": False}


async def test_pulses_count_as_streams(store: Store) -> None:
    async with (
        secured_app(store, is_open=True, event_followers_max=0) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
    ):
        assert (await client.get("/v1/pulse")).status_code == 429
