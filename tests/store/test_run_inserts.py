"""Runs are stored once, in order, one by one or many at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from foliot.model.ids import new_id_texts
from foliot.model.states import RunState
from foliot.store.arrays import json_array
from foliot.store.store import Store
from tests.support.new_runs import claim, run


async def test_inserting_the_same_ids_again_changes_nothing(store: Store, sql: Any) -> None:
    given = [run() for _ in range(3)]
    first = await store.run_inserts.insert_runs(given)
    assert await store.run_inserts.insert_runs(given) == first
    assert await sql.fetchval("select count(*) from foliot.runs") == 3


async def test_equal_runs_are_stored_in_order(store: Store) -> None:
    for given in (run(), run(delay_seconds=60.0, name="n", priority=3, options='{"retries": 2}')):
        ids = new_id_texts(100)
        texts = ['{"n": 7.10, "text": "\\u20ac"}', None, *(f'{{"n": {number}}}' for number in range(98))]
        one = await store.run_inserts.insert_alike(given, ids, json_array(texts))
        views = [await store.runs.get_run(UUID(run_id)) for run_id in ids]
        assert [view.payload for view in views if view][:3] == [{"n": 7.1, "text": "€"}, {}, {"n": 0}]
        assert {(view.state, view.name, view.priority) for view in views if view} == {
            (one.state, given.name, given.priority)
        }
    assert [claimed.payload for claimed in await claim(store)] == ['{"n": 7.10, "text": "€"}', *texts[1:]]


async def test_a_batch_larger_than_a_json_array_is_stored(
    store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.store.run_inserts.PAYLOADS_MAX", 20)
    ids = new_id_texts(3)
    stored = await store.run_inserts.insert_alike(run(), ids, '[{"a": 1},null,{"a": 2}]')
    await store.run_inserts.insert_runs([run(payload='{"a": 3}') for _ in range(4)])
    assert stored.state is RunState.READY
    found = await sql.fetch("select payload from foliot.runs order by rank")
    assert [row["payload"] for row in found] == ['{"a": 1}', None, '{"a": 2}', *['{"a": 3}'] * 4]


async def test_a_batch_keeps_its_order(store: Store) -> None:
    given = [run() for _ in range(20)]
    await store.run_inserts.insert_runs(given)
    taken = [(await claim(store, 1))[0].run_id for _ in given]
    assert taken == [r.id for r in given]


async def test_a_due_instant_in_the_past_counts_as_now(store: Store) -> None:
    old, fresh = run(due_at=datetime(1970, 1, 1, tzinfo=UTC)), run()
    await store.run_inserts.insert_runs([fresh])
    stored = await store.run_inserts.insert_runs([old])
    assert stored[old.id].due_at == stored[old.id].created_at
    assert (await claim(store, 1))[0].run_id == fresh.id
