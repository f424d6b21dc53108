"""An OpenTelemetry collector inside the test: it takes OTLP over HTTP and gRPC, and decodes the protobufs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.waiting import until

ANSWER: bytes = ExportTraceServiceResponse().SerializeToString()
METHOD = "opentelemetry.proto.collector.trace.v1.TraceService"


class Collector:
    """The spans that have arrived, and the answer of the collector."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: dict[tuple[str, str], Span] = {}
        """By trace and span: a span that is sent twice counts once."""
        self.services: set[str] = set()
        self.headers: dict[str, str] = {}
        self.requests = 0
        self.hooks: list[str] = []
        """The `traceparent` of each request to another path."""
        self.answer: bytes | None = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        """None: it accepts and never answers."""

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        self.requests += 1
        self.headers = headers
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services |= {one.value.string_value for one in of_resource.resource.attributes}
            for of_scope in of_resource.scope_spans:
                self.spans |= {(span.trace_id.hex(), span.span_id.hex()): span for span in of_scope.spans}

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans.values() if span.name == name]

    def one(self, name: str) -> Span:
        (span,) = self.named(name)
        return span

    async def having(self, *names: str) -> None:
        async def look() -> bool:
            return all(self.named(name) for name in names)

        await until(look)


@asynccontextmanager
async def http_collector() -> AsyncIterator[Collector]:
    collector, open_ones = Collector(), set[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = [line.split(": ", 1) for line in head.split("\r\n")[1:] if line]
            headers = {name.lower(): value for name, value in lines}
            body = await reader.readexactly(int(headers["content-length"]))
            if collector.answer is not None:
                if head.split(" ")[1] == "/v1/traces":
                    collector.take(body, headers)
                else:
                    collector.hooks.append(headers["traceparent"])
                writer.write(collector.answer)
                await writer.drain()
                writer.close()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    collector.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield collector
    finally:
        server.close()
        for writer in open_ones:
            writer.close()
        await server.wait_closed()


@asynccontextmanager
async def grpc_collector() -> AsyncIterator[Collector]:
    collector = Collector()

    async def export(request: bytes, context: Any) -> bytes:
        collector.take(request, dict(context.invocation_metadata()))
        return ANSWER

    server = grpc.aio.server()
    handlers = {"Export": grpc.unary_unary_rpc_method_handler(export)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(METHOD, handlers),))
    collector.url = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield collector
    finally:
        await server.stop(None)


def attributes_of(thing: Any) -> dict[str, Any]:
    """Of a span, an event or a link."""
    read: Callable[[Any], Any] = lambda value: getattr(value, value.WhichOneof("value"))  # noqa: E731
    return {one.key: read(one.value) for one in thing.attributes}
