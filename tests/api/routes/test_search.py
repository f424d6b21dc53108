"""`GET /v1/search`: parts of names and beginnings of ids, of the caller's namespace only."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from foliot.api.routes import search
from foliot.model.ids import new_id
from foliot.store.store import Store


async def hits(client: httpx.AsyncClient, words: str, namespace: str = "default") -> set[tuple[str, str | None]]:
    answer = await client.get("/v1/search", params={"q": words}, headers={"Foliot-Namespace": namespace})
    assert answer.status_code == 200, answer.text
    return {(one["kind"], one["name"]) for one in answer.json()["items"]}


async def make(client: httpx.AsyncClient, path: str = "/v1/jobs", namespace: str = "default", **fields: Any) -> str:
    answer = await client.post(path, json=fields, headers={"Foliot-Namespace": namespace})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_everything_with_a_name_is_found_by_a_part_of_it_in_any_case(
    client: httpx.AsyncClient, store: Store
) -> None:
    await make(client, task="simulate", name="Nightly-Mail", cron="0 3 * * *")
    await store.workers.register_worker(new_id(), "mail-host-1", {"mail": 2}, ["send_mail"])
    await store.workers.announce_tasks({"send_mail": "mail"})
    await client.put("/v1/calendars/mail-free", json={"weekdays": ["SUN"]})
    found = await hits(client, "mAil")
    assert found >= {
        ("job", "Nightly-Mail"), ("task", "send_mail"), ("queue", "mail"), ("worker", "mail-host-1"),
        ("calendar", "mail-free"),
    }  # fmt: skip
    assert await hits(client, "nothing has this name") == set()


async def test_signs_of_patterns_stand_for_themselves(client: httpx.AsyncClient) -> None:
    await make(client, task="simulate", name="half_day", cron="0 3 * * *")
    await make(client, task="simulate", name="halfxday", cron="0 3 * * *")
    assert await hits(client, "f_d") == {("job", "half_day")}
    assert await hits(client, "%") == set()
    assert await hits(client, "\\") == set()


async def test_other_namespaces_are_not_seen(client: httpx.AsyncClient, store: Store) -> None:
    await store.workers.announce_tasks({"team/simulate": "team/default"})
    job = await make(client, namespace="team", task="simulate", name="theirs", cron="0 3 * * *")
    await make(client, task="simulate", name="ours", cron="0 3 * * *")
    assert await hits(client, "rs", "team") == {("job", "theirs")}
    assert await hits(client, "ours") == {("job", "ours")}
    assert await hits(client, "team") == set()
    assert await hits(client, job) == set()
    assert await hits(client, job, "team") == {("job", "theirs")}


async def test_a_run_is_found_by_the_beginning_of_its_id(client: httpx.AsyncClient) -> None:
    run = await make(client, task="simulate", name="one")
    answer = await client.get("/v1/search", params={"q": run[:18]})
    assert answer.json()["items"][0] == {"kind": "run", "id": run, "name": "one", "hint": "simulate"}


async def test_each_kind_is_cut(client: httpx.AsyncClient) -> None:
    for number in range(search.EACH_MAX + 2):
        await make(client, task="simulate", name=f"many-{number}", cron="0 3 * * *")
    assert len(await hits(client, "many")) == search.EACH_MAX


@pytest.mark.parametrize("words", ["", "  "])
async def test_no_words_find_nothing(client: httpx.AsyncClient, words: str) -> None:
    assert await hits(client, words) == set()


@pytest.mark.parametrize("words", ["x" * 201, "a\0b"])
async def test_bad_words_are_refused(client: httpx.AsyncClient, words: str) -> None:
    answer = await client.get("/v1/search", params={"q": words})
    assert (answer.status_code, answer.json()["field"]) == (422, "q")
