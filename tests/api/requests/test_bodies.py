"""Bad bodies: the answer names the field, nothing is stored, and none causes an internal error."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.store.store import Store
from tests.support.problems import JSON, problem_of

TASK = b'"task": "send_invoice"'
FIELDS = ["task", "job_type", "command", "payload", "name", "delay_seconds", "schedule_time", "queue", "priority",
    "retries", "max_retries",
          "timeout_seconds", "backoff", "kind", "base_seconds", "jitter", "else"]  # fmt: skip


@dataclass(frozen=True)
class Bad:
    """A body and the expected answer."""

    body: bytes
    status: int
    field: str
    code: str = "invalid"


def malformed(body: bytes) -> Bad:
    return Bad(body, 400, "body", "malformed")


def job(rest: bytes, field: str) -> Bad:
    """A valid body with these changes."""
    return Bad(b"{" + TASK + b", " + rest + b"}", 422, field)


NOT_JSON = {
    "empty": malformed(b""),
    "blank": malformed(b" \n"),
    "cut off": malformed(b'{"task": "send_inv'),
    "two values": malformed(b'{"task": "send_invoice"} {}'),
    "trailing comma": malformed(b'{"task": "send_invoice",}'),
    "single quotes": malformed(b"{'task': 'send_invoice'}"),
    "raw NUL": malformed(b'{"task": "send\0invoice"}'),
    "raw newline in a string": malformed(b'{"task": "send_invoice", "name": "a\nb"}'),
    "invalid UTF-8 in a value": malformed(b'{"task": "send_invoice", "name": "\xff"}'),
    "invalid UTF-8 in the payload": malformed(b'{"task": "send_invoice", "payload": {"a": "\xc3\x28"}}'),
    "invalid UTF-8 in a key": malformed(b'{"task": "send_invoice", "payload": {"\xff": 1}}'),
    "a surrogate in UTF-8": malformed(b'{"task": "send_invoice", "name": "\xed\xa0\x80"}'),
    "UTF-16": malformed('{"task": "send_invoice"}'.encode("utf-16")),
    "a byte order mark": malformed(b'\xef\xbb\xbf{"task": "send_invoice"}'),
    "nested too deeply": malformed(b"[" * 200_000),
    "a payload nested too deeply": malformed(b'{"task": "send_invoice", "payload": {"a": ' + b"[" * 200_000),
    "objects nested too deeply": malformed(b'{"task": "send_invoice", "payload": ' + b'{"a":' * 100_000),
}
NOT_STORABLE = {
    "NUL in the name": job(b'"name": "a\\u0000b"', "name"),
    "NUL in the command": Bad(b'{"command": "echo \\u0000"}', 422, "command"),
    "NUL in the payload": job(b'"payload": {"a": [1, {"b": "\\u0000"}]}', "payload.a[1].b"),
    "NUL in a key of the payload": job(b'"payload": {"a": {"b\\u0000": 1}}', "payload.a.b\\u0000"),
    "NUL in an unknown field": job(b'"\\u0000": 1', "\\u0000"),
    "lone surrogate in the name": job(b'"name": "\\ud800"', "name"),
    "lone surrogate in the payload": job(b'"payload": {"a": "x\\udfffy"}', "payload.a"),
    "lone surrogate in a key": job(b'"payload": {"\\ud800": 1}', "payload.\\ud800"),
    "surrogates in the wrong order": job(b'"payload": {"a": "\\udc00\\ud800"}', "payload.a"),
    "NaN": job(b'"payload": {"a": NaN}', "payload.a"),
    "Infinity": job(b'"payload": {"a": [Infinity]}', "payload.a[0]"),
    "-Infinity as delay": job(b'"delay_seconds": -Infinity', "delay_seconds"),
    "1e999 in the payload": job(b'"payload": {"a": [1, 1e999]}', "payload.a[1]"),
    "-1e999 in the payload": job(b'"payload": {"a": -1e999}', "payload.a"),
    "1e999 as delay": job(b'"delay_seconds": 1e999', "delay_seconds"),
    "an integer of 5000 digits in the payload": job(b'"payload": {"a": ' + b"1" * 5000 + b"}", "payload.a"),
    "NUL beside an integer of 400 digits": job(b'"payload": {"a": ' + b"1" * 400 + b'}, "name": "\\u0000"', "name"),
    "an integer of 5000 digits as priority": job(b'"priority": ' + b"1" * 5000, "priority"),
    "an integer of 5000 digits as delay": job(b'"delay_seconds": ' + b"1" * 5000, "delay_seconds"),
}
NO_SUCH_FIELD = {
    "unknown field": job(b'"taks": 1', "taks"),
    "unknown field in the back-off": job(b'"backoff": {"growth": 2}', "backoff.growth"),
    "unknown field that looks like a message": job(b'"a - at b": 1', "a - at b"),
    "unknown field on two lines": job(b'"a\\nb": 1', "a\nb"),
    "id": job(b'"id": "00000000-0000-0000-0000-000000000000"', "id"),
}
WRONG_TYPE = {
    "array": Bad(b'[{"task": "send_invoice"}]', 422, "body"),
    "string": Bad(b'"send_invoice"', 422, "body"),
    "null": Bad(b"null", 422, "body"),
    "task": Bad(b'{"task": 1}', 422, "task"),
    "name": job(b'"name": ["a"]', "name"),
    "payload": job(b'"payload": [1]', "payload"),
    "payload as text": job(b'"payload": "{}"', "payload"),
    "priority as text": job(b'"priority": "1"', "priority"),
    "priority as fraction": job(b'"priority": 1.5', "priority"),
    "priority as boolean": job(b'"priority": true', "priority"),
    "delay": job(b'"delay_seconds": "1"', "delay_seconds"),
    "time": job(b'"schedule_time": 1700000000', "schedule_time"),
    "back-off": job(b'"backoff": "fixed"', "backoff"),
    "base of the back-off": job(b'"backoff": {"base_seconds": "1"}', "backoff.base_seconds"),
}
OUT_OF_RANGE = {
    "no task": Bad(b"{}", 422, "task"),
    "null task": Bad(b'{"task": null}', 422, "task"),
    "empty task": Bad(b'{"task": ""}', 422, "task"),
    "task with a newline": Bad(b'{"task": "send_invoice\\n"}', 422, "task"),
    "unknown task": Bad(b'{"task": "send_invoices"}', 422, "task", "unknown_task"),
    "unknown job_type": Bad(b'{"job_type": "nope"}', 422, "task", "unknown_task"),
    "queue with a space": job(b'"queue": "a b"', "queue"),
    "queue with a newline": job(b'"queue": "mail\\n"', "queue"),
    "queue too long": job(b'"queue": "' + b"q" * 201 + b'"', "queue"),
    "empty name": job(b'"name": ""', "name"),
    "name too long": job(b'"name": "' + b"n" * 201 + b'"', "name"),
    "empty command": Bad(b'{"command": ""}', 422, "command"),
    "command too long": Bad(b'{"command": "' + b"c" * 100_001 + b'"}', 422, "command"),
    "priority too high": job(b'"priority": 1001', "priority"),
    "priority too low": job(b'"priority": -1001', "priority"),
    "priority far too high": job(b'"priority": 99999999999999999999', "priority"),
    "negative delay": job(b'"delay_seconds": -0.001', "delay_seconds"),
    "delay of centuries": job(b'"delay_seconds": 1e10', "delay_seconds"),
    "negative retries": job(b'"retries": -1', "retries"),
    "too many retries": job(b'"max_retries": 1001', "max_retries"),
    "no time at all": job(b'"timeout_seconds": 0', "timeout_seconds"),
    "unknown back-off": job(b'"backoff": {"kind": "random"}', "backoff.kind"),
    "jitter above 1": job(b'"backoff": {"jitter": 1.01}', "backoff.jitter"),
    "time without offset": job(b'"schedule_time": "2030-01-01T00:00:00"', "schedule_time"),
    "no time": job(b'"schedule_time": "tomorrow"', "schedule_time"),
    "a day that is not": job(b'"schedule_time": "2030-02-30T00:00:00Z"', "schedule_time"),
    "year 9999": job(b'"schedule_time": "9999-12-31T23:59:59Z"', "schedule_time"),
    "year 9999 west of Greenwich": job(b'"schedule_time": "9999-12-31T23:59:59-14:00"', "schedule_time"),
}
CONTRADICTORY = {
    "delay and time": job(b'"delay_seconds": 1, "schedule_time": "2030-01-01T00:00:00Z"', "schedule_time"),
    "two tasks": job(b'"job_type": "shell"', "task"),
    "task and command": job(b'"command": "true"', "task"),
    "command and payload": Bad(b'{"command": "true", "payload": {"a": 1}}', 422, "payload"),
    "retries by two names": job(b'"retries": 1, "max_retries": 1', "max_retries"),
}


@pytest.mark.usefixtures("nothing_is_stored")
@pytest.mark.parametrize(
    "cases", [NOT_JSON, NOT_STORABLE, NO_SUCH_FIELD, WRONG_TYPE, OUT_OF_RANGE, CONTRADICTORY],
    ids=["not JSON", "not storable", "no such field", "wrong type", "out of range", "contradictory"],
)  # fmt: skip
async def test_a_bad_body_gets_an_error_that_names_the_field(client: httpx.AsyncClient, cases: dict[str, Bad]) -> None:
    answers = {
        name: problem_of(await client.post("/v1/jobs", content=bad.body, headers=JSON)) for name, bad in cases.items()
    }
    assert answers == {name: (bad.status, bad.code, bad.field) for name, bad in cases.items()}


@pytest.mark.usefixtures("nothing_is_stored")
async def test_an_error_about_an_unknown_task_suggests_the_nearest_known_one(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", json={"task": "send_invoces"})
    assert "did you mean 'send_invoice'?" in answer.json()["detail"]


@pytest.mark.usefixtures("nothing_is_stored")
async def test_a_body_above_the_limit_is_refused_however_it_is_sent(client: httpx.AsyncClient) -> None:
    body = json.dumps({"task": "send_invoice", "payload": {"a": "x" * 2_097_152}}).encode()
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for start in range(0, len(body), 65_536):
            sent += 65_536
            yield body[start : start + 65_536]

    for content in (body, chunks()):
        answer = await client.post("/v1/jobs", content=content, headers=JSON)
        assert problem_of(answer) == (413, "too_large", "body")
    assert "content-length" not in answer.request.headers
    assert sent < len(body)


@pytest.mark.usefixtures("nothing_is_stored")
async def test_a_false_content_length_does_not_bypass_the_limit(client: httpx.AsyncClient) -> None:
    body = b'{"task": "send_invoice", "name": "' + b"x" * 2_097_152
    answer = await client.post("/v1/jobs", content=body, headers=JSON | {"content-length": "10"})
    assert problem_of(answer) == (413, "too_large", "body")


@pytest.mark.usefixtures("nothing_is_stored")
async def test_a_body_that_is_not_declared_as_json_is_refused(client: httpx.AsyncClient) -> None:
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "",
    ):
        answer = await client.post("/v1/jobs", content=b'{"task": "send_invoice"}', headers={"content-type": kind})
        assert problem_of(answer) == (415, "not_json", None)


async def test_unknown_methods_and_paths_get_problem_documents(client: httpx.AsyncClient) -> None:
    assert problem_of(await client.put("/v1/jobs", json={})) == (405, "method_not_allowed", None)
    assert problem_of(await client.get("/v1/nothing")) == (404, "not_found", None)
    assert problem_of(await client.post("/", json={})) == (405, "method_not_allowed", None)
    assert problem_of(await client.post("/nothing", json={})) == (404, "not_found", None)


async def test_a_bad_query_parameter_is_named(client: httpx.AsyncClient) -> None:
    for query, field in {
        "limit=x": "limit",
        "limit=0": "limit",
        "limit=99999999999999999999": "limit",
        "after=%00": "after",
    }.items():
        assert problem_of(await client.get(f"/v1/jobs?{query}")) == (422, "invalid", field)


async def test_a_payload_of_any_accepted_depth_can_be_shown(client: httpx.AsyncClient) -> None:
    statuses = []
    for depth in [*range(1, 50, 7), *range(60, 1000, 20), *range(940, 1010)]:
        body = b'{"task": "send_invoice", "payload": {"a": ' + b"[" * depth + b"]" * depth + b"}}"
        answer = await client.post("/v1/jobs", content=body, headers=JSON)
        statuses.append(answer.status_code)
        if answer.status_code == 201:
            assert (await client.get(answer.headers["location"])).status_code == 200
        else:
            assert problem_of(answer) == (400, "malformed", "body")
    assert statuses[:8] == [201] * 8
    assert statuses[-1] == 400


any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=5)
    | st.sampled_from(FIELDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)
plausible = st.fixed_dictionaries({"task": st.sampled_from(["send_invoice", "shell", "nope"])}, optional={
    "payload": st.dictionaries(st.text(st.characters(codec=None), max_size=3), any_json, max_size=3),
    "name": st.text(st.characters(codec=None), max_size=5),
    "queue": st.text(max_size=3),
    "delay_seconds": st.floats() | st.integers(),
    "schedule_time": st.datetimes().map(lambda time: f"{time.isoformat()}Z") | st.text(max_size=3),
    "priority": st.integers(),
    "retries": st.integers(),
    "timeout_seconds": st.floats(),
    "backoff": st.dictionaries(st.sampled_from(FIELDS), any_json, max_size=2),
    "cron": st.sampled_from(["* * * * *", "0 0 30 2 *", "@yearly", "60 * * * *", "H H * * *",
        "0 0 1 1 * 1970"]) | st.text(max_size=9),
    "every": st.sampled_from(["1s", "90m", "99999999999d", "0s", "-1s", "1e9s"]) | st.text(max_size=4),
    "schedule": st.sampled_from(["* * * * *", "2030-01-01T00:00:00Z", "2030-01-01"]) | st.text(max_size=4),
    "timezone": st.sampled_from(["UTC", "Europe/Zurich", "../etc/passwd", "posixrules", ""]) | st.text(max_size=4),
    "start_at": st.datetimes().map(lambda time: f"{time.isoformat()}Z"),
    "end_at": st.datetimes().map(lambda time: f"{time.isoformat()}+14:00"),
    "jitter_seconds": st.integers(0, 86_400),
    "catchup_window": st.sampled_from(["1d", "0s", "99999d"]) | st.text(max_size=4),
})  # fmt: skip


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=plausible | any_json, cut=st.integers(0, 20))
async def test_no_body_causes_an_internal_error(client: httpx.AsyncClient, document: object, cut: int) -> None:
    body = json.dumps(document).encode()
    for content in (body, body[:-cut] if cut else body + b"}"):
        answer = await client.post("/v1/jobs", content=content, headers=JSON)
        if answer.status_code == 201:
            assert (await client.get(answer.headers["location"])).status_code == 200
        else:
            assert problem_of(answer)[0] in (400, 422)


@pytest.mark.usefixtures("nothing_is_stored")
async def test_without_the_database_the_answer_is_503_with_retry_after(client: httpx.AsyncClient, store: Store) -> None:
    known = await client.post("/v1/jobs", json={"task": "send_invoice", "priority": 2000})
    assert known.status_code == 422
    await store.database.close()
    for answer in (
        await client.post("/v1/jobs", json={"task": "send_invoice"}),
        await client.post("/v1/jobs", json={"task": "never_heard_of"}),
        await client.get("/v1/jobs/0190a6f0-0000-7000-8000-000000000001"),
    ):
        assert problem_of(answer) == (503, "store_unavailable", None)
        assert int(answer.headers["retry-after"]) > 0
        assert answer.json()["detail"] == "the database is not available; try again"
