"""Recurring jobs over HTTP, on a clock moved by hand: made, shown, changed, paused, triggered, deleted, and never half
of it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.api.app import build_app
from foliot.clock import Clock, SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import SHARDS, new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store, open_store
from foliot.submission.job_changes import CHANGEABLE
from foliot.submission.submitter import Submitter
from tests.support.fake_clock import FakeClock
from tests.support.proxy import Proxy, proxy_to
from tests.support.runs import claim_runs

WORKER = new_id()
TASKS = ["send_invoice", "shell", "simulate"]
JSON = {"content-type": "application/json"}
OTHER_ROUTES = [("PATCH", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/trigger"), ("GET", "/ticks"),
                ("GET", "/next")]  # fmt: skip


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    """It is 2026-03-01, 12:00 UTC, and stays so until a test moves on."""
    return fake_clock


def path_of(reference: str, rest: str = "") -> str:
    return f"/v1/jobs/{quote(reference, safe='')}{rest}"


async def create(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/jobs", json={"task": "send_invoice", **fields})
    assert answer.status_code == 201, answer.text
    job: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    return job


async def call(client: httpx.AsyncClient, method: str, reference: str, rest: str = "", **body: Any) -> httpx.Response:
    return await client.request(method, path_of(reference, rest), json=None if method == "GET" else body)


async def done(client: httpx.AsyncClient, method: str, reference: str, rest: str = "", **body: Any) -> dict[str, Any]:
    answer = await call(client, method, reference, rest, **body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def show(client: httpx.AsyncClient, reference: str) -> dict[str, Any]:
    return await done(client, "GET", reference)


async def ticks_of(client: httpx.AsyncClient, reference: str, query: str = "") -> list[tuple[str, str, str | None]]:
    found = (await client.get(path_of(reference, "/ticks") + query)).json()["items"]
    return [(tick["outcome"], tick["tick_at"], tick["until_at"]) for tick in found]


def problem(answer: httpx.Response) -> tuple[int, str, str | None]:
    document = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert document["status"] == answer.status_code
    assert document["detail"]
    return answer.status_code, document["code"], document.get("field")


async def end_runs(store: Store) -> int:
    claims = await claim_runs(store, WORKER, {"mail": 100, "default": 100, "bulk": 100}, TASKS)
    return await store.runs.finish_runs(
        WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED) for claim in claims]
    )


# Creating


async def test_a_job_by_cron_waits_for_its_first_tick_after_now(client: httpx.AsyncClient, sql: Any) -> None:
    job = await create(
        client,
        cron="0 9 * * MON-FRI",
        timezone="Europe/Zurich",
        name="morning",
        payload={"customer": 7},
        retries=2,
        max_runs=5,
    )
    assert job["next_at"] == "2026-03-02T08:00:00Z"
    assert {
        key: job[key]
        for key in ("name", "status", "task", "queue", "priority", "payload", "options", "version", "runs_left")
    } == {
        "name": "morning",
        "status": "active",
        "task": "send_invoice",
        "queue": "mail",
        "priority": 0,
        "payload": {"customer": 7},
        "options": {"retries": 2},
        "version": 1,
        "runs_left": 5,
    }
    assert (job["schedule"]["cron"], job["schedule"]["timezone"]) == ("0 9 * * MON-FRI", "Europe/Zurich")
    assert job["created"] is True
    assert await sql.fetchval("select count(*) from foliot.runs") == 0


async def test_a_job_by_period_counts_from_its_creation_or_its_start(client: httpx.AsyncClient) -> None:
    job = await create(client, every="1h30m")
    assert (job["created_at"], job["next_at"]) == ("2026-03-01T12:00:00Z", "2026-03-01T13:30:00Z")

    assert (await create(client, every="7h", start_at="2026-03-05T10:00:00+01:00"))["next_at"] == "2026-03-05T09:00:00Z"
    assert (await create(client, every="7h", start_at="2026-03-01T00:00:00Z"))["next_at"] == "2026-03-01T14:00:00Z"


async def test_a_schedule_may_be_a_cron_expression(client: httpx.AsyncClient) -> None:
    by_cron, by_schedule = await create(client, cron="*/20 * * * *"), await create(client, schedule="*/20 * * * *")
    assert by_schedule["schedule"] == by_cron["schedule"]
    assert by_schedule["next_at"] == by_cron["next_at"] == "2026-03-01T12:20:00Z"


async def test_a_schedule_may_be_a_time_and_then_makes_a_one_off_job(client: httpx.AsyncClient, sql: Any) -> None:
    job = await create(client, schedule="2026-03-01T18:00:00+05:30", name="any / name")
    assert (job["status"], job["scheduled_at"]) == ("scheduled", "2026-03-01T12:30:00Z")
    assert await sql.fetchval("select count(*) from foliot.jobs") == 0
    assert await sql.fetchval("select id from foliot.runs") == UUID(job["id"])


async def test_jitter_delays_the_firing_and_not_the_tick(client: httpx.AsyncClient, sql: Any) -> None:
    for _ in range(5):
        assert (await create(client, cron="0 13 * * *", jitter_seconds=600))["next_at"] == "2026-03-01T13:00:00Z"
    delays = [
        row[0] for row in await sql.fetch("select extract(epoch from fire_at - next_at)::bigint from foliot.jobs")
    ]
    assert all(0 <= delay <= 600 for delay in delays)
    assert len(set(delays)) > 1


async def test_a_name_that_is_taken_is_a_conflict(client: httpx.AsyncClient, sql: Any) -> None:
    first = await create(client, every="5m", name="report")
    assert problem(await client.post("/v1/jobs", json={"command": "true", "cron": "@daily", "name": "report"})) == (
        409,
        "conflict",
        None,
    )
    assert (await show(client, "report"))["id"] == first["id"]
    # Of those who want one at the same time, one gets it.
    bodies = [{"task": "send_invoice", "every": "5m", "name": "other", "priority": number} for number in range(8)]
    answers = await asyncio.gather(*(client.post("/v1/jobs", json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    (winner,) = (answer.json() for answer in answers if answer.status_code == 201)
    assert (await show(client, "other"))["priority"] == winner["priority"]
    assert {row[0] for row in await sql.fetch("select job_id from foliot.job_versions")} == {
        UUID(first["id"]),
        UUID(winner["id"]),
    }


async def test_a_job_without_a_name_gets_one(client: httpx.AsyncClient, store: Store) -> None:
    longest = "t" * 200
    await store.workers.announce_tasks({longest: "default"})
    for task in ("send_invoice", longest):
        one, other = await create(client, task=task, every="5m"), await create(client, task=task, every="5m")
        assert one["name"] != other["name"]
        assert one["name"].startswith(task[:180])
        assert len(one["name"]) <= 200
        assert (await show(client, one["name"]))["id"] == one["id"]


# Names

AN_ID = "01a1e216-7f2b-7541-b0db-c136d93264be"
GOOD_NAMES = [
    *["a b", "100%", "%2F", "%00", "%", 'say "hi"', "it's", "a?b=c&d#e", "a\\b", "a+b", "a;b", "...", "<b>", "$1", "-", "a:b@c", "n" * 200],
    *["é", "😀", "👩\u200d🚀", "\u0646\u200c\u0645", "日本語", "\U0010ffff" * 200],
    *["next", "null", "true", "{reference}", "-- drop", "0", "deadbeef", AN_ID[1:]],
]  # fmt: skip
BAD_NAMES = [
    *["", "a/b", "/", "a/", ".", "..", " a", "a ", "\u00a0a", "a\u3000", " ", "n" * 201],
    *["a\nb", "a\tb", "\x1b[31m", "\x7f", "\x85", "a\0b", "a\u2028b", "\u202egpj.exe", "\u200bzero width", "\ufeffmark", "e\u0301"],
    *[AN_ID, AN_ID.replace("-", "").upper(), f"{{{AN_ID}}}", f"urn:uuid:{AN_ID}"],
]  # fmt: skip


async def test_a_name_may_have_any_visible_character_and_leads_to_its_job(client: httpx.AsyncClient) -> None:
    jobs = {name: await create(client, every="5m", name=name) for name in GOOD_NAMES}
    for name, job in jobs.items():
        assert job["name"] == name
        for reference in (name, job["id"]):
            assert (await show(client, reference))["id"] == job["id"]
        assert (await done(client, "PATCH", name, priority=3))["id"] == job["id"]
        for rest in ("/pause", "/resume", "/trigger"):
            assert (await call(client, "POST", name, rest)).is_success
        assert len(await ticks_of(client, name)) == 1
        assert (await call(client, "DELETE", name)).status_code == 204
        assert (await call(client, "GET", job["id"])).status_code == 404


async def test_a_name_that_no_path_could_hold_or_that_looks_like_an_id_is_refused(
    client: httpx.AsyncClient, sql: Any
) -> None:
    for name in BAD_NAMES:
        answer = await client.post("/v1/jobs", json={"task": "send_invoice", "every": "5m", "name": name})
        assert problem(answer) == (422, "invalid", "name"), name
        for reference in {name, name.strip()} - {"", ".", ".."}:
            assert (await call(client, "GET", reference)).status_code in (307, 404)  # from `a/` callers are sent to `a`
    assert await sql.fetchval("select count(*) from foliot.jobs") == 0


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=4))
async def test_any_name_is_refused_or_found_again(client: httpx.AsyncClient, name: str) -> None:
    answer = await client.post("/v1/jobs", json={"task": "send_invoice", "every": "5m", "name": name})
    if answer.status_code == 201:
        assert (await show(client, name))["id"] == answer.json()["id"]
    elif answer.status_code != 409:
        assert problem(answer) == (422, "invalid", "name")


# Bad requests


@dataclass(frozen=True)
class Bad:
    """Fields that make a good body bad, and the one to be named."""

    field: str
    fields: dict[str, Any]
    code: str = "invalid"


def bad(field: str, code: str = "invalid", **fields: Any) -> Bad:
    return Bad(field, fields, code)


BAD_CRON = [
    *["0 24 * * *", "60 * * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "* * * *", "* * * * * * * *", "@never", "@reboot", "nonsense"],
    *["*/0 * * * *", "5-1 * * * *", "0 0 30 2 *", "0 0 31 4,6 *", "٣ * * * *", " "],
]  # fmt: skip
NOT_A_SCHEDULE = [
    *[bad("cron", "invalid_cron", cron=cron) for cron in BAD_CRON],
    *[bad("schedule", "invalid_cron", schedule=cron) for cron in BAD_CRON],
    bad("cron", "invalid_cron", cron=""),
    bad("cron", cron="1," * 250 + "1 * * * *"),
    bad("cron", cron=5),
    bad("schedule", "invalid_cron", schedule=""),
    bad("schedule", "invalid_cron", schedule="tomorrow"),
    bad("schedule", schedule="2030-01-01T00:00:00"),
    bad("schedule", schedule="2030-01-01"),
    bad("schedule", schedule="2030-02-30T00:00:00Z"),
    bad("schedule", schedule="2030-01-01T00:00:00+25:00"),
    bad("schedule", schedule="9999-12-31T23:59:59-14:00"),
    *[bad("every", every=every) for every in ("", "0", "0s", "-5m", "5x", "1.5h", "1e3s", "37000d", "9" * 101, "٣m")],
]
NOT_AN_OPTION = [
    *[
        bad("timezone", cron="@daily", timezone=zone)
        for zone in ("Europe/Zuric", "", "CEST", "../UTC", "/etc/localtime", "UTC\n", "Europe")
    ],
    bad("timezone", every="1d", timezone="Mars/Olympus"),
    bad("overlap", every="5m", overlap="sometimes"),
    bad("overlap", every="5m", overlap=None),
    bad("catchup", every="5m", catchup="some"),
    *[
        bad("catchup_window", every="5m", catchup_window=window)
        for window in ("", "0s", "soon", "-1d", "366d", "36500d")
    ],
    bad("catchup_window", every="5m", catchup_window=86_400),
    *[bad("catchup_max", every="5m", catchup_max=most) for most in (0, 10_001, 1.5)],
    *[bad("jitter_seconds", every="5m", jitter_seconds=jitter) for jitter in (-1, 86_401, 0.5, "5")],
    *[bad("max_runs", every="5m", max_runs=most) for most in (0, -1, 10**40)],
    bad("retry_on", every="5m", retry_on=[]),
    bad("retry_on", every="5m", retry_on="ValueError"),
    *[bad("retry_on[0]", every="5m", retry_on=[cause]) for cause in (0, 256, "", None)],
    bad("never_on", every="5m", never_on=[]),
    bad("max_snoozes", every="5m", max_snoozes=-1),
    *[bad("backoff", every="5m", backoff=backoff) for backoff in ({"kind": "list"}, {"waits": [1]})],
    bad("dst_gap", cron="@daily", dst_gap="jump"),
    bad("dst_fold", cron="@daily", dst_fold="twice"),
    bad("start_at", every="5m", start_at="2030-01-01T00:00:00"),
    bad("end_at", every="5m", end_at="whenever"),
]
CONTRADICTORY = [
    bad("end_at", every="5m", start_at="2030-01-02T00:00:00Z", end_at="2030-01-01T00:00:00Z"),
    bad("end_at", every="5m", end_at="2026-03-01T12:04:59Z"),
    bad("end_at", cron="@daily", end_at="2020-01-01T00:00:00Z"),
    bad("start_at", cron="@daily", start_at="2200-01-02T00:00:00Z"),
    bad("start_at", every="5m", start_at="9999-12-31T23:59:59-14:00"),
    bad("every", cron="@daily", every="5m"),
    bad("schedule", cron="@daily", schedule="@hourly"),
    bad("schedule", every="5m", schedule="@hourly"),
    bad("schedule", cron="@daily", schedule="2030-01-01T00:00:00Z"),
    bad("delay_seconds", cron="@daily", delay_seconds=5),
    bad("delay_seconds", schedule="@daily", delay_seconds=0),
    bad("schedule_time", every="5m", schedule_time="2030-01-01T00:00:00Z"),
    bad("schedule", schedule="2030-01-01T00:00:00Z", delay_seconds=5),
    bad("schedule", schedule="2030-01-01T00:00:00Z", schedule_time="2031-01-01T00:00:00Z"),
    bad("start_at", start_at="2030-01-01T00:00:00Z"),
    bad("end_at", delay_seconds=5, end_at="2030-01-01T00:00:00Z"),
    bad("max_runs", schedule="2030-01-01T00:00:00Z", max_runs=1),
]


async def test_a_schedule_that_makes_no_sense_is_refused_by_its_field_and_nothing_is_stored(
    client: httpx.AsyncClient, sql: Any
) -> None:
    for case in [*NOT_A_SCHEDULE, *NOT_AN_OPTION, *CONTRADICTORY]:
        answer = await client.post("/v1/jobs", json={"task": "send_invoice", "name": "bad", **case.fields})
        assert problem(answer) == (422, case.code, case.field), case
    stored = "select (select count(*) from foliot.jobs) + (select count(*) from foliot.job_versions) + (select count(*) from foliot.runs)"
    assert await sql.fetchval(stored) == 0
    for fields, words in [
        ({"cron": "0 24 * * *"}, "cron: hour: 24 is not between 0 and 23"),
        ({"schedule": "0 24 * * *"}, "schedule: hour: 24 is not between 0 and 23"),
        ({"cron": "0 0 30 2 *"}, "never comes in month '2'"),
        ({"cron": "@daily", "timezone": "Europe/Zuric"}, "did you mean 'Europe/Zurich'?"),
        ({"every": "5x"}, "write it like 90s, 5m, 1h30m or 2d"),
        ({"schedule": "2030-01-01T00:00:00"}, "has no offset"),
    ]:
        assert words in (await client.post("/v1/jobs", json={"task": "send_invoice", **fields})).json()["detail"]


async def test_a_number_of_a_query_that_is_none_or_out_of_range_is_named(client: httpx.AsyncClient) -> None:
    await create(client, every="5m", name="report")
    for path, field, most in [
        ("/v1/jobs", "limit", 200),
        (path_of("report", "/ticks"), "limit", 200),
        (path_of("report", "/next"), "count", 1000),
    ]:
        for number in ("0", "-1", str(most + 1), "9" * 5000, "x", "", "1.5", "0x10", "null", "%00", "%EF%BC%91"):
            assert problem(await client.get(f"{path}?{field}={number}")) == (422, "invalid", field), number
        for number in ("1", str(most)):
            assert (await client.get(f"{path}?{field}={number}")).status_code == 200


async def test_what_is_no_recurring_job_is_not_found_whatever_is_asked_of_it(
    client: httpx.AsyncClient, sql: Any
) -> None:
    one_off = await create(client, name="one-off")
    for reference in (one_off["id"], "one-off", str(new_id()), "nothing", "%", "1" * 5000):
        for method, rest in OTHER_ROUTES:
            assert problem(await call(client, method, reference, rest)) == (404, "not_found", None), (method, rest)
    for raw in ("%00", "%ED%A0%80", "%FF", "a%2Fb", "%2E%2E%2Fhealthz"):
        for method, rest in OTHER_ROUTES:
            assert (
                problem(await client.request(method, f"/v1/jobs/{raw}{rest}", content=b"{}", headers=JSON))[0] == 404
            ), (
                method,
                raw,
                rest,
            )
    assert await sql.fetch("select id, state from foliot.runs") == [(UUID(one_off["id"]), "ready")]


# Showing and listing


async def test_a_job_is_shown_by_id_and_by_name_and_listed_as_it_was_made(client: httpx.AsyncClient) -> None:
    created = await create(
        client, cron="0 9 * * *", name="report", payload={"deep": [{"ü": None}, 10**40, 1.5]}, queue="bulk"
    )
    for reference in ("report", created["id"], created["id"].upper()):
        assert await show(client, reference) == created | {"created": False}
    assert (await client.get("/v1/jobs")).json()["items"] == [created | {"created": False}]
    longest = await create(client, every="5m", catchup_window="365d")
    assert (await show(client, longest["id"]))["schedule"]["catchup_window_seconds"] == 31_536_000


async def test_every_depth_of_payload_that_is_taken_can_be_shown_listed_changed_and_triggered(
    client: httpx.AsyncClient,
) -> None:
    taken = 0
    for depth in (1, 50, *range(90, 105), 500, 940):
        payload = b'{"payload": {"a": ' + b"[" * depth + b"]" * depth + b"}"
        answer = await client.post(
            "/v1/jobs", content=payload + b', "task": "send_invoice", "every": "5m", "name": "deep"}', headers=JSON
        )
        if answer.status_code == 400:
            continue
        taken += 1
        for path in ("/v1/jobs", path_of("deep")):
            assert (await client.get(path)).status_code == 200
        assert (await client.patch(path_of("deep"), content=payload + b"}", headers=JSON)).status_code == 200
        triggered = await done(client, "POST", "deep", "/trigger")
        assert (await call(client, "GET", triggered["id"])).status_code == 200
        assert (await call(client, "DELETE", "deep")).status_code == 204
    assert taken >= 3


async def pages(
    client: httpx.AsyncClient, limit: int, between: Callable[[], Awaitable[None]] | None = None
) -> list[list[str]]:
    """The names on each page, until there is no next one."""
    found, after = [], ""
    while True:
        page = (await client.get("/v1/jobs", params={"after": after, "limit": limit})).json()
        found.append([job["name"] for job in page["items"]])
        if page["next"] is None:
            return found
        after = page["next"]
        if between is not None:
            await between()


async def test_jobs_are_listed_page_by_page_each_once(client: httpx.AsyncClient) -> None:
    names = ["a", "A", "b", "B", "ä", "a b", "a-b", "ab", "Z", "z", "😀", "100%", "10", "9", "_", "é", "ê", "日本"]
    await create(client, name="one-off")
    assert (await client.get("/v1/jobs")).json() == {"items": [], "next": None}
    for name in names:
        await create(client, every="5m", name=name)
    (whole,) = await pages(client, 200)
    assert sorted(whole) == sorted(names)
    for limit in (1, 5, 6, 17, 18, 19):
        found = await pages(client, limit)
        assert [name for page in found for name in page] == whole
        assert all(len(page) == limit for page in found[:-1])


async def test_jobs_that_come_and_go_while_paging_make_no_duplicates_and_hide_no_others(
    client: httpx.AsyncClient,
) -> None:
    staying = [f"job {number:02}" for number in range(0, 40, 2)]
    for name in staying:
        await create(client, every="5m", name=name)
    numbers = iter(range(1, 40, 2))

    async def disturb() -> None:
        name = f"job {next(numbers):02}"
        await create(client, every="5m", name=name)
        await create(client, every="5m", name=f"a {name}")
        await done(client, "PATCH", staying[0], priority=1)
        await call(client, "DELETE", name)

    seen = [name for page in await pages(client, 3, disturb) for name in page]
    assert len(seen) == len(set(seen))
    assert set(staying) <= set(seen)


# Changing

CHANGES: dict[str, Any] = {
    "cron": "30 9 * * *",
    "timezone": "Asia/Tokyo",
    "dst_gap": "skip",
    "dst_fold": "both",
    "start_at": "2026-04-01T00:00:00Z",
    "end_at": "2027-04-01T00:00:00Z",
    "jitter_seconds": 30,
    "overlap": "buffer_all",
    "catchup": "all",
    "catchup_max": 7,
    "priority": -5,
    "queue": "bulk",
    "payload": {"customer": 8, "deep": [{"😀": None}, 10**40]},
    "calendar": "holidays",
    "on_excluded": "move",
    "times": ["2026-12-24T18:00:00Z"],
    "catchup_window": "2h",
    "max_runs": 12,
    "retries": 5,
    "max_retries": 6,
    "timeout_seconds": 9.5,
    "backoff": {"kind": "fixed", "base_seconds": 3.0},
    "retry_on": ["ConnectionError", 75],
    "never_on": ["ValueError"],
    "max_snoozes": 5,
    "concurrency": {"key": "tenant", "limit": 2, "at_limit": "wait"},
    "rate": {"key": "mail", "limit": 3, "period_seconds": 60.0},
    "fairness_key": "tenant",
    "guarantee": "at_most_once",
    "metadata": {"team": "web"},
    "tags": ["web", "nightly"],
    "notify": {"url": "https://example.org/hook"},
    "every": "2h",
}
# Where a field is shown that is not shown under its own name in the schedule.
SHOWN_AS = {
    "catchup_window": ("schedule", "catchup_window_seconds", 7200),
    "max_runs": ("runs_left", None, 12),
    "retries": ("options", "retries", 5),
    "max_retries": ("options", "retries", 6),
    "timeout_seconds": ("options", "timeout_seconds", 9.5),
    "backoff": ("options", "backoff", {"kind": "fixed", "base_seconds": 3.0}),
    **{
        field: ("options", field, CHANGES[field])
        for field in ("retry_on", "never_on", "max_snoozes", "fairness_key", "guarantee")
    },
    **{field: ("options", field, CHANGES[field]) for field in ("concurrency", "rate")},
    **{field: (field, None, CHANGES[field]) for field in ("priority", "queue", "payload", "metadata", "tags")},
    "notify": (
        "options",
        "notify",
        [{"url": "https://example.org/hook", "on": ["failed"], "headers": {}, "queue": None}],
    ),
}


async def test_each_field_is_changed_alone_and_every_version_is_kept(
    client: httpx.AsyncClient, sql: Any, fake_clock: FakeClock
) -> None:
    assert set(CHANGES) == CHANGEABLE
    assert (await client.put("/v1/calendars/holidays", json={"dates": ["2026-12-25"]})).status_code == 200
    job = await create(client, cron="0 9 * * *", name="report", payload={"customer": 7}, retries=3)
    expected = job | {"created": False}
    definitions = [{**expected["schedule"]}]
    for version, (field, value) in enumerate(CHANGES.items(), start=2):
        await fake_clock.advance(60)
        changed = await done(client, "PATCH", "report", **{field: value})
        place, key, shown = SHOWN_AS.get(field, ("schedule", field, value))
        expected[place] = shown if key is None else expected[place] | {key: shown}
        if field == "every":
            del expected["schedule"]["cron"]
        expected |= {"version": version, "updated_at": changed["updated_at"], "next_at": changed["next_at"]}
        assert changed == expected == await show(client, job["id"])
        assert datetime.fromisoformat(changed["updated_at"]) == fake_clock.now()
        assert datetime.fromisoformat(changed["next_at"]) > fake_clock.now()
        definitions.append({**expected["schedule"]})
    kept = await sql.fetch(
        "select version, definition -> 'schedule' as schedule, definition from foliot.job_versions order by version"
    )
    assert [row["version"] for row in kept] == list(range(1, len(CHANGES) + 2))
    assert [json.loads(row["schedule"]) for row in kept] == definitions
    last = json.loads(kept[-1]["definition"])
    expected["options"] |= {"metadata": expected["metadata"], "tags": expected["tags"]}
    assert {key: last[key] for key in ("name", "task", "queue", "priority", "payload", "options")} == {
        key: expected[key] for key in ("name", "task", "queue", "priority", "payload", "options")
    }


async def test_an_edit_moves_the_cursor_to_after_now(client: httpx.AsyncClient, fake_clock: FakeClock) -> None:
    await create(client, every="10m", name="report")
    await fake_clock.advance(25 * 60)
    assert (await show(client, "report"))["next_at"] == "2026-03-01T12:10:00Z"
    assert (await done(client, "PATCH", "report", priority=1))["next_at"] == "2026-03-01T12:30:00Z"
    await fake_clock.advance(5 * 60)
    # A tick at this very instant is not after now.
    assert (await done(client, "PATCH", "report", cron="30 * * * *"))["next_at"] == "2026-03-01T13:30:00Z"


async def test_a_job_changes_from_cron_to_a_period_and_back(client: httpx.AsyncClient) -> None:
    await create(client, cron="0 9 * * *", name="report", timezone="Asia/Tokyo")
    by_period = await done(client, "PATCH", "report", every="45m")
    assert (by_period["schedule"].get("cron"), by_period["schedule"]["every"]) == (None, "45m")
    assert by_period["next_at"] == "2026-03-01T12:45:00Z"
    by_cron = await done(client, "PATCH", "report", cron="0 10 * * *", every=None)
    assert (by_cron["schedule"]["cron"], by_cron["schedule"].get("every")) == ("0 10 * * *", None)
    assert by_cron["next_at"] == "2026-03-02T01:00:00Z"
    assert (await done(client, "PATCH", "report", every="1h", cron=None))["next_at"] == "2026-03-01T13:00:00Z"


async def test_null_takes_away_what_may_be_missing(client: httpx.AsyncClient) -> None:
    bounds = {"start_at": "2026-04-01T00:00:00Z", "end_at": "2026-05-01T00:00:00Z"}
    await create(client, cron="@hourly", name="report", payload={"a": 1}, **bounds)
    changed = await done(client, "PATCH", "report", start_at=None, end_at=None, payload=None)
    assert not {"start_at", "end_at"} & set(changed["schedule"])
    assert (changed["payload"], changed["next_at"]) == ({}, "2026-03-01T13:00:00Z")


async def test_an_edit_may_end_a_job_and_another_may_bring_it_back(client: httpx.AsyncClient) -> None:
    await create(client, cron="@hourly", name="report")
    ended = await done(client, "PATCH", "report", end_at="2026-03-01T12:59:59Z")
    assert (ended["status"], ended["next_at"]) == ("ended", None)
    back = await done(client, "PATCH", "report", end_at=None)
    assert (back["status"], back["next_at"]) == ("active", "2026-03-01T13:00:00Z")


async def test_a_field_that_is_unknown_or_can_t_be_changed_is_named(client: httpx.AsyncClient) -> None:
    job = await create(client, cron="@hourly", name="report")
    given = {"name": "other", "task": "shell", "job_type": "shell", "command": "true", "schedule": "@daily", "created_at": None,
             "delay_seconds": 1, "schedule_time": "2030-01-01T00:00:00Z", "id": job["id"], "version": 1, "next_at": None, "crno": "@daily",
             "": 1, "a - at b": 1}  # fmt: skip
    for field, value in given.items():
        answer = await call(client, "PATCH", "report", priority=3, **{field: value})
        assert answer.status_code == 422
        assert answer.json().get("field", "") == field
    assert await show(client, "report") == job | {"created": False}


BAD_CHANGES = [
    *[bad("cron", "invalid_cron", cron=cron) for cron in BAD_CRON],
    *[bad("cron", cron=None), bad("cron", cron=5), bad("cron", cron=None, every=None), bad("cron", cron="@daily", every="5m")],
    *[bad("every", every=every) for every in ("", "0s", "5x", 5)],
    *[bad("timezone", timezone=zone) for zone in ("Europe/Zuric", "", None, 1)],
    *[bad("priority", priority=priority) for priority in (1001, -1001, None, "1", 1.5)],
    *[bad("queue", queue=queue) for queue in ("", "a b", "q" * 201, 1)],
    *[bad("payload", payload=payload) for payload in (["a"], "{}", 1)],
    *[bad("overlap", overlap="no"), bad("catchup", catchup=None), bad("catchup_max", catchup_max=0)],
    bad("jitter_seconds", jitter_seconds=-1),
    *[bad("dst_gap", dst_gap="x"), bad("dst_fold", dst_fold="x"), bad("start_at", start_at="2030-01-01"), bad("end_at", end_at=0)],
    bad("end_at", start_at="2030-01-02T00:00:00Z", end_at="2030-01-01T00:00:00Z"),
    bad("payload.a", payload={"a": "\0"}),
]  # fmt: skip


async def test_a_bad_change_is_refused_by_its_field_and_changes_nothing(client: httpx.AsyncClient, sql: Any) -> None:
    job = await create(client, cron="@hourly", name="report")
    for case in BAD_CHANGES:
        assert problem(await call(client, "PATCH", "report", **case.fields)) == (422, case.code, case.field), case
    for body, status in {b"": 400, b"{": 400, b"[]": 422, b"null": 422, b'"x"': 422}.items():
        answer = await client.patch(path_of("report"), content=body, headers=JSON)
        assert problem(answer) == (status, "malformed" if status == 400 else "invalid", "body"), body
    assert await show(client, "report") == job | {"created": False}
    assert await sql.fetchval("select count(*) from foliot.job_versions") == 1


any_text = st.text(st.characters(codec=None), max_size=4)
changes = st.dictionaries(st.sampled_from(sorted(CHANGES)) | any_text, any_text | st.none() | st.integers() | st.floats(), max_size=3) | (
    st.fixed_dictionaries({}, optional={
        "cron": st.sampled_from(["* * * * *", "0 0 29 2 *", "H H * * *", "60 * * * *"]) | st.none(),
        "every": st.sampled_from(["1s", "36524d", "1w"]) | st.none(),
        "timezone": st.sampled_from(["UTC", "Europe/Zurich", "Pacific/Apia", "posixrules"]),
        "start_at": st.none() | st.datetimes().map(lambda time: f"{time.isoformat()}-14:00"),
        "end_at": st.none() | st.datetimes().map(lambda time: f"{time.isoformat()}+14:00"),
        "jitter_seconds": st.integers(-1, 86_401),
    })
)  # fmt: skip


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(change=changes)
async def test_no_change_whatsoever_makes_an_error_of_ours(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    if (await call(client, "GET", "report")).status_code == 404:
        await create(client, every="5m", name="report")
    # As a careless sender writes it: lone surrogates, NaN and all.
    answer = await client.patch(path_of("report"), content=json.dumps(change).encode(), headers=JSON)
    assert answer.status_code in (200, 422), answer.text
    for path in (path_of("report"), path_of("report", "/next"), "/v1/jobs"):
        assert (await client.get(path)).status_code == 200


async def test_changes_at_the_same_time_are_all_made_one_after_the_other_or_refused(
    client: httpx.AsyncClient, sql: Any
) -> None:
    await create(client, every="5m", name="report")
    made = 0
    for turn in range(1, 16):
        before = await show(client, "report")
        wanted: dict[str, Any] = {"priority": turn, "queue": f"queue-{turn}", "payload": {"turn": turn}}
        answers = await asyncio.gather(
            *(call(client, "PATCH", "report", **{field: value}) for field, value in wanted.items())
        )
        after = await show(client, "report")
        for (field, value), answer in zip(wanted.items(), answers, strict=True):
            assert answer.status_code == 200 or problem(answer) == (409, "conflict", None)
            assert after[field] == (value if answer.status_code == 200 else before[field])
        successes = sum(answer.status_code == 200 for answer in answers)
        assert successes >= 1
        assert after["version"] == before["version"] + successes
        made += successes
    assert await sql.fetchval("select array_agg(version order by version) from foliot.job_versions") == list(
        range(1, made + 2)
    )


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, store: Store, happens: Callable[[], Awaitable[object]], *, times: int
) -> None:
    """Something happens, so many times, after a request has read the job and the time, and before it writes."""
    read = store.jobs.database_now
    left = itertools.repeat(None, times)

    async def read_and_wait() -> datetime:
        now = await read()
        for _ in left:
            await happens()
            break
        return now

    monkeypatch.setattr(store.jobs, "database_now", read_and_wait)


async def test_a_change_that_was_overtaken_is_made_to_what_the_job_is_by_then(
    client: httpx.AsyncClient, store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(client, every="5m", name="report")
    meanwhile(
        monkeypatch, store, lambda: sql.execute("update foliot.jobs set version = version + 1, priority = 9"), times=2
    )
    shown = await done(client, "PATCH", "report", queue="bulk")
    assert (shown["queue"], shown["priority"], shown["version"]) == ("bulk", 9, 4)


async def test_a_change_that_is_overtaken_again_and_again_is_refused(
    client: httpx.AsyncClient, store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(client, every="5m", name="report")
    meanwhile(monkeypatch, store, lambda: sql.execute("update foliot.jobs set version = version + 1"), times=1000)
    assert problem(await call(client, "PATCH", "report", queue="bulk")) == (409, "conflict", None)
    assert (await show(client, "report"))["queue"] == "mail"


async def test_a_tick_that_fires_while_a_change_is_made_is_neither_repeated_nor_noted(
    client: httpx.AsyncClient, store: Store, sql: Any, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(client, every="10s", name="report")

    async def fire() -> None:
        await fake_clock.advance(10)
        await sql.execute(
            "update foliot.jobs set next_at = next_at + interval '10 s', fire_at = fire_at + interval '10 s'"
        )

    meanwhile(monkeypatch, store, fire, times=1)
    assert (await done(client, "PATCH", "report", priority=1))["next_at"] == "2026-03-01T12:00:20Z"
    assert await sql.fetchval("select count(*) from foliot.ticks") == 0


async def test_a_tick_that_was_due_and_had_not_fired_when_a_change_came_is_noted(
    client: httpx.AsyncClient, sql: Any, fake_clock: FakeClock
) -> None:
    await create(client, every="10s", name="report")
    await fake_clock.advance(35)
    await done(client, "PATCH", "report", priority=1)
    (noted,) = await sql.fetch("select reason, until_at - tick_at from foliot.ticks")
    assert tuple(noted) == ("superseded", timedelta(seconds=20))


# Pausing


async def test_a_paused_job_says_why_and_until_when(client: httpx.AsyncClient) -> None:
    created = await create(client, every="10m", name="report")
    paused = await done(client, "POST", "report", "/pause", reason="maintenance", until="2026-03-01T15:00:00+01:00")
    assert (paused["status"], paused["paused_reason"], paused["paused_until"]) == (
        "paused",
        "maintenance",
        "2026-03-01T14:00:00Z",
    )
    assert (paused["next_at"], paused["version"]) == (None, created["version"])
    assert await show(client, "report") == paused
    # Both may be left out, and the body with them.
    await create(client, every="10m", name="other")
    paused = (await client.post(path_of("other", "/pause"), headers=JSON)).json()
    assert (paused["status"], paused["paused_reason"], paused["paused_until"]) == ("paused", None, None)


async def test_pausing_twice_gives_the_pause_another_reason_and_end_and_resuming_what_runs_changes_nothing(
    client: httpx.AsyncClient, sql: Any, fake_clock: FakeClock
) -> None:
    created = await create(client, every="10m", name="report")
    assert await done(client, "POST", "report", "/resume") == created | {"created": False}
    first = await done(client, "POST", "report", "/pause", reason="first", until="2026-03-02T00:00:00Z")
    await fake_clock.advance(60)
    second = await done(client, "POST", "report", "/pause", reason="second", until="2026-03-03T00:00:00Z")
    assert second == first | {"paused_reason": "second", "paused_until": "2026-03-03T00:00:00Z"}
    assert await sql.fetchval("select paused_at from foliot.jobs") == fake_clock.now() - timedelta(seconds=60)


async def test_a_pause_that_makes_no_sense_is_refused_by_its_field(client: httpx.AsyncClient) -> None:
    await create(client, every="10m", name="report")
    times = [
        "2026-03-01T12:00:00Z",
        "2020-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "2200-01-01T00:00:00Z",
        "9999-12-31T23:59:59-14:00",
    ]
    cases = [bad("until", until=time) for time in [*times, "2026-03-02T00:00:00", "tomorrow", 5]]
    cases += [
        bad("reason", reason="r" * 1001),
        bad("reason", reason="\0"),
        bad("reason", reason=1),
        bad("why", why="x"),
    ]
    for case in cases:
        assert problem(await call(client, "POST", "report", "/pause", **case.fields)) == (422, "invalid", case.field), (
            case
        )
    assert (await show(client, "report"))["status"] == "active"


async def test_a_resumed_job_goes_on_after_now_and_what_it_missed_is_one_note(
    client: httpx.AsyncClient, fake_clock: FakeClock
) -> None:
    await create(client, every="10m", name="report")
    await done(client, "POST", "report", "/pause", reason="maintenance", until="2026-03-02T00:00:00Z")
    await fake_clock.advance(35 * 60)
    resumed = await done(client, "POST", "report", "/resume")
    assert (resumed["status"], resumed["next_at"], resumed["version"]) == ("active", "2026-03-01T12:40:00Z", 1)
    assert (resumed["paused_reason"], resumed["paused_until"]) == (None, None)
    expected = [("paused", "2026-03-01T12:10:00Z", "2026-03-01T12:30:00Z")]
    assert await ticks_of(client, "report") == expected
    # A pause within which nothing was due leaves no note.
    await done(client, "POST", "report", "/pause")
    await fake_clock.advance(5 * 60 - 1)
    assert (await done(client, "POST", "report", "/resume"))["next_at"] == "2026-03-01T12:40:00Z"
    assert await ticks_of(client, "report") == expected


async def test_a_paused_job_can_be_changed_and_stays_paused(client: httpx.AsyncClient, sql: Any) -> None:
    await create(client, every="10m", name="report")
    await done(client, "POST", "report", "/pause", reason="maintenance")
    changed = await done(client, "PATCH", "report", cron="0 15 * * *")
    assert (changed["status"], changed["paused_reason"], changed["version"]) == ("paused", "maintenance", 2)
    assert await sql.fetchval("select fire_at from foliot.jobs") is None
    assert (await done(client, "POST", "report", "/resume"))["next_at"] == "2026-03-01T15:00:00Z"


async def test_a_resume_that_was_overtaken_by_a_change_says_so_and_by_another_resume_is_as_good(
    client: httpx.AsyncClient, store: Store, sql: Any, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(client, every="10m", name="report")
    await done(client, "POST", "report", "/pause")
    with monkeypatch.context() as patched:
        meanwhile(patched, store, lambda: sql.execute("update foliot.jobs set version = version + 1"), times=1000)
        assert problem(await call(client, "POST", "report", "/resume")) == (409, "conflict", None)
    await fake_clock.advance(35 * 60)
    answers = await asyncio.gather(*(done(client, "POST", "report", "/resume") for _ in range(5)))
    assert {answer["status"] for answer in answers} == {"active"}
    assert len(await ticks_of(client, "report")) == 1


async def test_a_job_without_runs_left_stays_ended_whatever_is_done_to_it(
    client: httpx.AsyncClient, sql: Any, fake_clock: FakeClock
) -> None:
    await create(client, every="10m", name="report", max_runs=1)
    await sql.execute("update foliot.jobs set runs_left = 0, fire_at = null, next_at = next_at + interval '10 min'")
    assert (await show(client, "report"))["status"] == "ended"
    assert (await done(client, "PATCH", "report", every="5m"))["status"] == "ended"
    await done(client, "POST", "report", "/pause")
    await fake_clock.advance(3600)
    assert (await done(client, "POST", "report", "/resume"))["status"] == "ended"
    assert await sql.fetchval("select fire_at from foliot.jobs") is None
    assert await ticks_of(client, "report") == []
    assert (await done(client, "GET", "report", "/next"))["items"] == []


# Triggering


async def test_a_trigger_makes_one_run_of_what_the_job_is_at_that_time(
    client: httpx.AsyncClient, sql: Any, fake_clock: FakeClock
) -> None:
    options = {"retries": 2, "timeout_seconds": 1.5, "backoff": {"kind": "fixed", "base_seconds": 1.0}}
    job = await create(
        client, cron="@daily", name="report", queue="bulk", priority=7, payload={"a": [1, "😀"]}, **options
    )
    await fake_clock.advance(90)
    triggered = await done(client, "POST", "report", "/trigger")
    assert triggered["job_id"] == job["id"]
    (run,) = await sql.fetch("select id, job_id, tick_at, name from foliot.runs")
    assert tuple(run) == (UUID(triggered["id"]), UUID(job["id"]), fake_clock.now(), "report")
    shown = await show(client, triggered["id"])
    expected = {
        "state": "ready",
        "task": "send_invoice",
        "queue": "bulk",
        "priority": 7,
        "payload": job["payload"],
        "options": options,
    }
    assert {key: shown[key] for key in expected} == expected
    assert datetime.fromisoformat(shown["scheduled_at"]) == fake_clock.now()
    assert await show(client, "report") == job | {"created": False}
    await done(client, "PATCH", "report", payload={"a": 2}, queue="mail")
    shown = await show(client, (await done(client, "POST", "report", "/trigger"))["id"])
    assert (shown["payload"], shown["queue"]) == ({"a": 2}, "mail")


async def test_every_trigger_is_a_run_of_its_own_even_while_paused(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    await create(client, every="10m", name="report")
    await done(client, "POST", "report", "/pause")
    runs = await asyncio.gather(*(done(client, "POST", "report", "/trigger") for _ in range(5)))
    assert {row[0] for row in await sql.fetch("select id from foliot.runs")} == {UUID(run["id"]) for run in runs}
    assert await end_runs(store) == 5


# Answers of the database that get lost


@asynccontextmanager
async def behind_a_proxy(database_url: str) -> AsyncIterator[tuple[httpx.AsyncClient, Store, Proxy]]:
    """The application with real time, on a way to the database that can be cut."""
    around: dict[str, Any] = {"config": Config(), "clock": SystemClock(), "events": EventBus()}
    async with proxy_to(database_url) as (proxy, url), open_store(url, part="test", **around) as store:
        await store.workers.announce_tasks({"send_invoice": "mail"})
        submitter = Submitter(store=store, clock=around["clock"], events=around["events"])
        app = build_app(
            store=store, submitter=submitter, config=around["config"], clock=around["clock"], audit=None, is_open=True
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8000") as client:
            yield client, store, proxy


async def test_what_is_sent_again_after_a_lost_answer_is_done_once_and_answered_as_if_nothing_had_happened(
    database_url: str, sql: Any
) -> None:
    async with behind_a_proxy(database_url) as (client, store, proxy):
        proxy.swallow_answer_to("insert into foliot.jobs")
        job = await create(client, every="5m", name="report")
        assert proxy.swallowed.is_set()
        assert await sql.fetch("select job_id, version from foliot.job_versions") == [(UUID(job["id"]), 1)]
        proxy.swallow_answer_to("insert into foliot.runs")
        triggered = await done(client, "POST", "report", "/trigger")
        assert proxy.swallowed.is_set()
        assert await sql.fetch("select id from foliot.runs") == [(UUID(triggered["id"]),)]
        # Even when the run has ended meanwhile.
        assert await end_runs(store) == 1
        assert await store.jobs.insert_triggered_run(UUID(triggered["id"]), UUID(job["id"])) == "mail"
        assert await sql.fetchval("select count(*) from foliot.runs") == 0
        for statement, method, rest, status in [
            ("set paused_at = coalesce", "POST", "/pause", 200),
            ("set paused_at = null", "POST", "/resume", 200),
            ("delete from foliot.jobs", "DELETE", "", 204),
        ]:
            proxy.swallow_answer_to(statement)
            assert (await call(client, method, "report", rest)).status_code == status
            assert proxy.swallowed.is_set()


# Deleting


async def test_a_deleted_job_is_gone_its_name_is_free_and_what_it_has_run_stays(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    job = await create(client, every="10m", name="report")
    ended = await done(client, "POST", "report", "/trigger")
    assert await end_runs(store) == 1
    waiting = await done(client, "POST", "report", "/trigger")
    await done(client, "PATCH", "report", priority=1)
    answer = await call(client, "DELETE", "report")
    assert (answer.status_code, answer.content) == (204, b"")
    for reference in ("report", job["id"]):
        for method, rest in [("GET", ""), *OTHER_ROUTES]:
            assert problem(await call(client, method, reference, rest)) == (404, "not_found", None)
    assert (await client.get("/v1/jobs")).json()["items"] == []
    assert await sql.fetch("select id, job_id, state from foliot.history") == [
        (UUID(ended["id"]), UUID(job["id"]), "succeeded")
    ]
    assert (await show(client, waiting["id"]))["status"] == "pending"
    assert await sql.fetchval("select array_agg(version order by version) from foliot.job_versions") == [1, 2]
    again = await create(client, every="10m", name="report")
    assert again["id"] != job["id"]
    assert again["version"] == 1
    assert await ticks_of(client, "report") == []


async def test_the_held_runs_of_a_deleted_job_still_get_their_turn(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    await create(client, every="10m", name="report", overlap="buffer_all")
    runs = [await done(client, "POST", "report", "/trigger") for _ in range(3)]
    await sql.execute("update foliot.runs set state = 'held', held_by = 'overlap' where id <> $1", UUID(runs[0]["id"]))
    await sql.execute("update foliot.shards set owner_id = $1, epoch = 1, expires_at = '2100-01-01'", WORKER)
    await call(client, "DELETE", "report")
    epochs = dict.fromkeys(range(SHARDS), 1)
    assert await store.jobs.release_held(WORKER, epochs) == []
    for _ in range(2):
        assert await end_runs(store) == 1
        assert await store.jobs.release_held(WORKER, epochs) == ["mail"]
    assert await end_runs(store) == 1


# Ticks, past and to come


async def test_ticks_are_shown_latest_first_and_no_more_than_asked_for(
    client: httpx.AsyncClient, fake_clock: FakeClock
) -> None:
    await create(client, every="10m", name="report")
    for _ in range(4):
        await done(client, "POST", "report", "/pause")
        await fake_clock.advance(600)
        await done(client, "POST", "report", "/resume")
    await fake_clock.advance(1)
    run = await done(client, "POST", "report", "/trigger")
    whole = await ticks_of(client, "report")
    expected = [("paused", f"2026-03-01T12:{minute}:00Z", f"2026-03-01T12:{minute}:00Z") for minute in (40, 30, 20, 10)]
    assert whole == [("ready", "2026-03-01T12:40:01Z", None), *expected]
    for limit in (1, 2, 5, 200):
        assert await ticks_of(client, "report", f"?limit={limit}") == whole[:limit]
    assert (await done(client, "GET", "report", "/ticks"))["items"][0]["run_id"] == run["id"]


async def test_the_next_ticks_are_told_in_the_job_s_zone_over_a_clock_change(
    client: httpx.AsyncClient, fake_clock: FakeClock
) -> None:
    spring, autumn = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)
    cases: list[tuple[datetime, dict[str, str], list[tuple[str, str | None]]]] = [
        (spring, {}, [("2026-03-29T03:00:00+02:00", "after_gap"), ("2026-03-30T02:30:00+02:00", None)]),
        (spring, {"dst_gap": "skip"}, [("2026-03-30T02:30:00+02:00", None), ("2026-03-31T02:30:00+02:00", None)]),
        (autumn, {}, [("2026-10-25T02:30:00+02:00", "first_of_two"), ("2026-10-26T02:30:00+01:00", None)]),
        (
            autumn,
            {"dst_fold": "last"},
            [("2026-10-25T02:30:00+01:00", "second_of_two"), ("2026-10-26T02:30:00+01:00", None)],
        ),
        (
            autumn,
            {"dst_fold": "both"},
            [("2026-10-25T02:30:00+02:00", "first_of_two"), ("2026-10-25T02:30:00+01:00", "second_of_two")],
        ),
    ]
    for eve, policy, expected in cases:
        await fake_clock.advance((eve - fake_clock.now()).total_seconds())
        job = await create(client, cron="30 2 * * *", timezone="Europe/Zurich", **policy)
        assert (await client.get(path_of(job["id"], "/next?count=2"))).json() == {
            "items": [{"at": at, "dst": flag} for at, flag in expected], "timezone": "Europe/Zurich",
        }  # fmt: skip
        assert datetime.fromisoformat(job["next_at"]) == datetime.fromisoformat(expected[0][0])


async def test_the_next_ticks_are_as_many_as_asked_for_unless_there_are_fewer(client: httpx.AsyncClient) -> None:
    await create(client, every="1h", name="endless")
    await create(client, every="1h", name="bounded", end_at="2026-03-01T15:00:00Z")
    await create(client, every="1h", name="counted", max_runs=2)
    hours = [f"2026-03-01T{hour}:00:00Z" for hour in range(13, 23)]
    for name, counts in {
        "endless": {"": 10, "?count=4": 4},
        "bounded": {"": 3, "?count=2": 2},
        "counted": {"": 2, "?count=1": 1},
    }.items():
        for query, number in counts.items():
            items = (await client.get(path_of(name, "/next") + query)).json()["items"]
            assert [item["at"] for item in items] == hours[:number]
    assert len((await client.get(path_of("endless", "/next?count=1000"))).json()["items"]) == 1000


async def test_h_is_the_job_s_own_and_the_same_whenever_it_is_asked_for(client: httpx.AsyncClient) -> None:
    firsts = set()
    for _ in range(8):
        job = await create(client, cron="H H * * *")
        (first,) = (await client.get(path_of(job["id"], "/next?count=1"))).json()["items"]
        assert first["at"] == job["next_at"]
        firsts.add(first["at"])
    assert len(firsts) > 1
