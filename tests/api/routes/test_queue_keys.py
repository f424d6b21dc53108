"""The keys that the runs of a queue share, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec

from foliot.model.concurrency import Concurrency
from foliot.model.rate_limit import RateLimit
from foliot.model.run import RunOptions
from foliot.store.store import Store
from tests.support.runs import claim, finish, insert


def text_of(**options: Any) -> str:
    return msgspec.json.encode(RunOptions(**options)).decode()


async def keys_of(client: httpx.AsyncClient, queue: str = "mail") -> dict[str, Any]:
    answer = await client.get(f"/v1/queues/{queue}/keys")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_keys_show_what_is_taken_and_what_waits(client: httpx.AsyncClient, store: Store) -> None:
    assert await keys_of(client) | {"counts_stop_at": 0} == {
        "concurrency": [], "rate": [], "fairness": [], "counts_stop_at": 0, "ended_last_minute": 0, "more_ended": False
    }  # fmt: skip
    one_at_a_time = text_of(concurrency=Concurrency("tenant-1", 1))
    for _ in range(3):
        await insert(store, options=one_at_a_time)
    slow = text_of(rate=RateLimit("api", 1, 3600.0))
    for _ in range(3):
        await insert(store, options=slow)
    await insert(store, queue="other", options=text_of(concurrency=Concurrency("elsewhere")))
    while (await store.limits.admit_runs()).queues:
        pass
    found = await keys_of(client)
    assert found["concurrency"] == [{"key": "tenant-1", "limit": 1, "taken": 1, "waiting": 2}]
    (rate,) = found["rate"]
    assert (rate["key"], rate["limit"], rate["started"], rate["waiting"]) == ("api", 1, 1, 2)
    assert rate["free_at"] is not None
    assert [one["key"] for one in (await keys_of(client, "other"))["concurrency"]] == ["elsewhere"]


async def test_turns_show_what_runs_and_what_waits_for_each_key(client: httpx.AsyncClient, store: Store) -> None:
    for key, count in (("a", 3), ("b", 1)):
        for _ in range(count):
            await insert(store, options=text_of(fairness_key=key))
    assert len(await claim(store)) == 1
    fairness = (await keys_of(client))["fairness"]
    assert sum(one["running"] for one in fairness) == 1
    assert sum(one["waiting"] for one in fairness) == 3
    assert [one["key"] for one in fairness] == ["a", "b"]


async def test_the_pace_counts_the_ends_of_the_last_minute(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    for _ in range(3):
        await finish(store)
    await finish(store, queue="other")
    old = await finish(store)
    await sql.execute("update foliot.history set finished_at = finished_at - interval '2 minutes' where id = $1", old)
    assert (await keys_of(client))["ended_last_minute"] == 3
