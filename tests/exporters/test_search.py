"""Ended runs and their output in a search engine, also one that is dead, hung or lying."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

import foliot
from foliot.config import Config
from foliot.events import Event, ExportDropped, ServiceFailed
from foliot.exporters.search import SearchExporter
from foliot.exporters.search_engine import EngineUnavailable
from foliot.model.archive import Kind
from foliot.model.states import RunState
from foliot.scheduler.promoter import Promoter
from foliot.service import Supervisor
from foliot.store.logs import LogPart
from foliot.store.store import Store
from tests.support.ports import free_port
from tests.support.runs import WORKER, claim, finish, insert
from tests.support.search_engine import BUSY, CREATED, FULL, WRONG, FakeEngine, answer, fake_engine
from tests.support.waiting import until
from tests.support.workers import ended, submit, worker_node

app = foliot.App()


@app.task(retries=1, backoff=foliot.Backoff(kind="fixed", base_seconds=0.01))
async def charge(ctx: foliot.Context) -> None:
    sys.stdout.write(f"attempt {ctx.attempt}\n\ncharged the card\n")
    if ctx.attempt == 1:
        raise RuntimeError("declined")


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    async with fake_engine() as engine:
        yield engine


def exporter_for(store: Store, url: str, kind: Kind = "runs", **settings: Any) -> SearchExporter:
    config = msgspec.structs.replace(Config(), search_url=url, **settings)
    return SearchExporter(kind, store=store, config=config, clock=store.database.clock, events=store.events)


async def begun(store: Store, engine: FakeEngine, **settings: Any) -> SearchExporter:
    exporter = exporter_for(store, engine.url, **settings)
    await exporter.run_once()
    return exporter


async def catch_up(exporter: SearchExporter, engine: FakeEngine, count: int) -> None:
    async def has_them() -> bool:
        await exporter.run_once()
        return len(engine.of("runs")) >= count

    await until(has_them)


async def fails(exporter: SearchExporter) -> None:
    """The end of a run is visible to the exporter a moment after its transaction."""

    async def has_failed() -> bool:
        try:
            await exporter.run_once()
        except EngineUnavailable:
            return True
        return False

    await until(has_failed)


async def test_runs_and_the_output_of_all_attempts_are_indexed(store: Store, engine: FakeEngine) -> None:
    clock, events = store.database.clock, store.events
    kinds: tuple[Kind, ...] = ("runs", "attempts")
    exporters = [exporter_for(store, engine.url, kind) for kind in kinds]
    for exporter in exporters:
        await exporter.run_once()
    services = Supervisor([*exporters, Promoter(store=store, clock=clock, events=events)])
    await services.start()
    try:
        async with worker_node(store, app):
            run = await ended(store, await submit(store, "charge"))

        async def is_complete() -> bool:
            return len(engine.of("runs")) == 1 and len(engine.of("logs")) == 4

        await until(is_complete)
    finally:
        await services.stop()
    (found,) = engine.of("runs")
    assert (found["id"], found["task"], found["state"], found["attempt"]) == (str(run.id), "charge", "succeeded", 2)
    lines = sorted((one["attempt"], one["line"], one["message"], one["outcome"]) for one in engine.of("logs"))
    assert lines == [
        (1, 1, "attempt 1", "error"),
        (1, 3, "charged the card", "error"),
        (2, 1, "attempt 2", "succeeded"),
        (2, 3, "charged the card", "succeeded"),
    ]
    assert {one["run_id"] for one in engine.of("logs")} == {str(run.id)}
    day = f"{run.finished_at:%Y.%m.%d}"
    assert {index for index, _ in engine.documents} == {f"foliot-runs-{day}", f"foliot-logs-{day}"}


async def test_json_of_users_adds_no_field(store: Store, engine: FakeEngine) -> None:
    exporter = await begun(store, engine)
    payload = json.dumps({"a": {"b": [1, "2"]}, "id": "mine"})
    await finish(store, RunState.FAILED, error="card declined", payload=payload)
    await catch_up(exporter, engine, 1)
    (found,) = engine.of("runs")
    assert json.loads(found["payload"]) == json.loads(payload)
    assert (found["error_kind"], found["error_message"]) == ("ValueError", "card declined")
    for kind in ("runs", "logs"):
        mappings = engine.templates[f"foliot-{kind}"]["template"]["mappings"]
        assert mappings["dynamic"] is False
        assert all(set(document) <= set(mappings["properties"]) for document in engine.of(kind))
    assert engine.templates["foliot-runs"]["template"]["mappings"]["properties"]["payload"]["index"] is False
    await exporter.on_stop()


@pytest.mark.parametrize("is_opensearch", [True, False], ids=["opensearch", "elasticsearch"])
async def test_a_policy_deletes_old_indexes(store: Store, *, is_opensearch: bool) -> None:
    async with fake_engine(is_opensearch=is_opensearch) as engine:
        for days in (30, 7):
            exporter = await begun(store, engine, search_prefix="shop", search_keep_days=days)
            await exporter.on_stop()
        policy = engine.policies["shop"]["policy"]
        settings = engine.templates["shop-logs"]["template"]["settings"]
        if is_opensearch:
            (transition,) = policy["states"][0]["transitions"]
            assert transition["conditions"] == {"min_index_age": "7d"}
            assert policy["ism_template"][0]["index_patterns"] == ["shop-runs-*", "shop-logs-*"]
            assert "index.lifecycle.name" not in settings
        else:
            assert policy["phases"]["delete"] == {"min_age": "7d", "actions": {"delete": {}}}
            assert settings["index.lifecycle.name"] == "shop"


async def test_an_engine_without_policies_is_reported_and_used(
    store: Store, engine: FakeEngine, seen: list[Event]
) -> None:
    engine.has_policies = False
    exporter = await begun(store, engine)
    await finish(store)
    await catch_up(exporter, engine, 1)
    (failed,) = [event for event in seen if isinstance(event, ServiceFailed)]
    assert "never deleted" in failed.error
    await exporter.on_stop()


@pytest.mark.parametrize(
    "lie",
    [
        answer("503 Busy"),
        answer("401 Unauthorized"),
        answer("302 Found", b"", "Location: /_bulk"),
        answer("200 OK", b"<html>no search engine</html>"),
        answer("200 OK", b'{"items": []}'),
        answer("200 OK", b'{"items": [{"index": {"status": "fine"}}]}'),
        answer("200 OK", b"[" * 100_000),
        answer("200 OK", b" " * 5_000_000),
        b"garbage\r\n\r\n",
        b"",
    ],
    ids=["busy", "unauthorized", "redirect", "html", "too few", "wrong type", "deep", "endless", "garbage", "closed"],
)
async def test_runs_wait_in_the_database_until_the_engine_takes_them(
    store: Store, engine: FakeEngine, lie: bytes
) -> None:
    exporter = await begun(store, engine)
    run = await finish(store, output=b"charged\n")
    engine.lie = lie
    await fails(exporter)
    await fails(exporter)
    engine.lie = None
    await catch_up(exporter, engine, 1)
    assert [one["id"] for one in engine.of("runs")] == [str(run)]
    assert [one["message"] for one in engine.of("logs")] == ["charged"]
    await exporter.on_stop()


async def test_a_repetition_after_a_lost_answer_changes_nothing(store: Store, engine: FakeEngine) -> None:
    exporter = await begun(store, engine)
    await finish(store, output=b"one\ntwo\n")
    engine.loses_answers = True
    await fails(exporter)
    first = dict(engine.documents)
    assert len(first) == 3
    engine.loses_answers = False

    async def is_repeated() -> bool:
        await exporter.run_once()
        return len(engine.written) == 6

    await until(is_repeated)
    assert engine.documents == first
    await exporter.on_stop()


async def test_a_dead_engine_loses_nothing(store: Store, engine: FakeEngine) -> None:
    exporter = await begun(store, engine)
    await finish(store)
    await exporter.on_stop()
    dead = exporter_for(store, f"http://127.0.0.1:{free_port()}")
    await fails(dead)
    await dead.on_stop()
    await catch_up(exporter, engine, 1)
    await exporter.on_stop()


async def test_a_hung_engine_costs_one_request_and_does_not_delay_a_stop(
    store: Store, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = await begun(store, engine)
    engine.is_hung = True
    await finish(store)
    monkeypatch.setattr("foliot.exporters.search_engine.REQUEST_SECONDS", 0.3)
    await fails(exporter)
    monkeypatch.undo()
    monkeypatch.setattr("foliot.exporters.search_engine.REQUEST_SECONDS", 10_000.0)
    engine.reached.clear()
    await exporter.start()
    await asyncio.wait_for(engine.reached.wait(), 60)
    await asyncio.wait_for(exporter.stop(), 60)
    assert engine.of("runs") == []


async def test_documents_that_the_engine_is_too_busy_for_are_sent_again_alone(
    store: Store, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.exporters.search.FIRST_WAIT_SECONDS", 0.001)
    exporter = await begun(store, engine)
    runs = [str(await finish(store)) for _ in range(3)]
    asked: list[str] = []

    def busy_at_first(name: str) -> dict[str, Any]:
        asked.append(name)
        return BUSY if name == runs[1] and asked.count(name) < 3 else CREATED

    engine.verdict = busy_at_first
    await catch_up(exporter, engine, 3)
    assert sorted(engine.written) == sorted(runs)
    assert asked.count(runs[1]) == 3
    await exporter.on_stop()


@pytest.mark.parametrize("verdict", [BUSY, FULL, {"status": 403}, {"status": 503}], ids=["busy", "full", "403", "503"])
async def test_documents_wait_while_their_index_takes_none(
    store: Store, engine: FakeEngine, verdict: dict[str, Any], seen: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.exporters.search.FIRST_WAIT_SECONDS", 0.001)
    exporter = await begun(store, engine)
    await finish(store)
    engine.verdict = lambda _: verdict
    await fails(exporter)
    engine.verdict = lambda _: CREATED
    await catch_up(exporter, engine, 1)
    assert not [event for event in seen if isinstance(event, ExportDropped)]
    await exporter.on_stop()


async def test_a_document_that_the_engine_refuses_is_skipped_and_counted(
    store: Store, engine: FakeEngine, seen: list[Event]
) -> None:
    exporter = await begun(store, engine)
    runs = [str(await finish(store)) for _ in range(3)]
    engine.verdict = lambda name: WRONG if name == runs[1] else CREATED
    await catch_up(exporter, engine, 2)
    assert [one["id"] for one in engine.of("runs")] == [runs[0], runs[2]]
    (dropped,) = [event for event in seen if isinstance(event, ExportDropped)]
    assert (dropped.export, dropped.count) == ("search_runs", 1)
    assert runs[1] in dropped.why
    assert "mapper_parsing_exception" in dropped.why
    await exporter.on_stop()


async def test_a_batch_that_is_too_large_is_halved_and_a_document_that_is_too_large_skipped(
    store: Store, engine: FakeEngine, seen: list[Event]
) -> None:
    exporter = await begun(store, engine)
    engine.body_max = 20_000
    await finish(store, output=b"short\n" + b"x" * 30_000 + b"\n" + b"line\n" * 200)
    await catch_up(exporter, engine, 1)
    assert len(engine.of("logs")) == 201
    (dropped,) = [event for event in seen if isinstance(event, ExportDropped)]
    assert dropped.count == 1
    await exporter.on_stop()


async def test_batches_are_bounded(store: Store, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliot.exporters.search.BATCH", 10)
    exporter = await begun(store, engine)
    await finish(store, output=b"line\n" * 99)
    await catch_up(exporter, engine, 1)
    assert (len(engine.documents), engine.bulks) == (100, 10)
    await exporter.on_stop()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"search_api_key": "a-secret"}, "ApiKey a-secret"),
        ({"search_username": "ann", "search_password": "a-secret"}, "Basic YW5uOmEtc2VjcmV0"),
    ],
    ids=["api key", "user"],
)
async def test_credentials_are_sent_and_never_shown(
    store: Store, engine: FakeEngine, settings: dict[str, str], expected: str, seen: list[Event]
) -> None:
    exporter = await begun(store, engine, **settings)
    assert engine.headers["authorization"] == expected
    await finish(store)
    engine.lie = answer("401 Unauthorized", b"a-secret is wrong")
    await exporter.start()

    async def has_failed() -> bool:
        return any(isinstance(event, ServiceFailed) for event in seen)

    await until(has_failed)
    await exporter.stop()
    assert "secret" not in repr(seen)
    assert expected.split()[1] not in repr(seen)


async def test_the_output_of_a_lost_attempt_is_indexed_although_nobody_has_stored_it_yet(
    store: Store, engine: FakeEngine
) -> None:
    """A scheduler node stores it some time after the attempt has ended, or dies before."""
    kinds: tuple[Kind, ...] = ("runs", "attempts")
    exporters = [exporter_for(store, engine.url, kind) for kind in kinds]
    for exporter in exporters:
        await exporter.run_once()
    await insert(store)
    for attempt in (1, 2):
        (claimed,) = await claim(store)
        parts = [LogPart(claimed.run_id, claimed.token, 0, f"charging {attempt}\n".encode())]
        await store.logs.write_logs(WORKER, parts, [])
        await store.workers.remove_worker(WORKER)
        # After the second loss the run has failed for good.
        await store.lost_runs.lose_runs(10, 2)

    async def has_lines() -> bool:
        for exporter in exporters:
            await exporter.run_once()
        return {one["message"] for one in engine.of("logs")} >= {"charging 1", "charging 2"}

    await until(has_lines)
    assert {one["outcome"] for one in engine.of("logs")} == {"lost", "failed"}
    # It is stored as well, and nothing is left of what the worker had streamed.
    assert await store.logs.get_output(claimed.run_id, claimed.token) == b"charging 2\n"
    assert await store.logs.read_parts([(claimed.run_id, claimed.token)]) == {}
    for exporter in exporters:
        await exporter.on_stop()
