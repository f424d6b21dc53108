"""Sends encoded spans to an OpenTelemetry collector: OTLP over HTTP or gRPC.

Each request has a time limit, and an answer is read up to a bound, so a collector that is dead, hung or lying costs a
few seconds of one service and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import httpx
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from foliot.config import Config
from foliot.config.otlp import headers_of

if TYPE_CHECKING:
    import grpc.aio

SEND_SECONDS = 5.0
ANSWER_MAX_BYTES = 65_536
LOOPBACK = ("localhost", "127.0.0.1", "::1")
HTTP_PATH = "/v1/traces"
GRPC_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class NotSent(Exception):
    """The collector did not take the spans. `is_final`: nor will it if they are sent again."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


class Collector(Protocol):
    async def send(self, request: bytes) -> int:
        """Takes an encoded export. Returns the number of spans that the collector rejected. Raises `NotSent`."""

    async def close(self) -> None: ...


def collector_of(config: Config) -> Collector:
    headers = headers_of(config.otel_headers)
    if config.otel_protocol == "grpc":
        return GrpcCollector(config.otel_endpoint, headers)
    return HttpCollector(config.otel_endpoint, headers)


class HttpCollector:
    def __init__(self, endpoint: str, headers: dict[str, str]) -> None:
        base = endpoint.rstrip("/")
        self._url = base if base.endswith(HTTP_PATH) else base + HTTP_PATH
        self._headers = headers | {"content-type": "application/x-protobuf", "user-agent": "foliot"}
        self._client: httpx.AsyncClient | None = None

    async def send(self, request: bytes) -> int:
        if self._client is None:
            # A proxy can't reach this machine's loopback interface.
            trust_env = urlsplit(self._url).hostname not in LOOPBACK
            self._client = httpx.AsyncClient(timeout=httpx.Timeout(SEND_SECONDS), trust_env=trust_env)
        try:
            async with self._client.stream("POST", self._url, content=request, headers=self._headers) as answer:
                body = bytearray()
                async for chunk in answer.aiter_raw():
                    body += chunk
                    if len(body) > ANSWER_MAX_BYTES:
                        raise NotSent("the answer is too long to be a collector's")
        except httpx.HTTPError as error:
            raise NotSent(f"{type(error).__name__}: {error}") from None
        if answer.status_code != httpx.codes.OK:
            # A later attempt may succeed, except for spans that the collector can't read.
            is_final = answer.status_code in (400, 413)
            raise NotSent(f"{answer.status_code} {answer.reason_phrase}", is_final=is_final)
        try:
            response = ExportTraceServiceResponse.FromString(bytes(body))
        except DecodeError:
            raise NotSent("the answer is not OTLP") from None
        return int(response.partial_success.rejected_spans)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None


class GrpcCollector:
    def __init__(self, endpoint: str, headers: dict[str, str]) -> None:
        parts = urlsplit(endpoint)
        self._is_secure = parts.scheme == "https"
        self._target = f"{parts.hostname}:{parts.port or 4317}"
        self._headers = tuple(headers.items())
        self._channel: grpc.aio.Channel | None = None

    async def send(self, request: bytes) -> int:
        import grpc

        channel = self._channel = self._channel or self._open()
        export = channel.unary_unary(
            GRPC_METHOD,
            response_deserializer=ExportTraceServiceResponse.FromString,
        )
        try:
            response: ExportTraceServiceResponse = await export(request, timeout=SEND_SECONDS, metadata=self._headers)
        except grpc.aio.AioRpcError as error:
            is_final = error.code() is grpc.StatusCode.INVALID_ARGUMENT
            raise NotSent(f"{error.code().name}: {error.details()}", is_final=is_final) from None
        return int(response.partial_success.rejected_spans)

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    def _open(self) -> grpc.aio.Channel:
        import grpc.aio

        # It reconnects soon: the default pauses grow to two minutes.
        options = [("grpc.max_receive_message_length", ANSWER_MAX_BYTES), ("grpc.max_reconnect_backoff_ms", 5000)]
        if self._is_secure:
            return grpc.aio.secure_channel(self._target, grpc.ssl_channel_credentials(), options=options)
        return grpc.aio.insecure_channel(self._target, options=options)
