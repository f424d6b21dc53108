"""Limits connections of malicious, slow or idle clients, and closes some when there are too many.

The HTTP server below the application accepts whatever a client sends, for as long as the client likes. Here each
request has a size limit for its head, and deadlines for its head and its body. Each connection has a deadline for being
idle, and one for leaving a response unread. A response itself, such as a stream of events, may take as long as it
likes.

Deadlines are checked once a second for all connections together, so a request pays only for a few assignments.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum
from typing import Any

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from foliot.api.requests.target import use_host_of_target
from foliot.clock import Clock

HEADERS_MAX = 100
TARGET_MAX_BYTES = 8_192
# Requests that a client may pipeline before it has the response to the first.
PIPELINE_MAX = 64
# After this many pieces, a body needs this many bytes in each on average: a piece costs as much as a hundred bytes.
PIECES_FREE, PIECE_BYTES = 10_000, 64
# The overhead of a chunk: its length and two line ends.
CHUNK_FRAME_BYTES = 24
# The rest of a refused body is read and discarded up to this size. A client that is still sending would not see the
# response otherwise.
LEFTOVER_MAX_BYTES = 67_108_864
# A body gets another second for each of these many bytes that have arrived.
BODY_BYTES_PER_SECOND = 65_536
# When all places are taken, a client that has not read its response for this long may lose its connection.
UNREAD_SECONDS = 5.0
CLOSING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    connections: int
    head_bytes: int
    head_seconds: float
    body_seconds: float
    idle_seconds: float
    unread_seconds: float


def _refusal(status: int, title: str, code: str, detail: str) -> bytes:
    """A complete response for a request that never reaches the application."""
    document = {"type": f"urn:foliot:problem:{code}", "title": title, "status": status, "detail": detail, "code": code}
    body = msgspec.json.encode(document)
    lines = [
        f"HTTP/1.1 {status} {title}",
        "content-type: application/problem+json",
        f"content-length: {len(body)}",
        "connection: close",
    ]
    if status == 503:
        lines.append("retry-after: 1")
    return "\r\n".join([*lines, "\r\n"]).encode() + body


NOT_HTTP = _refusal(400, "Bad Request", "malformed", "this is not a request in HTTP/1.1")
ENCODED = _refusal(
    400,
    "Bad Request",
    "malformed",
    "send the body as it is: of transfer encodings, only chunked of HTTP/1.1 is understood",
)
IN_PIECES = _refusal(400, "Bad Request", "malformed", "the body comes in too many small pieces; send larger chunks")
TOO_SLOW = _refusal(408, "Request Timeout", "timeout", "the request took too long to arrive")
TARGET_TOO_LONG = _refusal(
    414, "URI Too Long", "too_large", f"the target of the request is longer than {TARGET_MAX_BYTES} bytes"
)
HEAD_TOO_LARGE = _refusal(
    431, "Request Header Fields Too Large", "too_large", f"the headers are too large, or more than {HEADERS_MAX}"
)
NO_PLACE = _refusal(
    503, "Service Unavailable", "too_many_connections", "there are as many connections as there may be; try again"
)


class Phase(Enum):
    IDLE = 0
    """No request has begun."""
    HEAD = 1
    BODY = 2
    RECEIVED = 3
    """The whole request has arrived and waits for its response."""


class Refused(Exception):
    """Stops the parser at a request that is refused."""


class Connections:
    """The connections of one process, and which of them wait for their client."""

    def __init__(self, limits: Limits, *, clock: Clock) -> None:
        self.limits = limits
        self.now = self._looked_at = clock.monotonic()
        """Advances by at most two seconds at a time, so that clients do not time out because this process was
        stopped."""
        self._clock = clock
        self.number = 0
        """The number of connections, including those that have just been accepted."""
        self.waiting: OrderedDict[Connection, None] = OrderedDict()
        """Connections that wait for their client to send something, longest waiting first."""
        self.unread: dict[Connection, None] = {}
        """Connections whose client reads more slowly than the server sends."""

    async def watch(self) -> None:
        while True:
            await self._clock.sleep(1.0)
            self._look()

    def _look(self) -> None:
        moment = self._clock.monotonic()
        passed, self._looked_at = min(moment - self._looked_at, 2.0), moment
        self.now += passed
        for connection in list(self.waiting):
            connection.look(passed)
        for connection in list(self.unread):
            connection.look_at_unread()

    @property
    def longest_wait(self) -> float:
        """The time since which the longest waiting connection waits for its client."""
        return next((connection.since for connection in self.waiting), math.inf)

    def make_room(self) -> bool:
        """Closes the connection that will be missed least. False if all of them are answering requests."""
        for connection in self.waiting:
            connection.end()
            return True
        for connection in self.unread:
            if self.now - connection.unread_since > UNREAD_SECONDS:
                connection.end()
                return True
        return False


class Connection(HttpToolsProtocol):
    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._all = connections
        self._limits = connections.limits
        self._phase = Phase.IDLE
        self.since = connections.now
        self._is_new = True
        self.is_made = False
        """Whether the HTTP parser has taken over, after a TLS handshake if there is one."""
        self._refusal = NOT_HTTP
        # Counters of the request that is being received: bytes on the wire except those of the read in which it began,
        # bytes of the body, and pieces.
        self._is_begun = self._wants_upgrade = False
        self._read_bytes = self._first_bytes = self._wire_bytes = self._body_bytes = self._pieces = 0
        self._unread_bytes = 0
        self.unread_since = 0.0
        self._answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.is_made = True
        self._wait(Phase.IDLE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.number -= 1
        self._all.waiting.pop(self, None)
        self._all.unread.pop(self, None)
        for cycle in (self._answering, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._is_begun = False
        self._read_bytes = len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as asked:
            if self._wants_upgrade:
                self._wants_upgrade = False
                self._read_without_upgrade(data[asked.args[0] :])
            return
        except httptools.HttpParserError:
            self._refuse(self._refusal)
            return
        if self._phase is Phase.RECEIVED:
            return
        if self._is_begun:
            self._wait(self._phase)
            return
        self._wire_bytes += len(data)
        if self._wire_bytes - self._body_bytes - CHUNK_FRAME_BYTES * self._pieces > self._limits.head_bytes:
            self._refuse(HEAD_TOO_LARGE)

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Restarts the request without its Upgrade header. Foliot speaks no other protocol, and the parser would take
        the body for the first bytes of that protocol."""
        lines = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"\r\n".join([*lines, b"", rest]))

    # Called by the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_begun, self._is_new = True, False
        self._first_bytes = self._read_bytes
        self._wire_bytes = self._body_bytes = self._pieces = 0
        # Most requests arrive whole in the read in which they begin. Only the others have to be watched.
        self._phase, self.since = Phase.HEAD, self._all.now

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > TARGET_MAX_BYTES:
            self._refusal = TARGET_TOO_LONG
            raise Refused

    def on_headers_complete(self) -> None:
        # The head is part of these bytes, so that it has to be measured only of the fewest requests.
        may_be_large = self._first_bytes + self._wire_bytes + self._read_bytes > self._limits.head_bytes
        if len(self.headers) > HEADERS_MAX or (may_be_large and self._is_head_large()):
            self._refusal = HEAD_TOO_LARGE
            raise Refused
        if len(self.pipeline) >= PIPELINE_MAX:
            raise Refused
        if not self._is_encoding_known():
            self._refusal = ENCODED
            raise Refused
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._wants_upgrade = True
            return
        self._phase, self.since = Phase.BODY, self._all.now
        if not self.url.startswith(b"/"):
            use_host_of_target(self.url, self.headers)
        super().on_headers_complete()
        # The parser reports trailers as headers. They are unchecked, and the request may already be running.
        self.headers = []

    def _is_encoding_known(self) -> bool:
        """The parser decodes any transfer encoding that ends with `chunked`, and leaves the other encodings to the
        application. So only plain `chunked` is accepted."""
        for name, value in self.headers:
            if name == b"transfer-encoding":
                return value.lower() == b"chunked" and self.parser.get_http_version() == "1.1"
        return True

    def _is_head_large(self) -> bool:
        return sum(len(name) + len(value) + 4 for name, value in self.headers) > self._limits.head_bytes

    def on_body(self, body: bytes) -> None:
        self._pieces += 1
        self._body_bytes += len(body)
        if self._pieces > PIECES_FREE and self._pieces * PIECE_BYTES > self._body_bytes:
            self._refusal = IN_PIECES
            raise Refused
        if self.cycle.response_complete and self._body_bytes > LEFTOVER_MAX_BYTES:
            # A response has been sent already.
            self._refusal = b""
            raise Refused
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._wants_upgrade:
            return
        self._phase = Phase.RECEIVED
        self._all.waiting.pop(self, None)
        super().on_message_complete()
        if self.cycle.response_complete:
            # It was answered before all of it had arrived.
            self._wait(Phase.IDLE)

    def on_response_complete(self) -> None:
        """Replaces the server's own method, which sets a timer for the idle connection after each request."""
        self.server_state.total_requests += 1
        if self._phase is Phase.RECEIVED and not self.pipeline:
            self._wait(Phase.IDLE)
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # The server below knows only the latest request, and would answer pipelined requests of a client that has
        # disconnected.
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    # Called by the transport

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_bytes, self.unread_since = self.transport.get_write_buffer_size(), self._all.now
        self._all.unread[self] = None

    def resume_writing(self) -> None:
        super().resume_writing()
        self._all.unread.pop(self, None)

    # Called once a second

    def look(self, passed: float) -> None:
        """Checks a connection that waits for its client."""
        if self._phase is Phase.BODY and self.flow.read_paused:
            # The server has paused reading, so the client is not late.
            self.since += passed
        elif self._all.now - self.since <= self._patience():
            return
        elif self.transport.is_closing():
            self.transport.abort()
        elif self._phase is Phase.IDLE:
            self._close()
        else:
            self._refuse(TOO_SLOW)

    def _patience(self) -> float:
        if self._phase is Phase.BODY:
            return self._limits.body_seconds + self._body_bytes / BODY_BYTES_PER_SECOND
        # A new client should send a request at once. A client with a response may wait before its next request.
        return self._limits.head_seconds if self._is_new or self._phase is Phase.HEAD else self._limits.idle_seconds

    def look_at_unread(self) -> None:
        left = self.transport.get_write_buffer_size()
        if left != self._unread_bytes:
            self._unread_bytes, self.unread_since = left, self._all.now
        elif self._all.now - self.unread_since > self._limits.unread_seconds:
            self.end()

    def end(self) -> None:
        """Closes at once, even if some of a response has not been sent."""
        self._all.waiting.pop(self, None)
        self._all.unread.pop(self, None)
        self.transport.abort()

    def _wait(self, phase: Phase) -> None:
        self._phase, self.since = phase, self._all.now
        self._all.waiting[self] = None
        self._all.waiting.move_to_end(self)

    def _refuse(self, answer: bytes) -> None:
        """Sends the refusal, unless the client would take it for the response to another request, and closes the
        connection."""
        cycle = self.cycle
        is_answered = cycle is None or cycle.response_complete
        is_free = is_answered or (self._phase is Phase.BODY and not cycle.response_started and not self.pipeline)
        if not is_answered:
            cycle.disconnected = True
            cycle.message_event.set()
        if not is_free or self.transport.is_closing():
            self.end()
            return
        self.transport.write(answer)
        self._close()

    def _close(self) -> None:
        """Closes once everything is sent; a client that does not read has a few seconds."""
        self.transport.close()
        self._wait(Phase.IDLE)
        self.since = self._all.now - self._patience() + CLOSING_SECONDS
