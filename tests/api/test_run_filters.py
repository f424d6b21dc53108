"""Filters of runs: each selects its runs, its `not_` twin excludes them, and both work in every list."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.api import run_filters
from foliot.model.ids import new_id
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.jobs import make_job
from tests.support.run_lists import listed_ids
from tests.support.runs import WORKER, finish, insert

PAYLOADS = {
    "slow": '{"customer": {"id": 7, "name": "Ann"}, "rush": true}',
    "failed": '{"customer": {"id": "7"}}',
    "lost": '{"customer": {"id": 70}}',
    "other": "{}",
}


@pytest.fixture
async def made(store: Store, sql: Any) -> dict[str, str]:
    """Four ended and two waiting runs, in the order of their creation."""
    found = {
        "slow": await finish(store, payload=PAYLOADS["slow"], options='{"tags": ["sale", "red"]}'),
        "failed": await finish(
            store, RunState.FAILED, error="Disk FULL", payload=PAYLOADS["failed"], options='{"tags": ["sale"]}'
        ),
        "lost": await finish(store, RunState.FAILED, error="no", payload=PAYLOADS["lost"], queue="mail-2"),
        "other": await finish(store, task="simulate", queue="default", payload=PAYLOADS["other"]),
        "ready": await insert(store, priority=5),
        "scheduled": await insert(store, task="simulate", delay_seconds=3600),
    }
    await sql.execute(
        "update foliot.history set started_at = finished_at - interval '90 seconds', attempt = 3 where id = $1",
        found["slow"],
    )
    await sql.execute(
        "update foliot.history set started_at = finished_at - interval '1 second' where id <> $1", found["slow"]
    )
    await sql.execute(
        "update foliot.history set reason = 'lost', worker_id = $2 where id = $1", found["lost"], UUID(int=5)
    )
    return {name: str(run_id) for name, run_id in found.items()}


def names_of(made: dict[str, str], ids: list[str]) -> list[str]:
    return [name for run_id in ids for name, known in made.items() if known == run_id]


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"queue": "mail"}, {"slow", "failed", "ready", "scheduled"}),
    ({"queue": "mail*"}, {"slow", "failed", "lost", "ready", "scheduled"}),
    ({"queue": "mail-?,default"}, {"lost", "other"}),
    ({"not_queue": "mail*"}, {"other"}),
    ({"task": "send_*"}, {"slow", "failed", "lost", "ready"}),
    ({"task": "sendXinvoice"}, set()),
    ({"not_task": "send_invoice"}, {"other", "scheduled"}),
    ({"state": "completed,failed"}, {"slow", "failed", "lost", "other"}),
    ({"not_state": "failed,scheduled"}, {"slow", "other", "ready"}),
    ({"state": "failed", "not_state": "failed"}, set()),
    ({"reason": "lost"}, {"lost"}),
    ({"state": "failed", "not_reason": "lost"}, {"failed"}),
    ({"tag": "sale"}, {"slow", "failed"}),
    ({"tag": "sale,red"}, {"slow"}),
    ({"tag": "sale", "not_tag": "red"}, {"failed"}),
    ({"not_tag": "sale"}, {"lost", "other", "ready", "scheduled"}),
    ({"worker": str(WORKER)}, {"slow", "failed", "other"}),
    ({"worker": "claims by hand"}, {"slow", "failed", "other"}),
    ({"worker": f"{UUID(int=5)},{new_id()}"}, {"lost"}),
    ({"not_worker": str(WORKER)}, {"lost", "ready", "scheduled"}),
    ({"attempt": ">1"}, {"slow"}),
    ({"attempt": "0"}, {"ready", "scheduled"}),
    ({"duration": ">1m"}, {"slow"}),
    ({"duration": "500ms..2s"}, {"failed", "lost", "other"}),
    ({"priority": ">=5"}, {"ready"}),
    ({"error": "disk full"}, {"failed"}),
    ({"state": "failed", "not_error": "disk"}, {"lost"}),
    ({"text": "simulate"}, {"other", "scheduled"}),
    ({"not_text": "invoice"}, {"other", "scheduled"}),
    ({"payload": "customer.id:7"}, {"slow", "failed"}),
    ({"payload": ["customer.id:7", "customer.name:Ann"]}, {"slow"}),
    ({"payload": "rush:true"}, {"slow"}),
    ({"payload": "customer.id:7", "attempt": "1"}, {"failed"}),
]


@pytest.mark.parametrize(
    ("query", "wanted"), FILTERS, ids=lambda value: "&".join(value) if isinstance(value, dict) else ""
)
async def test_a_filter_selects_its_runs_in_every_list(
    client: httpx.AsyncClient, made: dict[str, str], query: dict[str, Any], wanted: set[str]
) -> None:
    latest = names_of(made, await listed_ids(client, **query))
    assert set(latest) == wanted
    assert latest == [name for name in list(made)[::-1] if name in wanted]
    oldest = names_of(made, await listed_ids(client, order="created", limit=2, **query))
    assert oldest == latest[::-1]
    counted = (await client.get("/v1/runs/count", params=query)).json()
    assert (counted["count"], counted["more"]) == (len(wanted), False)
    histogram = (await client.get("/v1/runs/histogram", params=query | {"since": "1h"})).json()
    assert sum(sum(bucket["states"].values()) for bucket in histogram["buckets"]) == len(wanted)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"attempt": "x"}, "attempt"),
        ({"duration": "1w"}, "duration"),
        ({"priority": ">>1"}, "priority"),
        ({"not_state": "faild"}, "not_state"),
        ({"worker": "nobody"}, "worker"),
        ({"payload": "customer"}, "payload"),
        ({"payload": ":7"}, "payload"),
        ({"payload": [f"a{n}:1" for n in range(11)]}, "payload"),
        ({"error": "\0"}, "error"),
        ({"queue": "x" * 501}, "queue"),
        ({"order": "name"}, "order"),
        ({"order": "-duration", "after": str(new_id())}, "after"),
        ({"order": "created", "job": "nightly"}, "order"),
        ({"since": "1h", "until": "2h"}, "until"),
    ],
    ids=range(14),
)
async def test_an_invalid_filter_is_refused(
    client: httpx.AsyncClient, store: Store, query: dict[str, Any], field: str
) -> None:
    await make_job(store, name="nightly", every="1h")
    for path in ("/v1/runs", "/v1/runs/count", "/v1/runs/facets", "/v1/runs/histogram"):
        if path != "/v1/runs" and field in ("order", "after"):
            continue
        answer = await client.get(path, params=query)
        assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("-duration", ["slow"]),
        ("-attempt", ["slow"]),
        ("attempt", ["scheduled", "ready"]),
        ("-priority", ["ready"]),
    ],
)
async def test_runs_are_listed_in_another_order(
    client: httpx.AsyncClient, made: dict[str, str], order: str, first: list[str]
) -> None:
    page = (await client.get("/v1/runs", params={"order": order})).json()
    assert names_of(made, [run["id"] for run in page["items"]])[: len(first)] == first
    assert (len(page["items"]), page["next"], page["is_partial"]) == (6, None, False)
    (single,) = (await client.get("/v1/runs", params={"order": order, "limit": 1})).json()["items"]
    assert single["id"] == made[first[0]]


async def test_an_order_over_too_many_runs_is_marked(
    client: httpx.AsyncClient, made: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_filters, "SCAN_MAX", 3)
    page = (await client.get("/v1/runs", params={"order": "-duration"})).json()
    assert (len(page["items"]), page["is_partial"]) == (3, True)


async def test_runs_of_a_job_are_listed_in_another_order(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    job = await make_job(store, name="nightly", every="1h")
    first = await finish(store)
    second = await finish(store)
    await sql.execute("update foliot.history set job_id = $1, tick_at = due_at", job.id)
    await sql.execute("update foliot.history set started_at = started_at - interval '1 hour' where id = $1", first)
    assert await listed_ids(client, job="nightly") == [str(second), str(first)]
    assert await listed_ids(client, job="nightly", order="-duration") == [str(first), str(second)]
