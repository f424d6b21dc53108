"""Names of recurring jobs: which are accepted, and that each leads to its job."""

from __future__ import annotations

from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.problems import problem_of
from tests.support.recurring import call_job, create_job, get_job, succeed, ticks_of

AN_ID = "01a1e216-7f2b-7541-b0db-c136d93264be"
GOOD_NAMES = [
    *["a b", "100%", "%2F", "%00", "%", 'say "hi"', "it's", "a?b=c&d#e", "a\\b", "a+b"],
    *["a;b", "...", "<b>", "$1", "-", "a:b@c", "n" * 200],
    *["é", "😀", "👩\u200d🚀", "\u0646\u200c\u0645", "日本語", "\U0010ffff" * 200],
    *["next", "null", "true", "{reference}", "-- drop", "0", "deadbeef", AN_ID[1:]],
]  # fmt: skip
BAD_NAMES = [
    *["", "a/b", "/", "a/", ".", "..", " a", "a ", "\u00a0a", "a\u3000", " ", "n" * 201],
    *["a\nb", "a\tb", "\x1b[31m", "\x7f", "\x85", "a\0b", "a\u2028b", "\u202egpj.exe", "\u200bzero width",
        "\ufeffmark", "e\u0301"],
    *[AN_ID, AN_ID.replace("-", "").upper(), f"{{{AN_ID}}}", f"urn:uuid:{AN_ID}"],
]  # fmt: skip


async def test_a_name_with_any_visible_character_finds_its_job(client: httpx.AsyncClient) -> None:
    jobs = {name: await create_job(client, every="5m", name=name) for name in GOOD_NAMES}
    for name, job in jobs.items():
        assert job["name"] == name
        for reference in (name, job["id"]):
            assert (await get_job(client, reference))["id"] == job["id"]
        assert (await succeed(client, "PATCH", name, priority=3))["id"] == job["id"]
        for rest in ("/pause", "/resume", "/trigger"):
            assert (await call_job(client, "POST", name, rest)).is_success
        assert len(await ticks_of(client, name)) == 1
        assert (await call_job(client, "DELETE", name)).status_code == 204
        assert (await call_job(client, "GET", job["id"])).status_code == 404


async def test_a_name_that_no_path_could_hold_or_that_looks_like_an_id_is_refused(
    client: httpx.AsyncClient, sql: Any
) -> None:
    for name in BAD_NAMES:
        answer = await client.post("/v1/jobs", json={"task": "send_invoice", "every": "5m", "name": name})
        assert problem_of(answer) == (422, "invalid", "name"), name
        for reference in {name, name.strip()} - {"", ".", ".."}:
            assert (await call_job(client, "GET", reference)).status_code in (
                307,
                404,
            )  # from `a/` callers are sent to `a`
    assert await sql.fetchval("select count(*) from foliot.jobs") == 0


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=4))
async def test_any_name_is_refused_or_found_again(client: httpx.AsyncClient, name: str) -> None:
    answer = await client.post("/v1/jobs", json={"task": "send_invoice", "every": "5m", "name": name})
    if answer.status_code == 201:
        assert (await get_job(client, name))["id"] == answer.json()["id"]
    elif answer.status_code != 409:
        assert problem_of(answer) == (422, "invalid", "name")
