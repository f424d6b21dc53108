"""Bodies below the size limit that are expensive in every other way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import httpx
import msgspec
import pytest

from foliot.api.requests.bodies import decode
from foliot.api.requests.body_limits import DIGITS_MAX, SLICE_BYTES, VALUES_MAX, has_long_number, refuse_shape
from foliot.errors import Invalid, Malformed, TooLarge
from foliot.model.job_request import JobRequest
from foliot.store.store import Store
from tests.support.attacked import Attacked, attacked
from tests.support.waiting import PATIENCE_SECONDS

JSON = {"Content-Type": "application/json"}
BATCH_BYTES = 33_554_432
JOB_BYTES = 1_048_576
# The limit is about a second. Without protection these bodies took 15 to 52 seconds on the same machine.
CPU_SECONDS = 3.0
LATENCY_SECONDS = 6.0
JOB = msgspec.json.Decoder(JobRequest)


def full(unit: bytes, size: int = BATCH_BYTES) -> bytes:
    """A list of as many items as fit."""
    return b"[" + (unit + b",") * ((size - 200) // (len(unit) + 1)) + unit + b"]"


def in_payload(value: bytes) -> bytes:
    return b'[{"task": "send_invoice", "payload": {"x": ' + value + b"}}]"


def steps(number: int, **fields: object) -> bytes:
    return json.dumps({"steps": [{"key": f"k{index}", "task": "shell", **fields} for index in range(number)]}).encode()


BATCHES: dict[str, Callable[[], bytes]] = {
    "empty lists": lambda: full(b"[]"),
    "numbers": lambda: full(b"1"),
    "empty objects": lambda: full(b"{}"),
    "empty strings": lambda: full(b'""'),
    "empty lists in a payload": lambda: in_payload(full(b"[]", BATCH_BYTES - 100)),
    "as many numbers as are allowed, and then no JSON": lambda: b"[" + b"1.5," * (VALUES_MAX - 10) + b"x]",
    "as many strings as are allowed, the last with NUL": lambda: in_payload(
        b"[" + b'"a",' * (VALUES_MAX - 10) + b'"\\u0000"]'
    ),
    "as many jobs as are values allowed": lambda: b"[" + b"{}," * (VALUES_MAX // 2 - 10) + b"{}]",
    "an object of a million keys": lambda: in_payload(
        b"{" + b",".join(b'"%d":1' % n for n in range(VALUES_MAX - 10)) + b"}"
    ),
    "one key, again and again": lambda: in_payload(b"{" + b'"k":1,' * (VALUES_MAX - 10) + b'"k":2}'),
    "keys, and then no JSON": lambda: b"{" + b",".join(b'"%x":0' % n for n in range(VALUES_MAX - 10)) + b",}",
    "objects in lists, the last with NUL": lambda: (
        b"[" + b'{"a":[1,{"b":"c"}]},' * (VALUES_MAX // 7) + b'{"z":"\\u0000"}]'
    ),
    "texts that look like large numbers": lambda: b"[" + b'{"5e": 1},' * (VALUES_MAX // 3) + b"1]",
    "a name of 32 MB": lambda: b'{"' + b"k" * (BATCH_BYTES - 100) + b'": 1}',
    "a string of 32 MB": lambda: b'"' + b"s" * (BATCH_BYTES - 100) + b'"',
    "a string of escapes": lambda: b'"' + b"\\n" * (BATCH_BYTES // 2 - 100) + b'"',
    "a string of backslashes": lambda: b'"' + b"\\" * (BATCH_BYTES - 100) + b'"',
    "quotes": lambda: b'"' * (BATCH_BYTES - 100),
    "commas": lambda: b"," * (BATCH_BYTES - 100),
    "blanks": lambda: b"[" + b" " * (BATCH_BYTES - 100) + b"]",
    "one number of 32 MB": lambda: in_payload(b"9" * (BATCH_BYTES - 100)),
    "one fraction of 32 MB": lambda: in_payload(b"0." + b"9" * (BATCH_BYTES - 100)),
    "an exponent of 32 MB": lambda: in_payload(b"1e" + b"0" * (BATCH_BYTES - 100) + b"1"),
    "numbers of 4000 digits": lambda: in_payload(full(b"9" * 4_000, BATCH_BYTES - 100)),
    "numbers as long as is allowed": lambda: full(b"9" * DIGITS_MAX),
    "1e400 after many": lambda: in_payload(b"[" + b"1," * (VALUES_MAX - 10) + b"1e400]"),
    "opened and never closed": lambda: b"[" * (BATCH_BYTES - 100),
    "as deep as is allowed, again and again": lambda: b"[" + b",".join([b"[" * 98 + b"]" * 98] * 9_000) + b"]",
    "a lone surrogate at the end": lambda: in_payload(b'"' + b"s" * (BATCH_BYTES - 200) + b'\\ud800"'),
    "no UTF-8 at the end": lambda: in_payload(b'"' + b"s" * (BATCH_BYTES - 200) + b'\xff"'),
    "more than the limit of bytes": lambda: full(b"1", BATCH_BYTES + 1_000),
}
JOBS: dict[str, Callable[[], bytes]] = {
    "empty lists": lambda: full(b"[]", JOB_BYTES),
    "numbers in an unknown field": lambda: b'{"task": "shell", "x": ' + full(b"1", JOB_BYTES - 100) + b"}",
    "empty lists and NUL": lambda: b'{"task": "a\\u0000", "payload": {"x": ' + full(b"[]", JOB_BYTES - 100) + b"}}",
    "a number of a million digits": lambda: (
        b'{"task": "send_invoice", "payload": {"x": ' + b"9" * (JOB_BYTES - 100) + b"}}"
    ),
    "a name of a million characters": lambda: b'{"' + b"k" * (JOB_BYTES - 100) + b'": 1}',
}
WORKFLOWS: dict[str, Callable[[], bytes]] = {
    "steps that all the others wait for": lambda: (
        steps(9_999)[:-2] + b", " + steps(9_999, teardown=True).replace(b"k", b"t")[11:]
    ),
    "too many steps": lambda: b'{"steps": [' + b'{"key":"a"},' * 400_000 + b'{"key":"a"}]}',
    "a list of items": lambda: (
        b'{"steps": [{"key": "a", "task": "shell", "map": {"items": ' + full(b"[]", BATCH_BYTES - 200) + b"}}]}"
    ),
}
ATTACKS = {
    **{f"batch: {name}": ("POST", "/v1/jobs/batch", make) for name, make in BATCHES.items()},
    **{f"job: {name}": ("POST", "/v1/jobs", make) for name, make in JOBS.items()},
    **{f"workflow: {name}": ("POST", "/v1/workflows", make) for name, make in WORKFLOWS.items()},
    "calendar: dates": (
        "PUT",
        "/v1/calendars/c",
        lambda: b'{"dates": ' + full(b'"2026-01-01"', JOB_BYTES - 100) + b"}",
    ),
    "signal: lists": ("POST", "/v1/runs/x/signal", lambda: b'{"payload": ' + full(b"[[]]", JOB_BYTES - 100) + b"}"),
    "change of a job: objects": (
        "PATCH",
        "/v1/jobs/x",
        lambda: b'{"payload": {"x": ' + full(b"{}", JOB_BYTES - 100) + b"}}",
    ),
}


@pytest.fixture
async def server(database_url: str, store: Store) -> AsyncIterator[Attacked]:
    await store.workers.announce_tasks({"shell": "default", "send_invoice": "mail"})
    async with attacked(database_url) as server:
        yield server


@pytest.mark.process
async def test_no_body_within_the_limit_keeps_a_server_busy(server: Attacked) -> None:
    found = []
    async with httpx.AsyncClient(base_url=server.address, timeout=PATIENCE_SECONDS) as client:
        for name, (method, path, make) in ATTACKS.items():
            body = make()
            async with server.watched() as cost:
                answer = await client.request(method, path, content=body, headers=JSON)
            # Some of them are within all limits, and are accepted.
            assert answer.status_code == 201 or 400 <= answer.status_code < 500, (
                name,
                answer.status_code,
                answer.text[:300],
            )
            assert len(answer.content) < 10_000, f"{name}: the answer repeats the body"
            found.append((cost.cpu_seconds, cost.slowest, name, cost.refusals))
    assert not [entry for entry in found if entry[0] > CPU_SECONDS or entry[1] > LATENCY_SECONDS or entry[3]], sorted(
        found
    )[-5:]


@pytest.mark.process
async def test_large_bodies_are_read_one_at_a_time_and_others_are_served_meanwhile(server: Attacked) -> None:
    body = BATCHES["as many numbers as are allowed, and then no JSON"]()
    async with httpx.AsyncClient(base_url=server.address, timeout=PATIENCE_SECONDS) as client, server.watched() as cost:
        answers = await asyncio.gather(*(client.post("/v1/jobs/batch", content=body, headers=JSON) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {400}
    assert not cost.refusals
    assert cost.slowest < LATENCY_SECONDS
    assert cost.memory_bytes < 600_000_000


@pytest.mark.process
async def test_a_body_with_a_too_large_content_length_is_not_read(server: Attacked) -> None:
    reader, writer = await asyncio.open_connection(*server.place)
    writer.write(
        b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        b"99999999999\r\n\r\n"
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert b"413" in await reader.readline()
    writer.close()


async def test_a_compressed_body_is_refused_and_not_unpacked(client: httpx.AsyncClient) -> None:
    headers = JSON | {"Content-Encoding": "gzip"}
    answer = await client.post("/v1/jobs", content=b"\x1f\x8b\x08", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "not_json")
    assert "Content-Encoding" in answer.json()["detail"]


async def test_a_large_ordinary_body_is_accepted(client: httpx.AsyncClient) -> None:
    """A text full of brackets, commas, digits and escapes is one value of any length."""
    text = '[{,}]\\" 0123456789 é \\' * 20_000 + "9" * 5_000
    answer = await client.post("/v1/jobs", json={"task": "simulate", "payload": {"text": text}})
    assert answer.status_code == 201, answer.text
    shown = await client.get(f"/v1/jobs/{answer.json()['id']}")
    assert shown.json()["payload"] == {"text": text}


async def test_an_idempotency_key_covers_a_large_body(client: httpx.AsyncClient) -> None:
    fields = {"task": "simulate", "payload": {"a": list(range(50_000)), "b": "x"}}
    headers = {"Idempotency-Key": "large"}
    first = await client.post("/v1/jobs", json=fields, headers=headers)
    turned = {"payload": {"b": "x", "a": list(range(50_000))}, "task": "simulate"}
    again = await client.post("/v1/jobs", json=turned, headers=headers)
    other = await client.post("/v1/jobs", json={**fields, "priority": 1}, headers=headers)
    assert (first.status_code, again.status_code) == (201, 200), again.text
    assert first.json()["id"] == again.json()["id"]
    assert other.status_code in (409, 422)


@pytest.mark.parametrize("shift", range(6))
def test_slices_may_cut_strings_and_escapes(shift: int) -> None:
    """Cuts the body everywhere in `\\"[`. If a quote were missed, the brackets inside the strings would count."""
    string = b'"' + b'\\\\\\"[' * 100 + b'"'
    before = b" " * (SLICE_BYTES - 50 - shift)
    refuse_shape(before + b"[" + b",".join([string] * 5_000) + b"]", "body")
    with pytest.raises(Malformed, match="nested"):
        refuse_shape(before + string + b"[" * 101, "body")


def test_values_are_counted_outside_strings_only() -> None:
    text = b'"' + b"[,{" * VALUES_MAX + b'"'
    refuse_shape(b"[" + text + b"]", "body")
    refuse_shape(b"[" + b"0," * (VALUES_MAX - 2) + b"0]", "body")
    with pytest.raises(TooLarge, match="500,000 values"):
        refuse_shape(b"[" + b"0," * (VALUES_MAX + 1) + b"0]", "body")


@pytest.mark.parametrize("text", ["5e", "NaN", "7" * 600, "é"])
def test_a_body_with_a_wrong_field_is_not_parsed_again(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searching a million values for characters that can't be stored takes seconds."""
    monkeypatch.delattr("foliot.api.requests.bodies.json.loads")
    with pytest.raises(Invalid, match="tags: must be a list"):
        decode(f'{{"task": "a", "payload": {{"{text}": ["{text}", 5]}}, "tags": 5}}'.encode(), JOB)


@pytest.mark.parametrize(
    "value", ["1e400", "-2E999", "NaN", "-Infinity", '"\\u0000"', '"\\udFFF"', '"\\uD800"', "7" * 501]
)
def test_a_value_that_can_not_be_stored_is_named_before_a_wrong_field(value: str) -> None:
    with pytest.raises(Invalid) as refused:
        decode(f'{{"task": "a", "tags": 5, "payload": {{"x": [{value}]}}}}'.encode(), JOB)
    assert refused.value.field == "payload.x[0]"


def test_digits_are_counted_in_numbers_only() -> None:
    longest = b"7" * DIGITS_MAX
    assert not has_long_number(b"[" + longest + b"," + longest + b"]")
    assert not has_long_number(b'["' + longest * 2 + b'"]')
    assert has_long_number(b"[" + longest + b"7]")
    assert has_long_number(b" " * (SLICE_BYTES - 100) + b"[0." + longest + b"7]")
