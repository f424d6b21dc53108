"""Output capped while it is written: the head, the tail, and the number of bytes dropped between them."""

from __future__ import annotations

from collections import deque


class CappedOutput:
    """Keeps at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit // 2
        self._tail_limit = limit - limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.dropped = 0

    def write(self, chunk: bytes) -> None:
        if self._head_room:
            part, chunk = chunk[: self._head_room], chunk[self._head_room :]
            self._head += part
            self._head_room -= len(part)
        if not chunk:
            return
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail_size > self._tail_limit:
            self._drop_from_tail(self._tail_size - self._tail_limit)

    def _drop_from_tail(self, excess: int) -> None:
        oldest = self._tail.popleft()
        if len(oldest) > excess:
            self._tail.appendleft(oldest[excess:])
        gone = min(len(oldest), excess)
        self._tail_size -= gone
        self.dropped += gone

    def value(self) -> bytes:
        mark = b"\n[... %d bytes dropped ...]\n" % self.dropped if self.dropped else b""
        return bytes(self._head) + mark + b"".join(self._tail)
