"""Clients that send slowly or not at all, or do not read, in any number."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from foliot.store.store import Store
from tests.support.attacked import Attacked, answer_to, attacked
from tests.support.certificates import Authority
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.process

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SHORT = {"request_head_seconds": 1, "request_body_seconds": 1, "connection_idle_seconds": 1}


@pytest.fixture
async def hasty(database_url: str) -> AsyncIterator[Attacked]:
    """A server with short deadlines."""
    async with attacked(database_url, **SHORT) as server:
        yield server


async def trickle(server: Attacked, opening: bytes, drop: bytes) -> tuple[bytes, float]:
    """The response, and the seconds after which the server closed the connection."""
    reader, writer = await asyncio.open_connection(*server.place)
    began = time.monotonic()
    writer.write(opening)
    answer = bytearray()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not reader.at_eof():
                writer.write(drop)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        answer += await reader.read(4096)
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()
    return bytes(answer), time.monotonic() - began


async def test_a_slow_request_is_refused_in_time(hasty: Attacked) -> None:
    cases = {
        "a head": (HEAD + b"X: ", b"y", b" 408 "),
        "a target": (b"GET /", b"y", b" 408 "),
        "a body of a length": (POST + b"Content-Length: 100000\r\n\r\n", b" ", b" 408 "),
        "a body in chunks": (POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", b" 408 "),
        "an extension of a chunk": (POST + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x", b" 408 "),
        "the body of a request that was answered before": (HEAD + b"Content-Length: 100000\r\n\r\n", b" ", b" 200 "),
        "a second request": (HEAD + b"\r\n" + HEAD + b"X: ", b"y", b" 408 "),
        "empty lines": (b"", b"\r\n", b""),
        "empty lines after a request": (HEAD + b"\r\n", b"\r\n", b" 200 "),
        "nothing": (b"", b"", b""),
        "nothing after the head of a request with a body": (POST + b"Content-Length: 5\r\n\r\n", b"", b" 408 "),
        "nothing after a request": (HEAD + b"\r\n", b"", b" 200 "),
        "nothing after a client that waits to be asked for its body": (
            POST + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
            b"",
            b" 408 ",
        ),
    }
    found = await asyncio.gather(*(trickle(hasty, opening, drop) for opening, drop, _ in cases.values()))
    for (name, (_, _, status)), (answer, seconds) in zip(cases.items(), found, strict=True):
        assert status in answer, (name, answer)
        assert seconds < 30, (name, seconds)
    assert not [line for line in hasty.process.lines if "Traceback" in line]


async def test_a_slow_body_that_keeps_arriving_is_accepted(database_url: str, store: Store) -> None:
    """Each part extends the deadline."""
    await store.workers.announce_tasks({"shell": "default", "send_invoice": "mail"})
    text = b'{"task": "send_invoice", "payload": {"x": "' + b"x" * 700_000 + b'"}}'
    async with attacked(database_url, **SHORT) as server:
        reader, writer = await asyncio.open_connection(*server.place)
        writer.write(POST + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(text))
        for start in range(0, len(text), 100_000):
            writer.write(text[start : start + 100_000])
            await asyncio.sleep(0.5)
        assert b" 201 " in await reader.readline()
        writer.transport.abort()


async def test_a_response_may_last_forever(database_url: str, store: Store) -> None:
    """A stream of events outlives every deadline for requests."""
    await store.workers.announce_tasks({"shell": "default", "send_invoice": "mail"})
    async with (
        attacked(database_url, **SHORT, response_unread_seconds=1) as server,
        httpx.AsyncClient(base_url=server.address) as client,
        client.stream("GET", "/v1/events", timeout=PATIENCE_SECONDS) as stream,
    ):
        lines = stream.aiter_lines()
        assert await anext(lines) == ": here"
        await asyncio.sleep(5)
        job = (await client.post("/v1/jobs", json={"task": "shell", "payload": {"command": "true"}})).json()
        await client.post(f"/v1/jobs/{job['id']}/cancel")
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for line in lines:
                if job["id"] in line:
                    break


async def test_a_client_that_reads_nothing_is_disconnected(database_url: str) -> None:
    async with (
        attacked(database_url, response_unread_seconds=1) as server,
        httpx.AsyncClient(base_url=server.address) as client,
    ):
        size = len((await client.get("/openapi.json")).content)
        assert size > 100_000
        asking = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 60
        async with server.watched() as cost:
            with contextlib.ExitStack() as stack:
                for _ in range(40):
                    deaf = stack.enter_context(socket.create_connection(server.place))
                    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    deaf.sendall(asking)

                async def are_gone() -> bool:
                    return len(psutil.Process(server.pid).net_connections("tcp")) < 20

                await until(are_gone)
        # All of it would be 40 times 60 responses.
        assert cost.memory_bytes < 150_000_000
        assert not cost.refusals
        assert not [line for line in server.process.lines if "Traceback" in line]


@contextlib.contextmanager
def slow_clients(server: Attacked, number: int, said: bytes) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(number):
            one = stack.enter_context(socket.create_connection(server.place, timeout=PATIENCE_SECONDS))
            # A client whose place was given to another may have received the refusal already.
            with contextlib.suppress(ConnectionError):
                one.sendall(said)
            found.append(one)
        yield found


@pytest.mark.parametrize("said", [b"", HEAD + b"X: ", POST + b"Content-Length: 1000\r\n\r\n{", HEAD + b"\r\n"])
async def test_more_slow_clients_than_files_leave_room_for_an_honest_one(database_url: str, said: bytes) -> None:
    async with attacked(database_url, files_max=256) as server:
        with slow_clients(server, 400, said):
            async with server.watched() as cost:
                await asyncio.sleep(3)
        assert not cost.refusals
        assert len(cost.latencies) > 5
        assert cost.slowest < 5.0
        assert cost.cpu_seconds < 3.0
        assert not [line for line in server.process.lines if "Traceback" in line]


async def test_tls_clients_that_never_shake_hands_leave_room_for_an_honest_one(
    database_url: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.files("IP:127.0.0.1")
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    async with attacked(database_url, files_max=256, tls_certificate_file=certificate, tls_key_file=key) as server:
        assert server.address.startswith("https://")
        before = server.cpu_seconds()
        with slow_clients(server, 400, b"\x16\x03\x01"):
            for _ in range(5):
                async with httpx.AsyncClient(
                    base_url=server.address, verify=trusting, timeout=PATIENCE_SECONDS
                ) as client:
                    assert (await client.get("/healthz")).status_code == 200
        assert server.cpu_seconds() - before < 3.0
        assert not [line for line in server.process.lines if "Traceback" in line]


async def test_tls_clients_have_deadlines_too(database_url: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.files("IP:127.0.0.1")
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    async with attacked(database_url, **SHORT, tls_certificate_file=certificate, tls_key_file=key) as server:
        # One client never completes its handshake; another does, and then sends half of its request.
        assert await answer_to(server, b"\x16\x03\x01") == b""
        reader, writer = await asyncio.open_connection(*server.place, ssl=trusting)
        writer.write(HEAD)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert b" 408 " in await reader.readline()
        writer.transport.abort()


async def test_a_client_gets_503_when_every_connection_is_answering(database_url: str) -> None:
    follow = b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with attacked(database_url, connections_max=8) as server:
        with slow_clients(server, 8, follow) as followers:
            for follower in followers:
                assert follower.recv(15) == b"HTTP/1.1 200 OK"
            answer = await answer_to(server)
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b'"code":"too_many_connections"' in answer
            assert b"retry-after: 1" in answer
            followers[0].close()

            async def is_answered() -> bool:
                return b" 200 " in await answer_to(server, HEAD + b"Connection: close\r\n\r\n")

            await until(is_answered)


async def test_a_process_without_free_file_descriptors_neither_spins_nor_dies(database_url: str) -> None:
    async with attacked(database_url) as server:
        # A process that has just started is still loading its modules.
        assert b" 200 " in await answer_to(server, HEAD + b"Connection: close\r\n\r\n")
        process = psutil.Process(server.pid)
        limits = process.rlimit(psutil.RLIMIT_NOFILE)
        process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds(), limits[1]))
        with slow_clients(server, 20, HEAD):
            before = server.cpu_seconds()
            await asyncio.sleep(3)
            assert server.cpu_seconds() - before < 1.0
            process.rlimit(psutil.RLIMIT_NOFILE, limits)
            assert b" 200 " in await answer_to(server, HEAD + b"Connection: close\r\n\r\n")
        assert not [line for line in server.process.lines if "Traceback" in line]


async def test_a_slow_client_does_not_keep_a_server_from_stopping(database_url: str) -> None:
    async with attacked(database_url, **SHORT) as server:
        with slow_clients(server, 3, POST + b"Content-Length: 1000\r\n\r\n{"):
            server.process.signal(signal.SIGTERM)
            assert await server.process.wait() == 0
