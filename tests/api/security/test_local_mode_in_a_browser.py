"""Local open mode with a real browser: a page of another origin can neither create, start nor read anything. Our own
page can."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from foliot.store.store import Store
from tests.support.browser import chromium
from tests.support.http import answer, answering
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

# The browser may have to be installed first.
pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

SECRET = "the name of a job that nobody else is to know"
EVIL = "evil.example"
PAGE = answer(body=b"<!doctype html><title>a page</title>", Content_Type="text/html", Connection="close")

# Every way in which a page can send a request, with what it could read of the answer, or null.
ATTEMPTS = """
async ({foliot, run}) => {
  const jobs = foliot + "/v1/jobs", trigger = jobs + "/nightly/trigger";
  const body = JSON.stringify({task: "simulate", name: "from a page"});
  const seen = {};
  const attempt = async (name, work) => {
    let timer;
    const late = new Promise((resolve) => { timer = setTimeout(resolve, 15000, "no end"); });
    try { seen[name] = await Promise.race([work(), late]) ?? null; } catch { seen[name] = null; }
    clearTimeout(timer);
  };
  const fetched = async (url, options) => {
    const answer = await fetch(url, options);
    return answer.type === "opaque" ? null : answer.status + " " + await answer.text();
  };
  const post = (type, rest) => ({method: "POST", body: new Blob([body], {type}), ...rest});
  const element = (name, fields) => new Promise((resolve) => {
    const made = Object.assign(document.createElement(name), fields);
    made.onload = () => resolve(made);
    made.onerror = () => resolve(null);
    document.body.append(made);
  });
  const looked = (frame) => { try { return frame.contentDocument?.body.innerText ?? null; } catch { return null; } };
  const form = async (enctype, name, value) => {
    const frame = await element("iframe", {name: "answer to " + enctype});
    const sent = new Promise((resolve) => { frame.onload = resolve; });
    const made = Object.assign(document.createElement("form"), {method: "post", action: jobs, enctype,
        target: frame.name});
    made.append(Object.assign(document.createElement("input"), {name, value}));
    document.body.append(made);
    made.submit();
    await sent;
    return looked(frame);
  };

  await attempt("fetch, text/plain", () => fetched(jobs, post("text/plain", {mode: "no-cors"})));
  await attempt("fetch, no type", () => fetched(jobs, post("", {mode: "no-cors"})));
  await attempt("fetch, a form's type", () => fetched(jobs, post("application/x-www-form-urlencoded",
      {mode: "no-cors"})));
  await attempt("fetch, text/plain, to be read", () => fetched(jobs, post("text/plain")));
  await attempt("fetch, JSON", () => fetched(jobs, post("application/json")));
  await attempt("fetch, JSON, with credentials", () => fetched(jobs, post("application/json",
      {credentials: "include"})));
  await attempt("fetch, no body", () => fetched(trigger, {method: "POST", mode: "no-cors"}));
  await attempt("fetch, no body, to be read", () => fetched(trigger, {method: "POST"}));
  await attempt("delete", () => fetched(jobs + "/nightly", {method: "DELETE"}));
  await attempt("read", () => fetched(jobs));
  await attempt("read, without asking", () => fetched(jobs, {mode: "no-cors"}));
  await attempt("read, not saying from where", () => fetched(jobs, {referrerPolicy: "no-referrer"}));
  await attempt("XMLHttpRequest", () => new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.onloadend = () => resolve(request.responseText || null);
    request.open("POST", jobs);
    request.setRequestHeader("Content-Type", "application/json");
    request.send(body);
  }));
  await attempt("beacon, text/plain", () => { navigator.sendBeacon(jobs, body); });
  await attempt("beacon, JSON", () => { navigator.sendBeacon(jobs, new Blob([body], {type: "application/json"})); });
  await attempt("form", () => form("application/x-www-form-urlencoded", "task", "simulate"));
  await attempt("form of several parts", () => form("multipart/form-data", "task", "simulate"));
  await attempt("form that looks like JSON", () => form("text/plain", '{"task": "simulate", "name": "', '"}'));
  await attempt("iframe", async () => looked(await element("iframe", {src: jobs})));
  await attempt("script", async () => (await element("script", {src: jobs}))?.text);
  await attempt("image", async () => (await element("img", {src: jobs}))?.naturalWidth);
  await attempt("EventSource", () => new Promise((resolve) => {
    const events = new EventSource(`${foliot}/v1/runs/${run}/logs?follow=1`);
    const end = (what) => { events.close(); resolve(what); };
    events.addEventListener("end", (event) => end(event.data));
    events.onerror = () => end(null);
  }));
  await attempt("WebSocket", () => new Promise((resolve) => {
    const socket = new WebSocket(jobs.replace("http", "ws"));
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve(null);
  }));
  return seen;
}
"""


@pytest.fixture
async def foliot(database_url: str, store: Store) -> AsyncIterator[str]:
    await store.workers.announce_tasks({"simulate": "default"})
    environment = {"FOLIOT_DATABASE_URL": database_url}
    async with FoliotProcess("up", "--port", "0", "--workers", "0", environment=environment) as up:
        address = (await up.event("ProcessStarted", part="up"))["address"]
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            for job in ({"name": "nightly", "cron": "0 0 1 1 *"}, {"name": SECRET, "cron": "0 0 1 1 *"}):
                assert (await client.post("/v1/jobs", json={"task": "simulate", **job})).status_code == 201
        yield address


@asynccontextmanager
async def relay_to(address: str) -> AsyncIterator[int]:
    """Imitates a DNS name that is rebound to 127.0.0.1: the port serves a page first, and then Foliot. Returns the
    port."""
    port = httpx.URL(address).port
    handling: set[asyncio.Task[Any]] = set()
    ends: list[asyncio.StreamWriter] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65_536):
            writer.write(chunk)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handling.add(task)
        task.add_done_callback(handling.discard)
        ends.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET /page "):
            writer.write(PAGE)
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", port)
        ends.append(back)
        back.write(head)
        await asyncio.gather(pump(reader, back), pump(there, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in handling:
            task.cancel()
        await asyncio.gather(*handling, return_exceptions=True)
        # An open socket would be reported when it is collected, during any later test.
        for end in ends:
            end.transport.abort()
        await asyncio.sleep(0)


async def test_only_our_own_page_can_use_the_api(foliot: str, store: Store, sql: Any, tmp_path: Path) -> None:
    (job_id,) = await sql.fetchrow("select id from foliot.jobs where name = 'nightly'")
    untouched = await sql.fetch("select * from foliot.jobs order by id")
    async with (
        answering() as pages,
        relay_to(foliot) as rebound,
        chromium(tmp_path / "browser", hosts={EVIL: "127.0.0.1", "localhost": "127.0.0.1"}) as browser,
    ):
        pages.answers["/page"] = PAGE
        foreign = [f"http://127.0.0.1:{pages.port}", f"http://localhost:{pages.port}", f"http://{EVIL}:{pages.port}"]
        for origin in foreign:
            page = await browser.open(f"{origin}/page")
            assert await page.run("() => location.origin") == origin
            seen = await page.run(ATTEMPTS, foliot=foliot, run=str(job_id))
            await page.quiet()
            assert seen == dict.fromkeys(seen), f"a page of {origin} sees what it should not"
            assert_refused(page.answers, foliot)

        page = await browser.open(f"http://{EVIL}:{rebound}/page")
        seen = await page.run(ATTEMPTS, foliot=f"http://{EVIL}:{rebound}", run=str(job_id))
        await page.quiet()
        assert seen["fetch, JSON"].startswith("403 ")
        assert "foreign_host" in seen["fetch, JSON"]
        assert not [what for what in seen.values() if SECRET in str(what)]
        # When a frame is refused, the browser shows a page of its own with local images.
        asked = [answer for answer in page.answers if answer[1].startswith("http") and not answer[1].endswith("/page")]
        assert {status for _, _, status in asked} == {403}, asked

        assert await sql.fetchval("select count(*) from foliot.runs") == 0
        assert await sql.fetch("select * from foliot.jobs order by id") == untouched

        # The same attempts from our own page, to show that they can succeed.
        page = await browser.open(f"{foliot}/healthz")
        seen = await page.run(ATTEMPTS, foliot=foliot, run=str(await a_run(foliot)))
        await page.quiet()
        created = [name for name, what in seen.items() if str(what).startswith("201 ")]
        assert created == [
            "fetch, JSON",
            "fetch, JSON, with credentials",
            "fetch, no body",
            "fetch, no body, to be read",
        ]
        read = {name for name, what in seen.items() if SECRET in str(what)}
        # An iframe never works: no page may embed another one, not even our own.
        assert read == {"read", "read, without asking", "read, not saying from where"}
        assert '"status":"cancelled"' in seen["EventSource"]
        # By fetch, with and without credentials, by XMLHttpRequest and by a beacon.
        await until(lambda: sql.fetchval("select count(*) = 4 from foliot.runs where name = 'from a page'"))
        assert await sql.fetchval("select count(*) from foliot.jobs") == 1


def assert_refused(answers: list[tuple[str, str, int]], foliot: str) -> None:
    """Changes reached the server and were refused there, not just by the browser."""
    of_foliot = [(method, status) for method, url, status in answers if url.startswith(foliot)]
    assert {status for method, status in of_foliot if method != "GET"} == {403}, of_foliot
    # Only some answers are visible. The browser hides others, even refusals, because they allow only our own pages.
    assert "POST" in {method for method, _ in of_foliot}


async def a_run(foliot: str) -> str:
    """A run that has ended, so its log has ended as well."""
    async with httpx.AsyncClient(base_url=foliot, timeout=60) as client:
        run_id = (await client.post("/v1/jobs", json={"task": "simulate"})).json()["id"]
        assert (await client.post(f"/v1/runs/{run_id}/cancel")).status_code == 200
    return str(run_id)


async def test_a_foreign_name_that_resolves_to_this_machine_is_refused(foliot: str, sql: Any) -> None:
    async with httpx.AsyncClient(base_url=foliot, timeout=60) as client:
        for host in (EVIL, "127.0.0.1.nip.example", "[::ffff:127.0.0.1]", "0.0.0.0"):
            headers = {"Host": f"{host}:{httpx.URL(foliot).port}"}
            for asked in (
                client.get("/v1/jobs", headers=headers),
                client.post("/v1/jobs", headers=headers, json={"task": "simulate"}),
            ):
                refused = await asked
                assert (refused.status_code, refused.json()["code"]) == (403, "foreign_host")
    assert await sql.fetchval("select count(*) from foliot.runs") == 0
