"""Payloads that a worker's version of a task does not accept: another live version gets the run, or it fails at
once."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

import pytest

import foliot
from foliot.model.states import RunState
from foliot.scheduler.promoter import Promoter
from foliot.sdk.app import App
from foliot.store.store import Store
from tests.support.announcing import announce
from tests.support.workers import ended, submit, worker_node

MANY = '{"retries": 5}'


def old() -> App:
    app = foliot.App()

    @app.task
    async def charge(customer_id: int) -> str:
        return "old"

    @app.task
    def plain(customer_id: int) -> str:
        return "old"

    @app.task
    async def other() -> None: ...

    return app


def new() -> App:
    app = foliot.App()

    @app.task
    async def charge(customer_id: int, at: dt.date) -> str:
        return f"new {at:%Y}"

    @app.task
    def plain(customer_id: int, at: dt.date) -> str:
        return f"new {at:%Y}"

    return app


@pytest.mark.parametrize("task", ["charge", "plain"])
async def test_a_wrong_payload_fails_at_once_with_its_field(store: Store, task: str) -> None:
    async with worker_node(store, old()):
        view = await ended(store, await submit(store, task, payload='{"customer_id": "abc"}', options=MANY))
    assert (view.state, view.reason, view.attempt) == (RunState.FAILED, "error", 1)
    assert (view.error["kind"], view.error["message"]) == (
        "Invalid", "payload.customer_id: must be an integer, not a string",
    )  # fmt: skip


@pytest.fixture
async def promoter(store: Store) -> AsyncIterator[None]:
    """Promotes deferred runs when they are due."""
    service = Promoter(store=store, clock=store.database.clock, events=store.events)
    await service.start()
    yield
    await service.stop()


@pytest.mark.usefixtures("promoter")
@pytest.mark.parametrize("task", ["charge", "plain"])
async def test_each_run_reaches_a_version_that_accepts_it(store: Store, sql: Any, task: str) -> None:
    newer, older = '{"customer_id": 7, "at": "2026-01-31"}', '{"customer_id": 7}'
    async with worker_node(store, old(), slots=1):
        # A worker with the new version is registered but claims nothing yet, so the old one must defer the run.
        worker_id = await announce(store, new())
        run = await submit(store, task, payload=newer, options='{"retries": 0}')
        put_off = "select count(*) from foliot.attempts where error ->> 'kind' = 'OtherVersion'"
        while not await sql.fetchval(put_off):
            view = await store.runs.get_run(run.id)
            assert view is not None
            assert view.state is not RunState.FAILED
        async with worker_node(store, new(), slots=1):
            await store.workers.remove_worker(worker_id)
            runs = [run] + [await submit(store, task, payload=one) for one in (newer, older) * 3]
            results = [(await ended(store, one)).result for one in runs]
    assert results == ["new 2026"] + ["new 2026", "old"] * 3
    # Each run came to the old worker once at most, although that worker is the quicker one.
    assert await sql.fetchval("select max(count) from (select count(*) from foliot.attempts group by run_id) n") == 1


async def test_a_payload_that_no_version_accepts_fails_on_any_of_them(store: Store) -> None:
    await announce(store, new())
    async with worker_node(store, old()):
        view = await ended(store, await submit(store, "charge", payload='{"customer": 7}', options=MANY))
    assert (view.state, view.attempt) == (RunState.FAILED, 1)
    assert view.error["message"].startswith("payload.customer: there is no such field, did you mean 'customer_id'?")
