"""The output of a run over HTTP: as a whole, and streamed from a real server to real clients."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.api.streams import log_stream
from foliot.api.streams.log_stream import LogStream
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.sdk.operations import LogEvent, Operations
from foliot.store.logs import LogPart, ProgressNote
from foliot.store.store import Store
from tests.support.ports import free_port
from tests.support.processes import FoliotProcess
from tests.support.runs import WORKER, claim, finish, insert
from tests.support.waiting import PATIENCE_SECONDS, until


async def running(store: Store) -> tuple[UUID, int]:
    run_id = await insert(store)
    (claimed,) = await claim(store)
    return run_id, claimed.token


async def write(store: Store, run_id: UUID, token: int, at: int, chunk: bytes) -> None:
    await store.logs.write_logs(WORKER, [LogPart(run_id, token, at, chunk)], [])


async def end(
    store: Store, run_id: UUID, token: int, output: bytes | None, state: RunState = RunState.SUCCEEDED
) -> None:
    assert await store.outcomes.finish_runs(WORKER, [Outcome(run_id, token, state, output=output)]) == 1


class Stream:
    """The events of one connection."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.aiter_lines()

    async def next(self) -> tuple[str, str, Any]:
        """The kind, id and data of the next event."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if line and not line.startswith(":"):
                    fields[name] = value
                elif fields:
                    return fields["event"], fields.get("id", ""), json.loads(fields["data"])
        raise AssertionError("the stream has ended")

    async def rest(self) -> list[tuple[str, str, Any]]:
        found = [await self.next()]
        while found[-1][0] != "end":
            found.append(await self.next())
        return found


def text_of(events: list[tuple[str, str, Any]]) -> str:
    return "".join(data["text"] for kind, _, data in events if kind == "output")


async def test_output_is_streamed_live_and_stored_at_the_end(client: httpx.AsyncClient, store: Store) -> None:
    run_id, token = await running(store)
    path = f"/v1/runs/{run_id}/logs"
    assert (await client.get(path)).content == b""
    await write(store, run_id, token, 0, b"one\n\xff")
    answer = await client.get(path)
    assert (answer.content, answer.headers["content-type"]) == (b"one\n\xff", "text/plain; charset=utf-8")
    assert answer.headers["x-content-type-options"] == "nosniff"
    await end(store, run_id, token, b"one\ntwo\n")
    assert (await client.get(path)).content == b"one\ntwo\n"


async def test_each_attempt_has_its_own_output(client: httpx.AsyncClient, store: Store) -> None:
    run_id, token = await running(store)
    await store.outcomes.retry_runs(WORKER, [Outcome(run_id, token, RunState.SCHEDULED, "error", output=b"first")])
    assert (await client.get(f"/v1/runs/{run_id}/logs")).content == b"first"
    await store.runs.move_runs([run_id], RunState.READY)
    (second,) = await claim(store)
    await write(store, run_id, second.token, 0, b"second")
    assert (await client.get(f"/v1/runs/{run_id}/logs")).content == b"second"
    assert (await client.get(f"/v1/runs/{run_id}/logs?attempt=1")).content == b"first"
    assert (await client.get(f"/v1/runs/{run_id}/logs?attempt=2")).content == b"second"
    for path, status in (("?attempt=3", 404), ("?attempt=x", 422), ("?follow=perhaps", 422)):
        assert (await client.get(f"/v1/runs/{run_id}/logs{path}")).status_code == status
    for missing in (new_id(), "x"):
        assert (await client.get(f"/v1/runs/{missing}/logs?follow=1")).status_code == 404


async def test_a_lost_attempt_keeps_the_output_that_it_had_written(client: httpx.AsyncClient, store: Store) -> None:
    run_id, token = await running(store)
    await write(store, run_id, token, 0, b"last words")
    await store.workers.remove_worker(WORKER)
    await store.lost_runs.lose_runs(10, 1)
    assert (await client.get(f"/v1/runs/{run_id}/logs")).content == b"last words"
    events = await _all(client, run_id)
    assert (text_of(events), events[-1][2]["reason"]) == ("last words", "lost")


async def test_an_ended_run_streams_its_stored_output_and_its_end(client: httpx.AsyncClient, store: Store) -> None:
    run_id = await finish(store, RunState.FAILED, error="no", output="naïve\n".encode())
    events = await _all(client, run_id)
    assert [kind for kind, _, _ in events] == ["output", "end"]
    assert events[0] == ("output", "1:7", {"attempt": 1, "text": "naïve\n"})
    assert events[1][2] == {"state": "failed", "status": "failed", "reason": "error", "attempt": 1}


async def test_a_large_kept_output_comes_in_slices_with_whole_characters(
    client: httpx.AsyncClient, store: Store
) -> None:
    output = "€".encode() * 60_000
    run_id = await finish(store, output=output)
    events = await _all(client, run_id)
    assert len(events) > 3
    assert text_of(events) == output.decode()
    half = events[1][1]
    resumed = await _all(client, run_id, **{"Last-Event-ID": half})
    assert text_of(events[:2]) + text_of(resumed) == output.decode()


@pytest.mark.parametrize("event_id", ["x", "1", "1:", "0:1", "-1:1", "1:9999999999999999999"])
async def test_a_malformed_place_to_resume_from_is_refused(
    client: httpx.AsyncClient, store: Store, event_id: str
) -> None:
    run_id = await finish(store)
    answer = await client.get(f"/v1/runs/{run_id}/logs?follow=1", headers={"Last-Event-ID": event_id})
    assert (answer.status_code, answer.json()["field"]) == (422, "Last-Event-ID")


async def test_a_place_in_an_unknown_attempt_is_ignored(client: httpx.AsyncClient, store: Store) -> None:
    run_id = await finish(store, output=b"all")
    assert text_of(await _all(client, run_id, **{"Last-Event-ID": "77:1"})) == "all"


async def _all(client: httpx.AsyncClient, run_id: UUID, **headers: str) -> list[tuple[str, str, Any]]:
    async with client.stream("GET", f"/v1/runs/{run_id}/logs?follow=1", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        return await Stream(answer).rest()


@pytest.mark.process
class TestOverARealConnection:
    @pytest.fixture
    async def server(self, store: Store, database_url: str) -> AsyncIterator[FoliotProcess]:
        async with FoliotProcess(
            "server", "--open", environment={"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": "0"}
        ) as process:
            yield process
            process.signal(signal.SIGTERM)
            await process.wait()

    @pytest.fixture
    async def remote(self, server: FoliotProcess) -> AsyncIterator[httpx.AsyncClient]:
        started = await server.event("ProcessStarted", part="server")
        async with httpx.AsyncClient(base_url=started["address"], timeout=PATIENCE_SECONDS) as client:
            yield client

    async def test_output_and_progress_arrive_live_until_the_end(self, remote: httpx.AsyncClient, store: Store) -> None:
        run_id, token = await running(store)
        async with remote.stream("GET", f"/v1/runs/{run_id}/logs?follow=1") as answer:
            stream = Stream(answer)
            await write(store, run_id, token, 0, "h€llo"[:2].encode()[:3])
            assert await stream.next() == ("output", "1:1", {"attempt": 1, "text": "h"})
            await write(store, run_id, token, 3, "€".encode()[2:] + b"llo\n")
            assert await stream.next() == ("output", "1:8", {"attempt": 1, "text": "€llo\n"})
            await store.logs.write_logs(
                WORKER, [], [ProgressNote(run_id, token, '{"share": 0.5, "message": "half", "attempt": 1}')]
            )
            assert await stream.next() == ("progress", "", {"share": 0.5, "message": "half", "attempt": 1})
            kept = "h€llo\nbye\n".encode()
            await store.outcomes.retry_runs(WORKER, [Outcome(run_id, token, RunState.SCHEDULED, "error", output=kept)])
            assert await stream.next() == ("output", "1:12", {"attempt": 1, "text": "bye\n"})
            await store.runs.move_runs([run_id], RunState.READY)
            (second,) = await claim(store)
            await write(store, run_id, second.token, 0, b"again\n")
            assert await stream.next() == ("output", "2:6", {"attempt": 2, "text": "again\n"})
            await end(store, run_id, second.token, b"again\n")
            assert await stream.next() == (
                "end",
                "",
                {"state": "succeeded", "status": "completed", "reason": None, "attempt": 2},
            )
            with pytest.raises(AssertionError, match="has ended"):
                await stream.next()

    async def test_a_disconnected_follower_resumes(self, remote: httpx.AsyncClient, store: Store) -> None:
        run_id, token = await running(store)
        await write(store, run_id, token, 0, b"one\n")
        async with remote.stream("GET", f"/v1/runs/{run_id}/logs?follow=1") as answer:
            _, event_id, _ = await Stream(answer).next()
        await write(store, run_id, token, 4, b"two\n")
        async with remote.stream(
            "GET", f"/v1/runs/{run_id}/logs?follow=1", headers={"Last-Event-ID": event_id}
        ) as answer:
            stream = Stream(answer)
            assert (await stream.next())[2]["text"] == "two\n"
            await end(store, run_id, token, b"one\ntwo\nthree\n")
            assert text_of(await stream.rest()) == "three\n"

    async def test_one_attempt_ends_with_that_attempt(self, remote: httpx.AsyncClient, store: Store) -> None:
        run_id, token = await running(store)
        async with remote.stream("GET", f"/v1/runs/{run_id}/logs?follow=1&attempt=1") as answer:
            await store.outcomes.retry_runs(
                WORKER, [Outcome(run_id, token, RunState.SCHEDULED, "error", delay_seconds=60, output=b"x")]
            )
            events = await Stream(answer).rest()
        assert (text_of(events), events[-1][2]["status"]) == ("x", "retrying")

    async def test_a_stopping_server_does_not_wait_for_followers(
        self, server: FoliotProcess, remote: httpx.AsyncClient, store: Store
    ) -> None:
        run_id, token = await running(store)
        async with remote.stream("GET", f"/v1/runs/{run_id}/logs?follow=1") as answer:
            stream = Stream(answer)
            await write(store, run_id, token, 0, b"one\n")
            await stream.next()
            began = time.monotonic()
            server.signal(signal.SIGTERM)
            with pytest.raises(AssertionError, match="has ended"):
                await stream.next()
            assert await server.wait() == 0
            # The run is still running, so its log would continue.
            assert time.monotonic() - began < 20

    async def test_a_disconnect_stops_the_queries(self, remote: httpx.AsyncClient, store: Store, sql: Any) -> None:
        run_id, token = await running(store)

        async def looks() -> int:
            busy = (
                "application_name = 'foliot server' and datname = current_database() and state_change > now() - "
                "interval '0.8 s'"
            )
            return int(await sql.fetchval(f"select count(*) from pg_stat_activity where {busy}"))

        async with remote.stream("GET", f"/v1/runs/{run_id}/logs?follow=1") as answer:
            await write(store, run_id, token, 0, b"one\n")
            # Keep a reference, because an unreferenced stream is closed by the garbage collector.
            stream = Stream(answer)
            await stream.next()
            assert await until(looks)
            del stream

        async def is_silent() -> bool:
            return await looks() == 0

        assert await until(is_silent)


async def test_a_follower_of_a_silent_run_gets_heartbeats(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream, "HEARTBEAT_SECONDS", 0.1)
    run_id, token = await running(store)
    stream = LogStream(
        run_id, store=store, clock=store.database.clock, stopping=asyncio.Event(), is_gone=never
    ).events()
    assert await anext(stream) == log_stream.HEARTBEAT
    await end(store, run_id, token, None)
    *_, last = [event async for event in stream]
    assert b"event: end" in last


@pytest.mark.process
async def test_the_client_resumes_after_a_restart_of_the_server(store: Store, database_url: str) -> None:
    run_id, token = await running(store)
    port = free_port()
    environment = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": str(port)}
    seen: list[LogEvent] = []

    def follow() -> None:
        with Operations(f"http://127.0.0.1:{port}") as following:
            seen.extend(following.follow_logs(str(run_id)))

    async with FoliotProcess("server", "--open", environment=environment) as server:
        await server.event("ProcessStarted", part="server")
        await write(store, run_id, token, 0, b"one\n")
        task = asyncio.create_task(asyncio.to_thread(follow))
        await until(lambda: _are(seen, 1))
        server.kill_tree()
    await write(store, run_id, token, 4, b"two\n")
    async with FoliotProcess("server", "--open", environment=environment) as server:
        await until(lambda: _are(seen, 2))
        await end(store, run_id, token, b"one\ntwo\nthree\n")
        await task
    assert "".join(event.data["text"] for event in seen if event.kind == "output") == "one\ntwo\nthree\n"
    assert (seen[-1].kind, seen[-1].data["status"]) == ("end", "completed")


async def _are(seen: list[LogEvent], count: int) -> bool:
    return len(seen) >= count


async def never() -> bool:
    return False
