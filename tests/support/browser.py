"""A headless Chromium, controlled over a pair of pipes."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import psutil

from tests.support.debian import require
from tests.support.waiting import PATIENCE_SECONDS, until

OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    # Chromium's sandbox does not work for root, and the only pages are our own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-breakpad",
    "--disable-extensions",
    "--no-first-run",
    "--no-default-browser-check",
)
# Chromium reads commands from descriptor 3 and writes answers and events to 4.
START = 'exec "$0" "$@" 3<&{reads} 4>&{writes}'


class Browser:
    def __init__(self, commands: asyncio.StreamWriter, answers: asyncio.StreamReader) -> None:
        self._commands = commands
        self._answers = answers
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}

    async def open(self, url: str) -> Page:
        """Opens a new page and loads it."""
        target = await self.tell("Target.createTarget", url="about:blank")
        attached = await self.tell("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"])
        await page.load(url)
        return page

    async def tell(self, method: str, session: str | None = None, /, **parameters: object) -> dict[str, Any]:
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        self._commands.write(json.dumps(message).encode() + b"\0")
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await answer

    async def listen(self) -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                message = json.loads((await self._answers.readuntil(b"\0"))[:-1])
                if "id" not in message:
                    if page := self._pages.get(message.get("sessionId", "")):
                        page.happened(message["method"], message["params"])
                elif "error" in message:
                    self._waiting.pop(message["id"]).set_exception(AssertionError(message["error"]["message"]))
                else:
                    self._waiting.pop(message["id"]).set_result(message["result"])


class Page:
    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self._is_loaded = asyncio.Event()
        self._open_requests: set[str] = set()
        self._sent: dict[str, tuple[str, str]] = {}
        self.answers: list[tuple[str, str, int]] = []
        """Method, URL and status of each answer that reached the browser, even if the page may not read it."""

    async def load(self, url: str) -> None:
        for domain in ("Page", "Network", "Runtime"):
            await self._browser.tell(f"{domain}.enable", self._session)
        await self._browser.tell("Page.navigate", self._session, url=url)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._is_loaded.wait()

    async def run(self, function: str, **arguments: object) -> Any:
        """Calls an async function in the page with an object, and returns its result."""
        done = await self._browser.tell(
            "Runtime.evaluate",
            self._session,
            expression=f"({function})({json.dumps(arguments)})",
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    async def quiet(self) -> None:
        """Returns when every request has ended."""

        async def look() -> bool:
            return not self._open_requests

        await until(look)

    def happened(self, method: str, event: Mapping[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._is_loaded.set()
            case "Network.requestWillBeSent":
                self._open_requests.add(event["requestId"])
                self._sent[event["requestId"]] = (event["request"]["method"], event["request"]["url"])
            case "Network.responseReceived" if event["requestId"] in self._sent:
                self.answers.append((*self._sent[event["requestId"]], event["response"]["status"]))
                # The answer to a beacon never ends.
                self._open_requests.discard(event["requestId"])
            case "Network.loadingFinished" | "Network.loadingFailed":
                self._open_requests.discard(event["requestId"])


@asynccontextmanager
async def chromium(directory: Path, *, hosts: Mapping[str, str]) -> AsyncIterator[Browser]:
    """Starts a browser that resolves each of these names to an address."""
    program = require("chromium", "chromium")
    rules = ", ".join(f"MAP {name} {address}" for name, address in hosts.items())
    (reads, commands), (answers, writes) = os.pipe(), os.pipe()
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        START.format(reads=reads, writes=writes),
        program,
        *OPTIONS,
        f"--user-data-dir={directory}",
        f"--host-resolver-rules={rules}",
        "about:blank",
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        pass_fds=(reads, writes),
    )
    for descriptor in (reads, writes):
        os.close(descriptor)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 24)
    read_transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answers, "rb", 0)
    )
    write_transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(commands, "wb", 0)
    )
    browser = Browser(asyncio.StreamWriter(write_transport, protocol, None, loop), reader)
    listening = asyncio.create_task(browser.listen(), name="listen to the browser")
    try:
        yield browser
    finally:
        tree = [process_of := psutil.Process(process.pid), *process_of.children(recursive=True)]
        for one in tree:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        await process.wait()
        await listening
        read_transport.close()
        write_transport.close()
