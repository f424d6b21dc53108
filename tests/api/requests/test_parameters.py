"""Well-formed requests with impossible values: names, times, schedules, workflows and queries. Each is refused, and
nothing is stored."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from foliot.api.requests.body_limits import DEPTH_MAX
from foliot.model.workflow import STEPS_MAX
from foliot.store.store import Store
from tests.support.problems import JSON, problem_of

PROMPT_SECONDS = 15.0
"""For what takes milliseconds: on a slow machine under load still far from what a superlinear check of the same would
take."""


async def refused(client: httpx.AsyncClient, path: str, body: object) -> tuple[int, str]:
    """The status, and the field that the error names."""
    begun = time.monotonic()
    answer = await client.post(path, json=body)
    assert time.monotonic() - begun < PROMPT_SECONDS
    status, code, field = problem_of(answer)
    assert code in ("invalid", "invalid_cron", "malformed"), answer.text
    return int(str(status)), str(field)


def recurring(**fields: Any) -> dict[str, Any]:
    return {"task": "send_invoice", "cron": "0 3 * * *", **fields}


NAMES = {
    "a path upwards": "../../etc/passwd",
    "a slash": "a/b",
    "two dots": "..",
    "a dot": ".",
    "one character too many": "n" * 201,
    "a right-to-left override": "a\u202eb",
    "a zero-width space": "a\u200bb",
    "a byte order mark": "a\ufeff",
    "not in normal form": "cafe\u0301",
    "a lookup": "${jndi:ldap://x}",
    "a tab": "a\tb",
    "a line break": "a\nb",
    "a blank at the end": "a ",
    "the nil id": "00000000-0000-0000-0000-000000000000",
    "an id without hyphens": "0" * 32,
}
GOOD_NAMES = [
    "n" * 200, "\U0001f4c5", "caf\u00e9", "%2e%2e", "%", "_", "<img src=x onerror=alert(1)>", "{{7*7}}",
    "'; DROP TABLE foliot.jobs;--",
    "a\\b", "-1", "9223372036854775808", "\u05d0\u05d1",
]  # fmt: skip


@pytest.mark.usefixtures("nothing_is_stored")
async def test_names_that_a_path_could_not_hold_are_refused(client: httpx.AsyncClient) -> None:
    answers = {why: await refused(client, "/v1/jobs", recurring(name=name)) for why, name in NAMES.items()}
    assert answers == dict.fromkeys(NAMES, (422, "name"))


async def test_any_other_name_is_stored_and_found_unchanged(client: httpx.AsyncClient) -> None:
    for name in GOOD_NAMES:
        made = await client.post("/v1/jobs", json=recurring(name=name))
        assert made.status_code == 201, made.text
        found = await client.get(f"/v1/jobs/{quote(name, safe='')}")
        assert (found.json()["id"], found.json()["name"]) == (made.json()["id"], name)
        assert found.headers["content-type"] == "application/json"
    # Wildcards of SQL patterns are ordinary characters in names and searches.
    for name in ("%", "_", "a\\b", "'; DROP TABLE foliot.jobs;--"):
        asked = await client.post("/v1/jobs/pause", json={"name": name, "dry_run": True})
        assert asked.json()["names"] == [name]
        assert (await client.get("/v1/runs", params={"text": name})).json()["items"] == []


IDS = [
    "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "-1", "9223372036854775808", "0x1",
    "%00", "a%2fb",
    "%2e%2e", "..%2f..%2fetc%2fpasswd", "%ff%fe", "%F0%9F%93%85", "'", "1%20or%201=1", "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/runs", "/v1/workflows", "/v1/explain", "/v1/calendars", "/jobs"])
async def test_unknown_ids_are_not_found(client: httpx.AsyncClient, path: str) -> None:
    for reference in IDS:
        assert problem_of(await client.get(f"{path}/{reference}"))[:2] == (404, "not_found"), reference


async def test_changes_to_unknown_resources_are_not_found(client: httpx.AsyncClient) -> None:
    for reference in IDS[:8]:
        for method, path in (
            ("PATCH", f"/v1/jobs/{reference}"), ("DELETE", f"/v1/jobs/{reference}"), ("POST",
                f"/v1/jobs/{reference}/trigger"),
            ("POST", f"/v1/runs/{reference}/cancel"), ("POST", f"/v1/runs/{reference}/rerun"),
            ("POST", f"/v1/workflows/{reference}/redrive"),
            ("POST", f"/v1/workers/{reference}/drain"), ("DELETE", f"/v1/calendars/{reference}"), ("DELETE",
                f"/jobs/{reference}"),
        ):  # fmt: skip
            answer = await client.request(method, path, json={})
            assert problem_of(answer)[:2] == (404, "not_found"), (method, path)


SCHEDULES: dict[str, tuple[dict[str, Any], str]] = {
    "the 30th of February": ({"cron": "0 0 30 2 *"}, "cron"),
    "the 31st of April": ({"cron": "0 0 31 4 *"}, "cron"),
    "every zero minutes": ({"cron": "*/0 * * * *"}, "cron"),
    "minute 60": ({"cron": "60 * * * *"}, "cron"),
    "a huge range": ({"cron": "1-100000000 * * * *"}, "cron"),
    "a range backwards": ({"cron": "5-1 * * * *"}, "cron"),
    "nothing but commas": ({"cron": ",,, * * * *"}, "cron"),
    "an expression of 10 kB": ({"cron": "1," * 5000 + "1 * * * *"}, "cron"),
    "many numbers": ({"cron": "1," * 200 + "1 * * * * * * *"}, "cron"),
    "a huge number": ({"cron": "9" * 400 + " * * * *"}, "cron"),
    "at every boot": ({"cron": "@reboot"}, "cron"),
    "four fields": ({"cron": "* * * *"}, "cron"),
    "an empty expression": ({"cron": ""}, "cron"),
    "an empty list": ({"cron": []}, "cron"),
    "a zone that is not": ({"timezone": "Europe/Nowhere"}, "timezone"),
    "a zone that is a path": ({"timezone": "../../../etc/localtime"}, "timezone"),
    "an absolute path": ({"timezone": "/etc/localtime"}, "timezone"),
    "a zone that is a directory": ({"timezone": "Europe"}, "timezone"),
    "no zone": ({"timezone": ""}, "timezone"),
    "an end before the start": ({"start_at": "2027-01-02T00:00:00Z", "end_at": "2027-01-01T00:00:00Z"}, "end_at"),
    "an end that is over": ({"end_at": "2001-01-01T00:00:00Z"}, "end_at"),
    "a start without an offset": ({"start_at": "2027-01-01T00:00:00"}, "start_at"),
    "a jitter of two days": ({"jitter_seconds": 172_800}, "jitter_seconds"),
    "a jitter before": ({"jitter_seconds": -1}, "jitter_seconds"),
    "ten years to catch up": ({"catchup": "all", "catchup_window": "3650d"}, "catchup_window"),
    "a million to catch up": ({"catchup": "all", "catchup_max": 1_000_000}, "catchup_max"),
    "no runs": ({"max_runs": 0}, "max_runs"),
    "every nothing": ({"cron": None, "every": "0s"}, "every"),
    "every age": ({"cron": None, "every": "99999999999d"}, "every"),
    "every backwards": ({"cron": None, "every": "-5m"}, "every"),
    "instants of the past": ({"cron": None, "times": ["2001-01-01T00:00:00Z"]}, "times"),
    "an instant after the end of time": ({"cron": None, "times": ["2250-01-01T00:00:00Z"]}, "times"),
    "an instant after the end of time beside another": (
        {"cron": None, "times": ["2190-01-01T00:00:00Z", "2200-01-01T00:00:00Z"]},
        "times",
    ),
    "no instants": ({"cron": None, "times": []}, "times"),
}


@pytest.mark.usefixtures("nothing_is_stored")
async def test_impossible_schedules_are_refused(client: httpx.AsyncClient) -> None:
    answers = {why: await refused(client, "/v1/jobs", recurring(**fields)) for why, (fields, _) in SCHEDULES.items()}
    assert answers == {why: (422, field) for why, (_, field) in SCHEDULES.items()}


@pytest.mark.usefixtures("nothing_is_stored")
async def test_impossible_instants_are_refused(client: httpx.AsyncClient) -> None:
    for instant in (
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "2200-01-01T00:00:00Z",
        "2027-01-01T00:00:00",
        "1e9",
        "",
        "-1",
    ):
        for field in ("schedule_time", "schedule") if instant[4:5] == "-" else ("schedule_time",):
            assert await refused(client, "/v1/jobs", {"task": "send_invoice", field: instant}) == (422, field), instant
    for field, value in {"timeout_seconds": 0, "delay_seconds": -1, "priority": 2**63, "retries": -1}.items():
        assert await refused(client, "/v1/jobs", {"task": "send_invoice", field: value}) == (422, field)
    assert await refused(client, "/v1/jobs", {"task": "send_invoice", "timeout_seconds": 10**12}) == (
        422,
        "timeout_seconds",
    )


async def test_a_schedule_time_in_the_past_means_now(client: httpx.AsyncClient) -> None:
    for instant in ("1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"):
        answer = await client.post("/v1/jobs", json={"task": "send_invoice", "schedule_time": instant})
        assert (answer.status_code, answer.json()["state"]) == (201, "ready")


async def test_a_backfill_over_ages_is_refused(client: httpx.AsyncClient) -> None:
    await client.post("/v1/jobs", json=recurring(name="busy", cron="* * * * * *"))
    for begin, end, field in (
        ("1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "to"), ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "to"),
        ("0001-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "from"), ("2026-01-01T00:00:00", "2026-01-02T00:00:00Z",
            "from"),
        ("2026-01-01T00:00:00Z", "2199-01-01T00:00:00Z", "to"),
    ):  # fmt: skip
        assert await refused(client, "/v1/jobs/busy/backfill", {"from": begin, "to": end}) == (422, field), (begin, end)
    assert (await client.get("/v1/jobs/busy/ticks")).json()["items"] == []


def step(key: str, *after: str, **fields: Any) -> dict[str, Any]:
    return {"key": key, "task": "send_invoice", "after": list(after), **fields}


def ring(length: int) -> list[dict[str, Any]]:
    return [step(f"s{index}", f"s{(index - 1) % length}") for index in range(length)]


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"key": "innermost", "task": "send_invoice"}
    for _ in range(depth):
        inner = {"key": "inner", "task": "workflow", "payload": {"steps": [inner]}}
    return inner


WORKFLOWS: dict[str, list[dict[str, Any]]] = {
    "no steps": [],
    "a step after itself": [step("a", "a")],
    "a ring of two": ring(2),
    "a ring of 10,000": ring(10_000),
    "a ring at the end of a chain": [
        step("first"),
        *[step(f"c{n}", f"c{n - 1}" if n else "first") for n in range(5000)],
        *ring(3),
    ],
    "too many steps": [step(f"s{index}") for index in range(STEPS_MAX + 1)],
    "a key twice": [step("a"), step("a")],
    "after nothing there is": [step("a", "b")],
    "after one twice": [step("a"), step("b", "a", "a")],
    "an empty key": [step("")],
    "a key with a slash": [step("a/b")],
    "nested too deeply": [nested(12)],
    "a map of no list": [step("a", map={"items": "many"})],
}


@pytest.mark.usefixtures("nothing_is_stored")
async def test_impossible_workflows_are_refused_quickly(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    await store.workers.announce_tasks({"workflow": "default"})
    for why, steps in WORKFLOWS.items():
        status, field = await refused(client, "/v1/workflows", {"steps": steps})
        assert (status, field.startswith("steps")) == (422, True), why
    assert (
        await sql.fetchval("select (select count(*) from foliot.parents) + (select count(*) from foliot.dependencies)")
        == 0
    )


@pytest.mark.usefixtures("nothing_is_stored")
async def test_workflows_with_too_many_dependencies_are_refused_quickly(client: httpx.AsyncClient) -> None:
    """Each step depends on all before it. 10 million dependencies are useless, and the body would be too large
    anyway."""
    steps = [step(f"s{index}", *(f"s{before}" for before in range(index))) for index in range(3000)]
    begun = time.monotonic()
    answer = await client.post("/v1/workflows", content=json.dumps({"steps": steps}).encode(), headers=JSON)
    assert time.monotonic() - begun < PROMPT_SECONDS
    assert answer.status_code in (413, 422), answer.text


QUERIES = {
    "/v1/runs?limit=1000000000": "limit", "/v1/runs?limit=0": "limit", "/v1/runs?limit=-1": "limit",
    "/v1/runs?limit=1e3": "limit",
    "/v1/runs?after=tampered": "after", "/v1/runs?job=nothing": "job", "/v1/runs?parent=x": "parent",
    "/v1/runs?state=sleeping": "state",
    "/v1/runs?since=yesterday": "since", "/v1/runs?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z": "until",
    "/v1/runs?text=%00": "text", "/v1/runs?text=" + "x" * 501: "text", "/v1/runs?since=9999-12-31T00:00:00Z": "since",
    "/v1/runs?since=99999999999999d": "since", "/v1/dead-letters?flat=1&after=1.2": "after",
    "/v1/dead-letters?limit=201": "limit",
    "/v1/dead-letters?flat=1&after=99999999999999999999.0190a6f0-0000-7000-8000-000000000001": "after",
    "/v1/workflows?after=x": "after", "/v1/workflows?state=scheduled": "state",
    "/v1/jobs?limit=201": "limit", "/jobs?status=asleep": "status",
    "/v1/runs?state=" + ",".join(["ready"] * 9000 + ["sleeping"]): "state",
}  # fmt: skip


async def test_impossible_queries_are_refused(client: httpx.AsyncClient) -> None:
    for path, field in QUERIES.items():
        status, code, named = problem_of(await client.get(path))
        assert (status, code, named) == (422, "invalid", field), path


@pytest.mark.usefixtures("nothing_is_stored")
async def test_too_many_ids_are_refused(client: httpx.AsyncClient) -> None:
    ids = [f"0190a6f0-0000-7000-8000-{number:012}" for number in range(10_001)]
    assert await refused(client, "/v1/dead-letters/replay", {"ids": ids}) == (422, "ids")


@pytest.mark.usefixtures("nothing_is_stored")
async def test_a_batch_with_one_job_too_many_stores_nothing(client: httpx.AsyncClient) -> None:
    assert await refused(client, "/v1/jobs/batch", {"jobs": [{"task": "send_invoice"}] * 10_001}) == (422, "jobs")
    assert await refused(client, "/v1/jobs/batch", []) == (422, "jobs")


async def test_a_hundred_requests_with_one_key_make_one_job(client: httpx.AsyncClient, sql: Any) -> None:
    headers = {"Idempotency-Key": "once"}
    answers = await asyncio.gather(
        *(client.post("/v1/jobs", json={"task": "send_invoice"}, headers=headers) for _ in range(100))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 99 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    other = await client.post("/v1/jobs", json={"task": "send_invoice", "priority": 1}, headers=headers)
    assert problem_of(other)[:2] == (409, "conflict")
    for key in ("", "k" * 10_000, "\u00e9"):
        answer = await client.post(
            "/v1/jobs", json={"task": "send_invoice"}, headers={b"Idempotency-Key": key.encode("latin-1")}
        )
        assert problem_of(answer) == (422, "invalid", "idempotency_key")
    assert await sql.fetchval("select count(*) from foliot.runs") == 1


async def test_bodies_have_a_maximum_depth_and_brackets_in_text_do_not_count(client: httpx.AsyncClient) -> None:
    def payload(depth: int) -> bytes:
        return b'{"task": "send_invoice", "payload": {"a": ' + b"[" * depth + b"]" * depth + b"}}"

    assert (await client.post("/v1/jobs", content=payload(DEPTH_MAX - 2), headers=JSON)).status_code == 201
    assert problem_of(await client.post("/v1/jobs", content=payload(DEPTH_MAX - 1), headers=JSON)) == (
        400,
        "malformed",
        "body",
    )
    flat = {"task": "send_invoice", "payload": {"a": '[{"\\' * 1000, "b": [{}] * 1000, 'c"[': [[]] * 1000}}
    made = await client.post("/v1/jobs", json=flat)
    assert (await client.get(made.headers["location"])).json()["payload"] == flat["payload"]


async def test_a_payload_of_very_many_keys_is_kept_as_it_is(client: httpx.AsyncClient) -> None:
    payload = {f"{number:x}": number for number in range(50_000)}
    begun = time.monotonic()
    made = await client.post("/v1/jobs", json={"task": "send_invoice", "payload": payload})
    assert (await client.get(made.headers["location"])).json()["payload"] == payload
    assert time.monotonic() - begun < PROMPT_SECONDS


async def test_the_last_of_repeated_keys_counts(client: httpx.AsyncClient) -> None:
    """PostgreSQL and JSON parsers agree on this, so nothing between client and database can read another value."""
    body = b'{"task": "shell", "task": "send_invoice", "payload": {"a": 1, "a": 2}}'
    made = await client.post("/v1/jobs", content=body, headers=JSON)
    shown = (await client.get(made.headers["location"])).json()
    assert (made.json()["task"], shown["task"], shown["payload"]) == ("send_invoice", "send_invoice", {"a": 2})
