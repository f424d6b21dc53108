"""Streams that stay open: one caller can't use up the places of others, and a closed stream frees its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest

from foliot.api.streams.limits import EVENTS, LOGS, StreamLimits
from foliot.config import Config
from foliot.errors import TooManyFollowers
from foliot.model.namespace import Namespace
from foliot.model.roles import LOCAL, Caller, Role
from foliot.store.store import Store
from tests.support.runs import insert
from tests.support.secured_app import secured_app, serving
from tests.support.tokens import bearer, make_token
from tests.support.waiting import PATIENCE_SECONDS, until


@asynccontextmanager
async def served(store: Store, *, is_open: bool = False, **settings: int) -> AsyncIterator[httpx.AsyncClient]:
    async with secured_app(store, is_open=is_open, **settings) as app, serving(app) as url:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_SECONDS, limits=limits) as client:
            yield client


class Crowd:
    """Streams that are held open."""

    def __init__(self, client: httpx.AsyncClient, stack: AsyncExitStack) -> None:
        self._client = client
        self._stack = stack

    async def follow(self, path: str, headers: dict[str, str]) -> int:
        """The status of one more stream, which stays open."""
        answer = await self._stack.enter_async_context(self._client.stream("GET", path, headers=headers))
        if answer.status_code == 429:
            problem = await answer.aread()
            assert b'"code":"too_many_followers"' in problem
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.headers["content-type"] == "application/problem+json"
        return answer.status_code

    async def follow_at_once(self, number: int, path: str, headers: dict[str, str]) -> list[int]:
        return sorted(await asyncio.gather(*(self.follow(path, headers) for _ in range(number))))


@asynccontextmanager
async def crowd(client: httpx.AsyncClient) -> AsyncIterator[Crowd]:
    async with AsyncExitStack() as stack:
        yield Crowd(client, stack)


async def test_one_viewer_can_not_use_up_all_streams(store: Store) -> None:
    """All of them start at the same moment, so a check that is separate from taking a place would fail."""
    viewer, other = [bearer(await make_token(store, Role.VIEWER, name)) for name in ("ours", "theirs")]
    async with served(store, event_followers_max=20, followers_per_token_max=5) as client, crowd(client) as streams:
        assert await streams.follow_at_once(40, "/v1/events", viewer) == [200] * 5 + [429] * 35
        assert await streams.follow("/v1/events", other) == 200
        # The viewer can still use everything but streams.
        assert (await client.get("/v1/runs", headers=viewer)).status_code == 200


async def test_every_kind_of_stream_counts(store: Store) -> None:
    run_id = await insert(store)
    viewer = bearer(await make_token(store, Role.VIEWER, "default"))
    paths = ("/v1/events", f"/v1/runs/{run_id}/events", f"/v1/runs/{run_id}/logs?follow=1")
    async with served(store, followers_per_token_max=3) as client, crowd(client) as streams:
        assert [await streams.follow(path, viewer) for path in paths] == [200, 200, 200]
        assert [await streams.follow(path, viewer) for path in paths] == [429, 429, 429]
        # An event stream that ends at once needs a place, but reading a log without following does not.
        assert await streams.follow("/v1/events?follow=0", viewer) == 429
        assert (await client.get(f"/v1/runs/{run_id}/logs", headers=viewer)).status_code == 200


async def test_many_tokens_of_one_namespace_can_not_use_up_all_streams(store: Store) -> None:
    ours = [bearer(await make_token(store, Role.VIEWER, "ours")) for _ in range(5)]
    theirs = bearer(await make_token(store, Role.VIEWER, "theirs"))
    async with (
        served(store, followers_per_token_max=2, followers_per_namespace_max=4) as client,
        crowd(client) as streams,
    ):
        assert [await streams.follow("/v1/events", one) for one in ours] == [200, 200, 200, 200, 429]
        assert await streams.follow("/v1/events", theirs) == 200


async def test_a_token_for_all_namespaces_has_one_limit_for_all_of_them(store: Store) -> None:
    admin = bearer(await make_token(store))
    async with served(store, followers_per_token_max=3) as client, crowd(client) as streams:
        statuses = [
            await streams.follow("/v1/events", admin | {"Foliot-Namespace": name}) for name in ("a", "b", "c", "d")
        ]
    assert statuses == [200, 200, 200, 429]


async def test_without_tokens_streams_are_counted_by_address(store: Store) -> None:
    async with served(store, is_open=True, followers_per_token_max=3) as client, crowd(client) as streams:
        assert await streams.follow_at_once(5, "/v1/events", {}) == [200] * 3 + [429] * 2
        # A token counts as a caller of its own, even here.
        assert await streams.follow("/v1/events", bearer(await make_token(store))) == 200


async def test_a_place_is_free_again_when_its_stream_has_ended(store: Store) -> None:
    viewer = bearer(await make_token(store, Role.VIEWER, "default"))
    async with served(store, followers_per_token_max=4) as client:
        for _ in range(3):
            async with crowd(client) as streams:
                assert await streams.follow_at_once(6, "/v1/events", viewer) == [200] * 4 + [429] * 2

            async def is_free() -> bool:
                return (await client.get("/v1/events?follow=0", headers=viewer)).status_code == 200

            await until(is_free)


@pytest.mark.parametrize("path", ["/v1/events?state=nonsense", "/v1/runs/01900000-0000-7000-8000-000000000000/events"])
async def test_a_refused_request_keeps_no_place(store: Store, path: str) -> None:
    viewer = bearer(await make_token(store, Role.VIEWER, "default"))
    async with served(store, followers_per_token_max=1) as client, crowd(client) as streams:
        assert {(await client.get(path, headers=viewer)).status_code for _ in range(3)} <= {404, 422}
        assert await streams.follow("/v1/events", viewer) == 200


def test_the_refusal_names_the_setting() -> None:
    someone = Caller("ci", Role.VIEWER, "team", Namespace("team"), "1a2b")
    for settings, said in (
        ({"event_followers_max": 0}, "event_followers_max"), ({"log_followers_max": 0}, "log_followers_max"),
        ({"followers_per_token_max": 0}, "followers_per_token_max"),
        ({"followers_per_namespace_max": 0}, "'team'.*followers_per_namespace_max"),
    ):  # fmt: skip
        kind = LOGS if "log_followers_max" in settings else EVENTS
        streams = StreamLimits(Config(**settings))  # type: ignore[arg-type]
        with pytest.raises(TooManyFollowers, match=said), streams.place(kind, someone, "192.0.2.1"):
            pass


def test_unused_limits_are_forgotten() -> None:
    streams = StreamLimits(Config())
    with streams.place(EVENTS, LOCAL, "2001:db8::1"), streams.place(LOGS, LOCAL, "2001:db8::2"):
        assert streams._taken["address 2001:db8::/64"] == 2
    assert streams._taken == {}
