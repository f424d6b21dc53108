"""Changing recurring jobs: one field at a time, to and from null, and with bad values."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.submission.job_changes import CHANGEABLE
from tests.support.fake_clock import FakeClock
from tests.support.problems import JSON, problem_of
from tests.support.recurring import BAD_CRON, bad, call_job, create_job, get_job, job_path, succeed

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
    "templates": False,
    "every": "2h",
}
# Fields that the shown schedule has under another name.
SHOWN_AS = {
    "catchup_window": ("schedule", "catchup_window_seconds", 7200),
    "max_runs": ("runs_left", None, 12),
    "retries": ("options", "retries", 5),
    "max_retries": ("options", "retries", 6),
    "timeout_seconds": ("options", "timeout_seconds", 9.5),
    "backoff": ("options", "backoff", {"kind": "fixed", "base_seconds": 3.0}),
    **{
        field: ("options", field, CHANGES[field])
        for field in ("retry_on", "never_on", "max_snoozes", "fairness_key", "guarantee", "templates")
    },
    **{field: ("options", field, CHANGES[field]) for field in ("concurrency", "rate")},
    **{field: (field, None, CHANGES[field]) for field in ("priority", "queue", "payload", "metadata", "tags")},
    "notify": (
        "options",
        "notify",
        [{"url": "https://example.org/hook", "on": ["failed"], "headers": {}, "queue": None}],
    ),
}
# The schedule in words, after changes that affect it.
WORDS = {"cron": "at 09:30", "times": "at 09:30; and at one instant", "every": "every 2 hours; and at one instant"}


async def test_each_field_is_changed_alone_and_every_version_is_kept(
    client: httpx.AsyncClient, sql: Any, fake_clock: FakeClock
) -> None:
    assert set(CHANGES) == CHANGEABLE
    assert (await client.put("/v1/calendars/holidays", json={"dates": ["2026-12-25"]})).status_code == 200
    job = await create_job(client, cron="0 9 * * *", name="report", payload={"customer": 7}, retries=3)
    expected = job | {"created": False}
    definitions = [{**expected["schedule"]}]
    for version, (field, value) in enumerate(CHANGES.items(), start=2):
        await fake_clock.advance(60)
        changed = await succeed(client, "PATCH", "report", **{field: value})
        place, key, shown = SHOWN_AS.get(field, ("schedule", field, value))
        expected[place] = shown if key is None else expected[place] | {key: shown}
        if field == "every":
            del expected["schedule"]["cron"]
        expected |= {"version": version, "updated_at": changed["updated_at"], "next_at": changed["next_at"]}
        expected["schedule_words"] = WORDS.get(field, expected["schedule_words"])
        assert changed == expected == await get_job(client, job["id"])
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
    await create_job(client, every="10m", name="report")
    await fake_clock.advance(25 * 60)
    assert (await get_job(client, "report"))["next_at"] == "2026-03-01T12:10:00Z"
    assert (await succeed(client, "PATCH", "report", priority=1))["next_at"] == "2026-03-01T12:30:00Z"
    await fake_clock.advance(5 * 60)
    # A tick at this very instant is not after now.
    assert (await succeed(client, "PATCH", "report", cron="30 * * * *"))["next_at"] == "2026-03-01T13:30:00Z"


async def test_a_job_changes_from_cron_to_a_period_and_back(client: httpx.AsyncClient) -> None:
    await create_job(client, cron="0 9 * * *", name="report", timezone="Asia/Tokyo")
    by_period = await succeed(client, "PATCH", "report", every="45m")
    assert (by_period["schedule"].get("cron"), by_period["schedule"]["every"]) == (None, "45m")
    assert by_period["next_at"] == "2026-03-01T12:45:00Z"
    by_cron = await succeed(client, "PATCH", "report", cron="0 10 * * *", every=None)
    assert (by_cron["schedule"]["cron"], by_cron["schedule"].get("every")) == ("0 10 * * *", None)
    assert by_cron["next_at"] == "2026-03-02T01:00:00Z"
    assert (await succeed(client, "PATCH", "report", every="1h", cron=None))["next_at"] == "2026-03-01T13:00:00Z"


async def test_null_removes_an_optional_field(client: httpx.AsyncClient) -> None:
    bounds = {"start_at": "2026-04-01T00:00:00Z", "end_at": "2026-05-01T00:00:00Z"}
    await create_job(client, cron="@hourly", name="report", payload={"a": 1}, **bounds)
    changed = await succeed(client, "PATCH", "report", start_at=None, end_at=None, payload=None)
    assert not {"start_at", "end_at"} & set(changed["schedule"])
    assert (changed["payload"], changed["next_at"]) == ({}, "2026-03-01T13:00:00Z")


async def test_a_change_can_end_a_job_and_another_can_revive_it(client: httpx.AsyncClient) -> None:
    await create_job(client, cron="@hourly", name="report")
    ended = await succeed(client, "PATCH", "report", end_at="2026-03-01T12:59:59Z")
    assert (ended["status"], ended["next_at"]) == ("ended", None)
    back = await succeed(client, "PATCH", "report", end_at=None)
    assert (back["status"], back["next_at"]) == ("active", "2026-03-01T13:00:00Z")


async def test_an_unknown_or_unchangeable_field_is_named(client: httpx.AsyncClient) -> None:
    job = await create_job(client, cron="@hourly", name="report")
    given = {"name": "other", "task": "shell", "job_type": "shell", "command": "true", "schedule": "@daily",
        "created_at": None,
             "delay_seconds": 1, "schedule_time": "2030-01-01T00:00:00Z", "id": job["id"], "version": 1,
             "next_at": None, "crno": "@daily",
             "": 1, "a - at b": 1}  # fmt: skip
    for field, value in given.items():
        answer = await call_job(client, "PATCH", "report", priority=3, **{field: value})
        assert answer.status_code == 422
        assert answer.json().get("field", "") == field
    assert await get_job(client, "report") == job | {"created": False}


BAD_CHANGES = [
    *[bad("cron", "invalid_cron", cron=cron) for cron in BAD_CRON],
    *[bad("cron", cron=None), bad("cron", cron=5), bad("cron", cron=None, every=None), bad("cron", cron="@daily",
        every="5m")],
    *[bad("every", every=every) for every in ("", "0s", "5x", 5)],
    *[bad("timezone", timezone=zone) for zone in ("Europe/Zuric", "", None, 1)],
    *[bad("priority", priority=priority) for priority in (1001, -1001, None, "1", 1.5)],
    *[bad("queue", queue=queue) for queue in ("", "a b", "q" * 201, 1)],
    *[bad("payload", payload=payload) for payload in (["a"], "{}", 1)],
    *[bad("overlap", overlap="no"), bad("catchup", catchup=None), bad("catchup_max", catchup_max=0)],
    bad("jitter_seconds", jitter_seconds=-1),
    *[bad("dst_gap", dst_gap="x"), bad("dst_fold", dst_fold="x"), bad("start_at", start_at="2030-01-01"), bad("end_at",
        end_at=0)],
    bad("end_at", start_at="2030-01-02T00:00:00Z", end_at="2030-01-01T00:00:00Z"),
    bad("payload.a", payload={"a": "\0"}),
]  # fmt: skip


async def test_an_invalid_change_is_refused_with_its_field_and_changes_nothing(
    client: httpx.AsyncClient, sql: Any
) -> None:
    job = await create_job(client, cron="@hourly", name="report")
    for case in BAD_CHANGES:
        assert problem_of(await call_job(client, "PATCH", "report", **case.fields)) == (422, case.code, case.field), (
            case
        )
    for body, status in {b"": 400, b"{": 400, b"[]": 422, b"null": 422, b'"x"': 422}.items():
        answer = await client.patch(job_path("report"), content=body, headers=JSON)
        assert problem_of(answer) == (status, "malformed" if status == 400 else "invalid", "body"), body
    assert await get_job(client, "report") == job | {"created": False}
    assert await sql.fetchval("select count(*) from foliot.job_versions") == 1


any_text = st.text(st.characters(codec=None), max_size=4)
changes = st.dictionaries(st.sampled_from(sorted(CHANGES)) | any_text,
    any_text | st.none() | st.integers() | st.floats(), max_size=3) | (
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
async def test_no_change_causes_an_internal_error(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    if (await call_job(client, "GET", "report")).status_code == 404:
        await create_job(client, every="5m", name="report")
    # Encoded without checks: with lone surrogates and NaN.
    answer = await client.patch(job_path("report"), content=json.dumps(change).encode(), headers=JSON)
    assert answer.status_code in (200, 422), answer.text
    for path in (job_path("report"), job_path("report", "/next"), "/v1/jobs"):
        assert (await client.get(path)).status_code == 200
