"""The built-in waits occupy no slot, poll with growing intervals, and look only where a setting allows it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import foliot
from foliot.config import Config
from foliot.model.run import RunView
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.http import answer, answering
from tests.support.schedulers import scheduler_node
from tests.support.waiting import until
from tests.support.workers import QUICK, ended, submit, worker_node

APP = foliot.App()


def configured(**settings: Any) -> Config:
    return msgspec.structs.replace(QUICK, **settings)


@pytest.fixture
async def scheduler(store: Store) -> AsyncIterator[None]:
    async with scheduler_node(store):
        yield


async def asleep(store: Store, run: Any) -> None:
    async def look() -> bool:
        view = await store.runs.get_run(run.id)
        return view is not None and view.state is RunState.SCHEDULED and view.attempt == 0

    await until(look)


async def result(store: Store, task: str, payload: dict[str, Any], config: Config) -> RunView:
    async with worker_node(store, APP, config=config):
        return await ended(store, await submit(store, task, payload=json.dumps(payload)))


async def test_a_file_is_awaited_without_a_slot(store: Store, scheduler: None, tmp_path: Path) -> None:
    config, path = configured(wait_for_file_directories=f" /nowhere, {tmp_path}"), tmp_path / "export.csv"
    payload = json.dumps({"path": str(path), "every_seconds": 1.5, "min_bytes": 3})
    async with worker_node(store, APP, config=config, slots=1):
        run = await submit(store, "wait_for_file", payload=payload)
        await asleep(store, run)
        assert (await ended(store, await submit(store, "simulate"))).state is RunState.SUCCEEDED, "the slot is free"
        path.write_text("a;b;c")
        view = await ended(store, run)
    assert view.state is RunState.SUCCEEDED, view.error
    assert (view.result["path"], view.result["bytes"]) == (str(path), 5)


@pytest.mark.parametrize("directories", ["", "/nowhere", "{tmp_path}/inner"])
async def test_files_outside_of_the_directories_are_not_looked_at(
    store: Store, tmp_path: Path, directories: str
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret").write_text("s")
    (inner / "link").symlink_to(tmp_path / "secret")
    config = configured(wait_for_file_directories=directories.format(tmp_path=tmp_path))
    for path in (tmp_path / "secret", inner / "link", inner / ".." / "secret", Path(f"{inner}-beside")):
        view = await result(store, "wait_for_file", {"path": str(path)}, config)
        assert (view.state, view.attempt, view.error["kind"]) == (RunState.FAILED, 1, "Fail")
        assert "wait_for_file_directories" in view.error["message"]


async def test_a_wait_ends_when_its_time_is_up(store: Store, tmp_path: Path) -> None:
    config = configured(wait_for_file_directories=str(tmp_path))
    view = await result(store, "wait_for_file", {"path": str(tmp_path / "x"), "within_seconds": 0}, config)
    assert (view.state, view.attempt, view.error["kind"]) == (RunState.FAILED, 1, "WaitTimeout")


async def test_a_url_is_awaited_until_it_answers_as_expected(store: Store, scheduler: None) -> None:
    config = configured(http_allow_private=True)
    async with answering() as server, worker_node(store, APP, config=config):
        run = await submit(
            store, "wait_for_url", payload=json.dumps({"url": f"{server.url}/ready", "every_seconds": 1.5})
        )
        await asleep(store, run)
        server.answers["/ready"] = answer()
        view = await ended(store, run)
    assert (view.state, view.result["status"]) == (RunState.SUCCEEDED, 200), view.error


async def test_private_addresses_are_refused_as_for_http(store: Store) -> None:
    view = await result(store, "wait_for_url", {"url": "http://127.0.0.1:1/"}, QUICK)
    assert (view.state, view.attempt) == (RunState.FAILED, 1)
    assert "is not public" in view.error["message"]


async def test_a_row_is_awaited_and_is_the_result(store: Store, scheduler: None, sql: Any, database_url: str) -> None:
    await sql.execute("create table orders (id bigint, day date, is_paid boolean)")
    payload = {
        "query": "select * from orders where day = $1 and id > $2 and is_paid = $3 order by id -- the first",
        "parameters": ["2026-11-18", 6, True],
        "every_seconds": 1.5,
    }
    async with worker_node(store, APP, config=configured(wait_for_row_url=database_url)):
        run = await submit(store, "wait_for_row", payload=json.dumps(payload))
        await asleep(store, run)
        await sql.execute("insert into orders values (7, '2026-11-18', true)")
        view = await ended(store, run)
    assert view.state is RunState.SUCCEEDED, view.error
    assert view.result == {"id": 7, "day": "2026-11-18", "is_paid": True}


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("delete from foliot.runs returning id", []),
        ("select 1) as x; delete from foliot.runs; select (1", []),
        ("with gone as (delete from foliot.runs returning id) select * from gone", []),
        ("select nextval('numbers')", []),
        ("select set_config('transaction_read_only', 'off', true), nextval('numbers')", []),
        ("selec 1", []),
        ("select $1::int as n", ["x"]),
        ("select $1::int as n", []),
    ],
)
async def test_queries_that_write_or_can_not_run_fail_for_good(
    store: Store, sql: Any, database_url: str, query: str, parameters: list[Any]
) -> None:
    await sql.execute("create sequence numbers")
    config = configured(wait_for_row_url=database_url)
    view = await result(store, "wait_for_row", {"query": query, "parameters": parameters}, config)
    assert (view.state, view.attempt, view.error["kind"]) == (RunState.FAILED, 1, "Fail"), view.result
    assert await sql.fetchval("select not is_called from numbers")


async def test_without_a_setting_no_database_is_queried(store: Store) -> None:
    view = await result(store, "wait_for_row", {"query": "select 1 as one"}, QUICK)
    assert (view.state, view.attempt) == (RunState.FAILED, 1)
    assert "wait_for_row_url" in view.error["message"]
