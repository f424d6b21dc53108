"""Tags: given to jobs and steps, passed on to their runs, shown, and found again."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from foliot.api.routes import recurring
from foliot.store.store import Store
from tests.support.run_lists import listed_ids
from tests.support.runs import finish


async def created(client: httpx.AsyncClient, path: str = "/v1/jobs", **fields: Any) -> dict[str, Any]:
    answer = await client.post(path, json=fields)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_runs_live_and_finished_are_found_by_a_tag(client: httpx.AsyncClient, store: Store) -> None:
    done = await finish(store, options='{"tags": ["red", "green"]}')
    live = (await created(client, task="send_invoice", tags=["red", "red", "blue"]))["id"]
    plain = (await created(client, task="send_invoice"))["id"]
    assert await listed_ids(client, tag="red") == [live, str(done)]
    assert await listed_ids(client, tag="red", state="pending") == [live]
    assert await listed_ids(client, tag="green", state="completed") == [str(done)]
    assert await listed_ids(client, tag="re") == []
    assert await listed_ids(client, tag="red", limit=1) == [live, str(done)]
    (shown,) = (await client.get("/v1/runs", params={"tag": "blue"})).json()["items"]
    one = (await client.get(f"/v1/runs/{live}")).json()
    assert (shown["tags"], one["tags"], one["options"]) == (["red", "blue"], ["red", "blue"], None)
    assert (await client.get(f"/v1/runs/{plain}")).json()["tags"] == []


async def test_recurring_jobs_pass_their_tags_on_and_are_found_by_them(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, tags in (("a", ["red"]), ("b", ["blue"]), ("c", ["red", "blue"]), ("d", [])):
        job = await created(client, name=name, task="simulate", every="1h", tags=tags)
        assert job["tags"] == tags
    run = (await client.post("/v1/jobs/c/trigger")).json()["id"]
    assert (await client.get(f"/v1/runs/{run}")).json()["tags"] == ["red", "blue"]
    assert await listed_ids(client, job="c", tag="red") == [run]
    assert await listed_ids(client, job="c", tag="green") == []

    async def names(**query: Any) -> list[str]:
        found: list[str] = []
        after: str | None = ""
        while after is not None:
            page = (await client.get("/v1/jobs", params={**query, "after": after})).json()
            found += [item["name"] for item in page["items"]]
            after = page["next"]
        return found

    assert await names(tag="red") == ["a", "c"]
    assert await names(tag="blue", limit=1) == ["b", "c"]
    assert await names(tag="nothing") == []
    monkeypatch.setattr(recurring, "SCAN_MAX", 1)
    assert await names(tag="blue") == ["b", "c"]
    paused = await client.post("/v1/jobs/pause", json={"tag": "red", "expected": 2})
    assert paused.json()["names"] == ["a", "c"]
    changed = await client.patch("/v1/jobs/a", json={"tags": []})
    assert (changed.json()["tags"], await names(tag="red")) == ([], ["c"])


async def test_a_workflow_and_its_steps_have_tags_of_their_own(client: httpx.AsyncClient) -> None:
    steps = [{"key": "one", "task": "simulate", "tags": ["step"]}, {"key": "two", "task": "simulate", "after": ["one"]}]
    made = await created(client, "/v1/workflows", steps=steps, tags=["flow"], metadata={"team": "web"})
    assert await listed_ids(client, tag="flow") == [made["id"]]
    assert await listed_ids(client, tag="step") == [made["steps"]["one"]]
    assert (await client.get(f"/v1/runs/{made['id']}")).json()["metadata"] == {"team": "web"}


async def test_a_map_passes_its_tags_on_to_its_items(client: httpx.AsyncClient) -> None:
    step = {
        "key": "all",
        "task": "simulate",
        "tags": ["many"],
        "map": {"items": [1, 2]},
        "notify": {"url": "https://example.org"},
    }
    made = await created(client, "/v1/workflows", steps=[step])
    run = (await client.get(f"/v1/runs/{made['steps']['all']}")).json()
    assert (run["tags"], run["payload"]["tags"], "notify" in run["payload"], "notify" in run["options"]) == (
        ["many"],
        ["many"],
        False,
        True,
    )


async def test_the_sql_function_takes_tags_metadata_and_notify(client: httpx.AsyncClient, sql: Any) -> None:
    run = await sql.fetchval(
        """select foliot.submit('{"task": "simulate", "tags": ["red"], "metadata": {"team": "web"}, "notify": {"url": "https://example.org"}}')"""
    )
    shown = (await client.get(f"/v1/runs/{run}")).json()
    assert (shown["tags"], shown["metadata"]) == (["red"], {"team": "web"})
    assert shown["options"]["notify"] == [{"url": "https://example.org", "on": ["failed"]}]


@pytest.mark.parametrize(
    "field",
    [
        '"tags": "red"', '"tags": ["a b"]', '"tags": ["a,b"]', '"tags": [1]', '"tags": [""]', '"metadata": '
        '[]', '"notify": "x"',
        '"notify": {"url": "ftp://x"}', '"notify": {}', '"notify": {"url": "https://x", "on": "failed"}',
    ],
)  # fmt: skip
async def test_the_sql_function_refuses_invalid_tags(client: httpx.AsyncClient, sql: Any, field: str) -> None:
    with pytest.raises(Exception, match=f"{field.split(chr(34))[1]}: "):
        await sql.fetchval("select foliot.submit($1::text::jsonb)", f'{{"task": "simulate", {field}}}')


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tags": ["a b"]}, "tags[0]"),
        ({"tags": ["x", "a,b"]}, "tags[1]"),
        ({"tags": ["a\n"]}, "tags[0]"),
        ({"tags": [""]}, "tags[0]"),
        ({"tags": ["x" * 65]}, "tags[0]"),
        ({"tags": [str(n) for n in range(21)]}, "tags"),
        ({"tags": "a"}, "tags"),
        ({"notify": {"url": "ftp://example.org"}}, "notify"),
        ({"notify": {"url": "https://"}}, "notify"),
        ({"notify": {"url": "https://example.org\r\n"}}, "notify"),
        ({"notify": {"url": "https://example.org", "on": []}}, "notify.on"),
        ({"notify": {"url": "https://example.org", "on": ["done"]}}, "notify.on[0]"),
        ({"notify": {"url": "https://example.org", "headers": {"Host": "x"}}}, "notify"),
        ({"notify": {"url": "https://example.org", "headers": {"X": "a\nb"}}}, "notify"),
        ({"notify": [{"url": "https://example.org"}] * 6}, "notify"),
    ],
    ids=range(15),
)
async def test_invalid_tags_are_refused(client: httpx.AsyncClient, fields: dict[str, Any], field: str) -> None:
    answer = await client.post("/v1/jobs", json={"task": "simulate", **fields})
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
