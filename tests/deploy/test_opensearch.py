"""Runs and their output in a real OpenSearch."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec
import pytest

from foliot.config import Config
from foliot.events import Event, ExportDropped, ServiceFailed
from foliot.exporters.search import SearchExporter
from foliot.exporters.search_documents import RUN_FIELDS
from foliot.model.states import RunState
from foliot.store.exports import FIRST_ID
from foliot.store.store import Store
from tests.support.opensearch import opensearch_server
from tests.support.runs import finish
from tests.support.waiting import until

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(900)]


async def test_opensearch_finds_runs_and_lines(store: Store, seen: list[Event]) -> None:
    async with opensearch_server() as engine:
        config = msgspec.structs.replace(Config(), search_url=engine.url)
        exporter = SearchExporter("runs", store=store, config=config, clock=store.database.clock, events=store.events)
        await exporter.run_once()
        # Objects whose field is a number in one run and an object in the next.
        for value in (1, {"deep": [1, "2"]}):
            await finish(store, payload=json.dumps({"x": value}), options='{"tags": ["night", "etl"]}')
        failed = await finish(store, RunState.FAILED, error="card declined", output=b"charging\n\xff\x00 declined\n")

        async def is_found() -> bool:
            await exporter.run_once()
            return len(await engine.find("foliot-runs-*", "*:*")) == 3

        await until(is_found)
        (found,) = await engine.find("foliot-runs-*", "state:failed AND error_message:declined")
        assert found["id"] == str(failed)
        assert len(await engine.find("foliot-runs-*", "tags:etl AND attempt:1 AND finished_at:[now-1h TO now]")) == 2
        assert await engine.find("foliot-runs-*", "deep:2") == []
        (line,) = await engine.find("foliot-logs-*", f"message:declined AND run_id:{failed}")
        assert line["line"] == 2
        mappings = await engine.ask("/foliot-runs-*/_mapping")
        for index in mappings.values():
            assert index["mappings"]["dynamic"] == "false"
            assert set(index["mappings"]["properties"]) == set(RUN_FIELDS)
            assert index["mappings"]["properties"]["payload"] == {"type": "text", "index": False}
        # The same documents again change nothing but their version.
        first = await engine.find("foliot-*", "*:*")
        await _again(exporter)
        assert sorted(map(json.dumps, await engine.find("foliot-*", "*:*"))) == sorted(map(json.dumps, first))
        await exporter.on_stop()
    assert not [event for event in seen if isinstance(event, ExportDropped)]
    # It has no ISM plugin.
    (missing,) = [event for event in seen if isinstance(event, ServiceFailed)]
    assert "never deleted" in missing.error


async def _again(exporter: SearchExporter) -> None:
    horizon = await exporter.horizon()
    rows = await exporter.list_endings((horizon - timedelta(hours=1), FIRST_ID), horizon, 1)
    assert len(rows) == 3
    await exporter.export(rows)
