"""Connections of clients that mean no good, or that have fallen asleep: what one may cost, and which have to go when
there are too many.

The HTTP server below the application reads whatever a client sends, for as long as the client likes. Here each request
gets a limit on the size of its head, and deadlines for its head and its body; each connection one for being idle, and
one for leaving an answer unread. An answer itself may go on for as long as it likes, as a stream of events does.

Deadlines are looked at once a second, for all connections together, so that a request pays for none of this but a few
assignments.
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
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from foliot.api.requests.target import TargetProtocol
from foliot.clock import Clock

HEADERS_MAX = 100
TARGET_MAX_BYTES = 8_192
# Requests that a client may send ahead on a connection, before it has the answer to the first.
PIPELINE_MAX = 64
# A body that comes in so many pieces has to have so many bytes in each, on average: each piece costs as much as a
# hundred bytes do.
PIECES_FREE, PIECE_BYTES = 10_000, 64
# What an honest client adds to each chunk of a body: its length, and two ends of lines.
CHUNK_FRAME_BYTES = 24
# What is left of a body that was refused is read and thrown away: a client that is still sending would not see the
# answer otherwise.
LEFTOVER_MAX_BYTES = 67_108_864
# A body gets another second for each of so many bytes that have arrived.
BODY_BYTES_PER_SECOND = 65_536
# When every place is taken, a client that has not read its answer for so long loses its own.
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
    """A whole answer, for a request that never gets as far as the application."""
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
    """All of the request is here: what remains is to answer it."""


class Refused(Exception):
    """Ends the parsing of what is not wanted."""


class Connections:
    """Those of one process, and which of them wait for what."""

    def __init__(self, limits: Limits, *, clock: Clock) -> None:
        self.limits = limits
        self.now = self._looked_at = clock.monotonic()
        """Advances by two seconds at most at a time: that this process was held up is not its clients' fault."""
        self._clock = clock
        self.number = 0
        """How many there are, with those that have just been accepted."""
        self.waiting: OrderedDict[Connection, None] = OrderedDict()
        """Those that wait for their client to send something, the one that has waited longest first."""
        self.unread: dict[Connection, None] = {}
        """Those whose client does not read as fast as it is answered."""

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
        """Since when the one that has waited longest for its client does so."""
        return next((connection.since for connection in self.waiting), math.inf)

    def make_room(self) -> bool:
        """Ends the connection that is missed least. False: all are being answered."""
        for connection in self.waiting:
            connection.end()
            return True
        for connection in self.unread:
            if self.now - connection.unread_since > UNREAD_SECONDS:
                connection.end()
                return True
        return False


class Connection(TargetProtocol):
    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._all = connections
        self._limits = connections.limits
        self._phase = Phase.IDLE
        self.since = connections.now
        self._is_new = True
        self.is_made = False
        """Whether it has got as far as speaking HTTP."""
        self._refusal = NOT_HTTP
        # Of the request that is being received: bytes on the wire but for those of the read in which it began, bytes of
        # the body, pieces.
        self._is_begun = False
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
        except httptools.HttpParserUpgrade:
            return  # There is nothing to change to: the request is answered as it is.
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

    # What the parser calls

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_begun, self._is_new = True, False
        self._first_bytes = self._read_bytes
        self._wire_bytes = self._body_bytes = self._pieces = 0
        # Most requests are here as a whole with the read in which they begin: only those that are not have to be waited
        # for.
        self._phase, self.since = Phase.HEAD, self._all.now

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > TARGET_MAX_BYTES:
            self._refusal = TARGET_TOO_LONG
            raise Refused

    def on_headers_complete(self) -> None:
        if len(self.headers) > HEADERS_MAX or self._is_head_large():
            self._refusal = HEAD_TOO_LARGE
            raise Refused
        if len(self.pipeline) >= PIPELINE_MAX:
            raise Refused
        self._phase, self.since = Phase.BODY, self._all.now
        super().on_headers_complete()

    def _is_head_large(self) -> bool:
        most = self._limits.head_bytes
        # Nearly always little was read, of which it is a part.
        return (
            self._first_bytes + self._wire_bytes + self._read_bytes > most
            and sum(len(name) + len(value) + 4 for name, value in self.headers) > most
        )

    def on_body(self, body: bytes) -> None:
        self._pieces += 1
        self._body_bytes += len(body)
        if self._pieces > PIECES_FREE and self._pieces * PIECE_BYTES > self._body_bytes:
            self._refusal = IN_PIECES
            raise Refused
        if self.cycle.response_complete and self._body_bytes > LEFTOVER_MAX_BYTES:
            # It has been answered already.
            self._refusal = b""
            raise Refused
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._phase = Phase.RECEIVED
        self._all.waiting.pop(self, None)
        super().on_message_complete()
        if self.cycle.response_complete:
            # It was answered before it had come to its end.
            self._wait(Phase.IDLE)

    def on_response_complete(self) -> None:
        """In place of the server's own, which sets a timer for the idle connection after each request."""
        self.server_state.total_requests += 1
        if self._phase is Phase.RECEIVED and not self.pipeline:
            self._wait(Phase.IDLE)
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # The server below only knows the request that came last, and lets others be answered when nobody is there any
        # more.
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    # What the transport calls

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_bytes, self.unread_since = self.transport.get_write_buffer_size(), self._all.now
        self._all.unread[self] = None

    def resume_writing(self) -> None:
        super().resume_writing()
        self._all.unread.pop(self, None)

    # What the look at all connections calls

    def look(self, passed: float) -> None:
        """At one that waits for its client."""
        if self._phase is Phase.BODY and self.flow.read_paused:
            # We do not read: the client is not late.
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
        # Who has just connected has something to say; who has been answered may have more to say later.
        return self._limits.head_seconds if self._is_new or self._phase is Phase.HEAD else self._limits.idle_seconds

    def look_at_unread(self) -> None:
        left = self.transport.get_write_buffer_size()
        if left != self._unread_bytes:
            self._unread_bytes, self.unread_since = left, self._all.now
        elif self._all.now - self.unread_since > self._limits.unread_seconds:
            self.end()

    def end(self) -> None:
        """At once, whatever is still to be written."""
        self._all.waiting.pop(self, None)
        self._all.unread.pop(self, None)
        self.transport.abort()

    def _wait(self, phase: Phase) -> None:
        self._phase, self.since = phase, self._all.now
        self._all.waiting[self] = None
        self._all.waiting.move_to_end(self)

    def _refuse(self, answer: bytes) -> None:
        """Says why, unless that would be taken for the answer to another request; and ends the connection."""
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
        """As soon as everything is written; a client that does not read it has a moment."""
        self.transport.close()
        self._wait(Phase.IDLE)
        self.since = self._all.now - self._patience() + CLOSING_SECONDS
