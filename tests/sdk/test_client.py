"""The client against misbehaving servers. Tests of the commands use it against a real one."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from foliot.errors import (
    Busy,
    ConfigurationError,
    Conflict,
    FoliotError,
    Forbidden,
    Invalid,
    NotFound,
    QueueFull,
    StoreUnavailable,
    TooLarge,
    Unauthenticated,
    UnknownTask,
    Unreachable,
)
from foliot.sdk import client as sdk_client
from foliot.sdk import http_protocol
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.client import Client
from foliot.triggers.cron_fields import CronError


class Scripted(HTTPServer):
    """Gives the responses of a script, one for each request, and repeats the last one. None closes the connection.
    Records the requests."""

    def __init__(self, *script: tuple[int, bytes] | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = list(script)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.headers: dict[str, str] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Scripted

    def handle_request(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(
            (self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        )
        step = self.server.script.pop(0) if len(self.server.script) > 1 else self.server.script[0]
        if step is None:
            return
        self.send_response(step[0])
        self.send_header("Content-Length", str(len(step[1])))
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(step[1])

    do_GET = do_POST = do_DELETE = handle_request  # noqa: N815

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def serving(*script: tuple[int, bytes] | None) -> Iterator[Scripted]:
    with Scripted(*script) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def problem(status: int, code: str, **fields: str) -> tuple[int, bytes]:
    return status, json.dumps({"status": status, "code": code, "detail": f"said: {code}"} | fields).encode()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem(422, "invalid", field="priority"), Invalid),
        (problem(422, "unknown_task", field="priority"), UnknownTask),
        (problem(422, "invalid_cron", field="cron"), CronError),
        (problem(422, "invented_later", field="priority"), Invalid),
        (problem(413, "too_large"), TooLarge),
        (problem(404, "not_found"), NotFound),
        (problem(409, "conflict"), Conflict),
        (problem(503, "store_unavailable"), StoreUnavailable),
        (problem(403, "foreign_host"), FoliotError),
        (problem(429, "busy"), Busy),
        (problem(429, "queue_full"), QueueFull),
        (problem(429, "invented_later"), Busy),
        (problem(500, "internal"), FoliotError),
    ],
)
def test_problem_documents_become_the_original_errors(answer: tuple[int, bytes], kind: type[FoliotError]) -> None:
    with serving(answer) as server, Client(server.url) as client, pytest.raises(FoliotError) as raised:
        client.get_job("x")
    assert type(raised.value) is kind
    document = json.loads(answer[1])
    assert raised.value.detail == document["detail"]
    assert getattr(raised.value, "field", "") == document.get("field", "")


@pytest.mark.parametrize(
    ("answer", "kind", "advice"),
    [
        (problem(401, "unauthenticated"), Unauthenticated, "set FOLIOT_TOKEN to a token of this server"),
        (problem(403, "forbidden"), Forbidden, "set FOLIOT_TOKEN to a token with a sufficient role"),
    ],
)
async def test_a_refused_caller_gets_advice(answer: tuple[int, bytes], kind: type[FoliotError], advice: str) -> None:
    with serving(answer) as server:
        with Client(server.url) as client, pytest.raises(kind, match=f"^said: .*; {advice}$"):
            client.get_job("x")
        async with AsyncClient(server.url) as other:
            with pytest.raises(kind):
                await other.get_job("x")


@pytest.mark.parametrize(("said", "seconds"), [("7", 7), ("", 1), ("Wed, 21 Oct 2026 07:28:00 GMT", 1)])
async def test_a_busy_server_sends_retry_after(said: str, seconds: int) -> None:
    with serving(problem(429, "queue_full")) as server:
        server.headers = {"Retry-After": said}
        with Client(server.url) as client, pytest.raises(Busy) as raised:
            client.create_job({"task": "x"})
        async with AsyncClient(server.url) as other:
            with pytest.raises(QueueFull) as raised_there:
                await other.create_job({"task": "x"})
    assert raised.value.retry_after == raised_there.value.retry_after == seconds


async def test_waiting_retries_a_busy_server() -> None:
    ended = (200, b'{"id": "x", "status": "completed"}')
    with serving(problem(429, "rate_limited"), ended) as server, Client(server.url) as client:
        assert client.wait_for_job("x", timeout=30).document["status"] == "completed"
    with serving(problem(429, "rate_limited"), ended) as server:
        async with AsyncClient(server.url) as other:
            assert (await other.wait_for_job("x", timeout=30)).document["status"] == "completed"


async def test_a_configured_namespace_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving((200, b"{}")) as server:
        with Client(server.url, namespace="team-a") as client, Client(server.url) as plain:
            client.get_job("x")
            plain.get_job("x")
        async with AsyncClient(server.url, namespace="team-b") as other:
            await other.get_job("x")
        monkeypatch.setenv("FOLIOT_URL", server.url)
        monkeypatch.setenv("FOLIOT_NAMESPACE", "team-c")
        with Client.from_environment() as client:
            client.get_job("x")
    assert [headers.get("foliot-namespace") for _, _, headers, _ in server.asked] == [
        "team-a",
        None,
        "team-b",
        "team-c",
    ]
    for wrong in ("Team", "a b", "-a", "x" * 64, "a\n"):
        with pytest.raises(ConfigurationError, match="FOLIOT_NAMESPACE"):
            Client("http://127.0.0.1:1", namespace=wrong)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((404, b"<html>not here</html>"), "404 Not Found"),
        ((302, b""), "302 Found"),
        ((502, b'{"error": "bad gateway"}'), "502 Bad Gateway"),
        ((200, b"<html>hello</html>"), "a response that is not a JSON object"),
        ((200, b""), "a response that is not a JSON object"),
        ((200, b"[]"), "a response that is not a JSON object"),
        ((200, b"[" * 100_000), "a response that is not a JSON object"),
    ],
)
def test_another_server_at_the_address_is_not_mistaken_for_foliot(answer: tuple[int, bytes], words: str) -> None:
    with serving(answer) as server, Client(server.url) as client, pytest.raises(FoliotError) as raised:
        client.get_job("x")
    assert raised.value.detail == f"{server.url} sent {words}, unlike a Foliot server; check FOLIOT_URL"


def test_a_malformed_list_is_an_error() -> None:
    with (
        serving((200, b"{}")) as server,
        Client(server.url) as client,
        pytest.raises(FoliotError, match="unlike a Foliot server"),
    ):
        client.list_jobs()


def test_a_missing_field_is_reported_as_an_error_of_the_server() -> None:
    with serving((200, b'{"items": [{"a": 1}]}')) as server, Client(server.url) as client:
        (item,) = client.list_ticks("x", limit=1).document["items"]
    assert item["a"] == 1
    with pytest.raises(
        FoliotError, match=r"^the server's response has no field 'run_id'; is it a Foliot server of this version\?$"
    ):
        item["run_id"]


def test_a_list_keeps_every_digit_of_every_page() -> None:
    pages = [
        (200, b'{"items":[{"n":1.0}],"next":"a b"}'),
        (200, b'{"items":[{"n": 12345678901234567890123}],"next":null}'),
    ]
    with serving(*pages) as server, Client(server.url) as client:
        assert client.list_jobs().content == b'{"items":[{"n":1.0},{"n": 12345678901234567890123}],"next":null}'
    assert [path for _, path, _, _ in server.asked] == ["/v1/jobs?after=&limit=200", "/v1/jobs?after=a+b&limit=200"]


@pytest.mark.parametrize(("is_change", "is_doubtful"), [(True, True), (False, False)])
def test_the_error_of_a_broken_connection_says_whether_the_request_may_have_succeeded(
    is_change: bool, is_doubtful: bool
) -> None:
    with serving(None) as server, Client(server.url) as client, pytest.raises(Unreachable) as raised:
        client.trigger_job("x") if is_change else client.get_job("x")
    assert raised.value.is_doubtful is is_doubtful
    assert raised.value.detail.startswith(f"{server.url}: the connection was closed")
    assert ("may have been processed" in raised.value.detail) is is_doubtful


def test_a_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, answer_seconds=0.1) as client, pytest.raises(Unreachable) as raised:
            client.create_job({"task": "x"})
    assert raised.value.detail == f"{url} did not answer within 0.1 s; the request may have been processed"


def test_a_configured_token_is_sent_with_every_request() -> None:
    with serving((200, b"{}")) as server:
        with Client(server.url, token="s3cret") as client:
            client.get_job("x")
            client.resume_job("x")
        with Client(server.url) as client:
            client.get_job("x")
    assert [headers.get("authorization") for _, _, headers, _ in server.asked] == [
        "Bearer s3cret",
        "Bearer s3cret",
        None,
    ]


def test_address_and_token_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving((200, b"{}")) as server:
        monkeypatch.setenv("FOLIOT_URL", f"{server.url}/behind/a/proxy/")
        monkeypatch.setenv("FOLIOT_TOKEN", "t")
        with Client.from_environment() as client:
            client.get_job("a b")
    ((_, path, headers, _),) = server.asked
    assert (path, headers["authorization"]) == ("/behind/a/proxy/v1/jobs/a%20b", "Bearer t")


def test_requests_to_this_machine_bypass_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving((200, b"{}")) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            with Client(url) as client:
                client.get_job("x")
    assert len(server.asked) == 2


def test_a_password_in_the_address_is_not_shown() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://me:hunter2@127.0.0.1:{closed.getsockname()[1]}"
        with Client(url) as client, pytest.raises(Unreachable) as raised:
            client.list_jobs()
    assert "hunter2" not in raised.value.detail
    assert "me:***@127.0.0.1" in raised.value.detail
    with pytest.raises(ConfigurationError) as refused:
        Client("ftp://me:hunter2@host")
    assert "hunter2" not in refused.value.detail


def test_waiting_survives_an_absent_server() -> None:
    away, running, ended = (
        problem(503, "store_unavailable"),
        (200, b'{"status": "running"}'),
        (200, b'{"status": "failed"}'),
    )
    with serving(None, away, running, None, ended) as server, Client(server.url) as client:
        assert client.wait_for_job("x").document == {"status": "failed"}
    assert len(server.asked) == 5


def test_waiting_for_a_server_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_client, "PATIENCE_SECONDS", 0.2)
    with (
        serving(problem(503, "store_unavailable")) as server,
        Client(server.url) as client,
        pytest.raises(StoreUnavailable),
    ):
        client.wait_for_job("x")
    assert len(server.asked) > 1


def test_waiting_for_an_unknown_job_fails_at_once() -> None:
    with serving(problem(404, "not_found")) as server, Client(server.url) as client, pytest.raises(NotFound):
        client.wait_for_job("x")
    assert len(server.asked) == 1


CREATED = (201, b'{"id": "7", "created": true}')


@pytest.mark.parametrize("lost", [None, problem(503, "store_unavailable")])
async def test_a_request_with_an_idempotency_key_is_repeated_after_a_lost_answer(
    monkeypatch: pytest.MonkeyPatch, lost: tuple[int, bytes] | None
) -> None:
    monkeypatch.setattr(http_protocol, "REPEAT_PAUSES", (0.0, 0.0))
    job = {"task": "t", "idempotency_key": "k"}
    with serving(lost, lost, CREATED) as server, Client(server.url) as client:
        assert client.create_job(job).document["id"] == "7"
        assert [json.loads(asked[3]) for asked in server.asked] == [job] * 3
    with serving(lost, CREATED) as server:
        async with AsyncClient(server.url) as async_client:
            assert (await async_client.create_job(job)).document["id"] == "7"
    with serving(lost) as server, Client(server.url) as client, pytest.raises((Unreachable, StoreUnavailable)):
        client.create_jobs([{"task": "t"}], idempotency_key="k")
    assert len(server.asked) == 3


async def test_a_request_without_an_idempotency_key_is_not_repeated() -> None:
    with serving(None, CREATED) as server, Client(server.url) as client, pytest.raises(Unreachable):
        client.create_job({"task": "t"})
    assert len(server.asked) == 1
