"""Workflows for drawing: the graph, the states of its steps, the grid of its runs, and the preview of a redrive."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.api.routes import workflow_graphs
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.runs import claim_runs

WORKER = UUID(int=7)


async def created(client: httpx.AsyncClient, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/workflows", json={"steps": steps, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def got(client: httpx.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def end(store: Store, made: dict[str, Any], **states: RunState) -> None:
    """Ends the ready steps of these keys."""
    ids = {UUID(made["steps"][key]): state for key, state in states.items()}
    claims = await claim_runs(store, WORKER, {"default": 100}, ["work"])
    outcomes = [Outcome(claim.run_id, claim.token, ids[claim.run_id]) for claim in claims if claim.run_id in ids]
    assert len(outcomes) == len(states)
    await store.outcomes.finish_runs(WORKER, outcomes)


def step(key: str, *after: str, **fields: Any) -> dict[str, Any]:
    return {"key": key, "task": "work", "retries": 0, "after": after, **fields}


@pytest.fixture(autouse=True)
async def tasks(store: Store) -> None:
    await store.workers.announce_tasks({"work": "default", "wait": "default", "map": "default", "workflow": "default"})


async def test_the_graph_has_what_never_changes(client: httpx.AsyncClient) -> None:
    made = await created(
        client,
        step("a"),
        step("b", "a", rule="all_done"),
        {"key": "each", "task": "work", "after": ["a"], "map": {"items": [1, 2]}},
        {"key": "ask", "signal": {}, "after": ["b"]},
        step("then", "b", when="steps.b.status == 'failed'"),
        step("tidy", teardown=True),
    )
    path = f"/v1/workflows/{made['id']}/graph"
    answer = await client.get(path)
    steps = answer.json()["steps"]
    assert steps[1] == {"key": "b", "task": "work", "after": [0], "rule": "all_done", "queue": "default"}
    assert steps[2]["is_map"] is True
    assert steps[3]["awaits_signal"] is True
    assert steps[4]["when"] == "steps.b.status == 'failed'"
    assert steps[5] == {"key": "tidy", "task": "work", "rule": "always", "queue": "default", "is_teardown": True}
    again = await client.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_only_the_states_that_have_changed_come_again(client: httpx.AsyncClient, store: Store) -> None:
    made = await created(client, step("a"), step("b", "a"), step("c", "b"))
    path = f"/v1/workflows/{made['id']}/states"
    first = await got(client, path)
    assert first["is_whole"] is True
    assert {one["key"]: one["state"] for one in first["steps"]} == {"a": "ready", "b": "waiting", "c": "waiting"}
    # Nothing has happened. Other work of the server may raise the cursor, but no step comes again.
    quiet = await got(client, path, since=first["cursor"])
    quiet = await got(client, path, since=quiet["cursor"])
    assert (quiet["is_whole"], quiet["steps"]) == (False, [])
    await end(store, made, a=RunState.SUCCEEDED)
    then = await got(client, path, since=quiet["cursor"])
    assert {one["key"]: one["state"] for one in then["steps"]} == {"a": "succeeded", "b": "ready"}
    assert then["workflow"]["progress"]["succeeded"] == 1
    assert then["workflow"]["status"] == "running"


async def test_a_cursor_that_is_not_of_this_server_brings_everything(client: httpx.AsyncClient) -> None:
    made = await created(client, step("a"), step("b", "a"))
    path = f"/v1/workflows/{made['id']}/states"
    at = int(datetime.now(UTC).timestamp())
    for strange in (f"999999999999.{at}", f"1000000000000000.{at}"):
        found = await got(client, path, since=strange)
        assert (found["is_whole"], len(found["steps"])) == (True, 2)
    for bad in ("x", "1", "-1.1", "1.1.1", "1." + "9" * 12, "1.1 ", "\u0661.1"):
        answer = await client.get(path, params={"since": bad})
        assert (answer.status_code, answer.json()["field"]) == (422, "since")


async def test_a_row_that_commits_late_is_in_the_next_answer(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    """A step that ends in a transaction which is open during an answer comes with the answer after its commit."""
    made = await created(client, step("a"), step("b", "a"))
    path = f"/v1/workflows/{made['id']}/states"
    first = await got(client, path)
    late = sql.transaction()
    await late.start()
    await sql.execute("update foliot.runs set progress = '{}' where id = $1", UUID(made["steps"]["a"]))
    during = await got(client, path, since=first["cursor"])
    await late.commit()
    after = await got(client, path, since=during["cursor"])
    assert [one["key"] for one in after["steps"]] == ["a"]


async def test_a_map_shows_its_counts_while_it_lives(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    made = await created(client, {"key": "each", "task": "work", "map": {"items": [1, 2, 3]}})
    # As a worker does it: the run becomes a parent.
    await sql.execute(
        "update foliot.runs set state = 'waiting', unmet = null where id = $1", UUID(made["steps"]["each"])
    )
    await sql.execute(
        "insert into foliot.parents (id, root_id, run_id, kind, created_at, on_failure, total, next_index, capacity, "
        "unfinished, failed) values ($1, $1, $1, 'map', now(), 'continue', 3, 3, 3, 2, 1)",
        UUID(made["steps"]["each"]),
    )
    path = f"/v1/workflows/{made['id']}/states"
    cursor = (await got(client, path))["cursor"]
    for _ in range(2):
        found = await got(client, path, since=cursor)
        cursor = found["cursor"]
        assert found["steps"][0]["children"] == {
            "total": 3, "unfinished": 2, "succeeded": 0, "failed": 1, "cancelled": 0, "skipped": 0
        }  # fmt: skip


async def test_a_workflow_that_has_not_begun_has_a_graph_and_no_states(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/workflows", json={"steps": [step("a")], "delay_seconds": 3600})
    made = answer.json()
    assert [one["key"] for one in (await got(client, f"/v1/workflows/{made['id']}/graph"))["steps"]] == ["a"]
    found = await got(client, f"/v1/workflows/{made['id']}/states")
    assert found["steps"] == []
    assert found["workflow"]["progress"]["total"] == 1


async def test_the_grid_has_the_steps_of_many_runs(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    oldest = await created(client, step("gone"), step("a"), name="books")
    await end(store, oldest, gone=RunState.SUCCEEDED, a=RunState.FAILED)
    await created(client, step("other"), name="letters")
    newest = await created(client, step("a"), step("b", "a"), name="books")
    grid = await got(client, "/v1/workflows/grid", name="books")
    assert grid["steps"] == ["a", "b", "gone"]
    assert [run["states"] for run in grid["runs"]] == [["ready", "waiting", None], ["failed", None, "succeeded"]]
    assert grid["runs"][0]["id"] == newest["id"]
    assert grid["runs"][0]["seconds"] == [None, None, None]
    assert grid["runs"][1]["seconds"][0] >= 0
    assert grid["next"] is None
    monkeypatch.setattr(workflow_graphs, "CELLS_MAX", 3)
    page = await got(client, "/v1/workflows/grid", name="books")
    assert [len(page["runs"]), page["next"]] == [1, newest["id"]]
    older = await got(client, "/v1/workflows/grid", name="books", after=page["next"])
    assert [run["states"] for run in older["runs"]] == [["succeeded", "failed"]]
    for query in ({}, {"name": "books", "limit": 51}, {"name": "books", "after": "x"}):
        assert (await client.get("/v1/workflows/grid", params=query)).status_code == 422  # type: ignore[arg-type]


async def test_a_redrive_says_first_what_it_will_do(client: httpx.AsyncClient, store: Store) -> None:
    made = await created(client, step("good"), step("bad"), step("after", "bad", rule="all_done"))
    await end(store, made, good=RunState.SUCCEEDED, bad=RunState.FAILED)
    await end(store, made, after=RunState.SUCCEEDED)
    path = f"/v1/workflows/{made['id']}/redrive"
    for _ in range(2):
        answer = await client.post(path, json={"dry_run": True})
        assert answer.status_code == 200
        assert answer.json() == {
            "again": [
                {"key": "bad", "state": "failed", "because": "failed"},
                {"key": "after", "state": "succeeded", "because": "after"},
            ],
            "kept": [{"key": "good", "state": "succeeded"}],
            "dry_run": True,
        }
    assert (await client.post(path, json={"dryrun": True})).status_code == 422
    assert (await client.post(path)).status_code == 201
    assert (await client.post(path, json={"dry_run": True})).status_code == 409
