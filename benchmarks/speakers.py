"""Workers that are nothing but their requests: `python -m benchmarks.speakers URL NUMBER`, with the token in
FOLIOT_TOKEN.

Each has a connection of its own and follows docs/worker-protocol.md: it registers, waits for work, claims, reports
success at once, and beats. Thousands fit into one process. It prints `ready` when all are registered, and at the end of
its input one JSON object with the number of requests of each kind.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import uvloop

QUEUE, TASK = "bench", "noop"
WAIT_SECONDS = 5.0
"""Between two heartbeats, too: a connection does one thing at a time."""
RETRY_SECONDS = 1.0
BEGINNING = 100
"""How many register at once."""
LENGTH = b"content-length:"


class Speaker:
    def __init__(self, url: str, token: str, counts: Counter[str]) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._token = parts.hostname or "", parts.port or 80, token
        self._counts = counts
        self._id = str(uuid4())
        self._work = {"slots": {QUEUE: 1}, "tasks": [TASK]}
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None

    async def register(self) -> None:
        await self._insist("register", name=self._id, queues={QUEUE: 1}, tasks={TASK: {}})

    async def speak(self) -> None:
        while True:
            found = await self._ask("wait", **self._work, seconds=WAIT_SECONDS)
            while found.get("claim") or found.get("runs"):
                found = await self._ask("claim", **self._work, is_idle=True)
                if runs := found.get("runs"):
                    ended = [{"run_id": run["run_id"], "token": run["token"], "ending": "succeeded"} for run in runs]
                    await self._insist("outcomes", ended=ended)
            await self._ask("beat", held=[], is_idle=True)

    async def _insist(self, path: str, **fields: Any) -> None:
        """`_ask` pauses after a failure."""
        while not await self._ask(path, **fields):
            pass

    async def _ask(self, path: str, **fields: Any) -> dict[str, Any]:
        """Empty if there was no answer, or an error."""
        body = json.dumps({"worker_id": self._id, **fields}).encode()
        head = (
            f"POST /v1/worker/{path} HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            if self._writer is None:
                self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
            self._writer.write(head.encode() + body)
            answer = await self._reader.readuntil(b"\r\n\r\n")
            lines = answer.lower().split(b"\r\n")
            length = next((int(line[len(LENGTH) :]) for line in lines if line.startswith(LENGTH)), 0)
            content = await self._reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError):
            self._counts["broken"] += 1
            self._writer = None
            await asyncio.sleep(RETRY_SECONDS)
            return {}
        if not answer.startswith(b"HTTP/1.1 2"):
            self._counts[f"{path}: {answer[9:12].decode()}"] += 1
            await asyncio.sleep(RETRY_SECONDS)
            return {}
        self._counts[path] += 1
        found: dict[str, Any] = json.loads(content) or {"is_empty": True}
        return found


async def main(url: str, number: int) -> None:
    counts: Counter[str] = Counter()
    room = asyncio.Semaphore(BEGINNING)
    speakers = [Speaker(url, os.environ["FOLIOT_TOKEN"], counts) for _ in range(number)]

    async def register(speaker: Speaker) -> None:
        async with room:
            await speaker.register()

    await asyncio.gather(*map(register, speakers))
    speaking = [asyncio.ensure_future(speaker.speak()) for speaker in speakers]
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in speaking:
        task.cancel()
    print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
