"""A search engine inside the test: it follows the documented protocol of `_bulk`, of templates and of policies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatch
from typing import Any

Item = dict[str, Any]
CREATED: Item = {"status": 201}
BUSY: Item = {
    "status": 429,
    "error": {"type": "es_rejected_execution_exception", "reason": "rejected execution of a bulk shard operation"},
}
WRONG: Item = {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "failed to parse field [due_at]"}}
FULL: Item = {
    "status": 400,
    "error": {"type": "validation_exception", "reason": "this cluster currently has [1000]/[1000] shards open"},
}


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class FakeEngine:
    def __init__(self, *, is_opensearch: bool) -> None:
        self.url = ""
        self.is_opensearch = is_opensearch
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}
        self.written: list[str] = []
        """The id of each document that was taken, in order, repetitions included."""
        self.templates: dict[str, Any] = {}
        self.policies: dict[str, Any] = {}
        self.headers: dict[str, str] = {}
        self.bulks = 0
        self.has_policies = True
        self.body_max = 1_000_000_000
        self.verdict: Callable[[str], Item] = lambda _: CREATED
        """Of a document, by its id."""
        self.lie: bytes | None = None
        """Sent instead of any answer."""
        self.is_hung = False
        self.loses_answers = False
        """Takes documents, and closes the connection instead of an answer."""
        self.reached = asyncio.Event()

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [document for (index, _), document in self.documents.items() if f"-{kind}-" in index]

    def serve(self, method: str, path: str, body: bytes) -> bytes | None:
        path, _, parameters = path.partition("?")
        if path == "/" and method == "GET":
            version = {"number": "2.19.1", "distribution": "opensearch"} if self.is_opensearch else {"number": "8.17.0"}
            return self._json({"version": version})
        if path.startswith("/_index_template/") and method == "PUT":
            self.templates[path.removeprefix("/_index_template/")] = json.loads(body)
            return self._json({"acknowledged": True})
        policies = "/_plugins/_ism/policies/" if self.is_opensearch else "/_ilm/policy/"
        if path.startswith(policies) and self.has_policies:
            return self._policy(method, path.removeprefix(policies), parameters, body)
        if path == "/_bulk" and method == "POST":
            return self._bulk(body)
        return answer("404 Not Found", b"{}")

    def _policy(self, method: str, name: str, parameters: str, body: bytes) -> bytes:
        if method == "GET":
            if name not in self.policies:
                return answer("404 Not Found", b"{}")
            return self._json({"_id": name, "_seq_no": 7, "_primary_term": 1, "policy": {}})
        if self.is_opensearch and name in self.policies and parameters != "if_seq_no=7&if_primary_term=1":
            return answer("409 Conflict", b"{}")
        self.policies[name] = json.loads(body)
        return self._json({"acknowledged": True})

    def _bulk(self, body: bytes) -> bytes | None:
        self.bulks += 1
        if len(body) > self.body_max:
            return answer("413 Request Entity Too Large")
        assert body.endswith(b"\n")
        lines = body.split(b"\n")[:-1]
        assert len(lines) % 2 == 0
        items = []
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            ((verb, target),) = json.loads(action).items()
            assert verb == "index"
            index, name = target["_index"], target["_id"]
            patterns = [one for template in self.templates.values() for one in template["index_patterns"]]
            assert any(fnmatch(index, pattern) for pattern in patterns), f"{index} has no template"
            verdict = self.verdict(name)
            if verdict["status"] < 300:
                self.documents[index, name] = json.loads(document)
                self.written.append(name)
            items.append({"index": verdict})
        if self.loses_answers:
            return None
        return self._json({"errors": any(item["index"]["status"] >= 300 for item in items), "items": items})

    def _json(self, content: Any) -> bytes:
        return answer("200 OK", json.dumps(content).encode(), "Content-Type: application/json")


@asynccontextmanager
async def fake_engine(*, is_opensearch: bool = True) -> AsyncIterator[FakeEngine]:
    engine, open_ones = FakeEngine(is_opensearch=is_opensearch), set[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *rest = [line for line in head.split("\r\n") if line]
            engine.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
            body = await reader.readexactly(int(engine.headers.get("content-length", "0")))
            engine.reached.set()
            if engine.is_hung:
                return
            method, path, _ = first.split(" ")
            if found := engine.lie if engine.lie is not None else engine.serve(method, path, body):
                writer.write(found)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    engine.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield engine
    finally:
        server.close()
        for writer in open_ones:
            writer.close()
        await server.wait_closed()
