"""Output capped while it is written: the head, the tail, and the number of bytes dropped between them."""

from __future__ import annotations

from collections import deque

PIECE = 4096
"""Smaller writes are joined, or the bookkeeping of single characters would take more memory than the output."""


class CappedOutput:
    """Keeps at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit // 2
        self._tail_limit = limit - limit // 2
        self._head = bytearray()
        self._tail: deque[bytearray] = deque()
        self._tail_size = 0
        self.dropped = 0

    def write(self, chunk: bytes) -> None:
        if self._head_room:
            part, chunk = chunk[: self._head_room], chunk[self._head_room :]
            self._head += part
            self._head_room -= len(part)
        if not chunk:
            return
        if len(chunk) >= self._tail_limit:
            self.dropped += self._tail_size + len(chunk) - self._tail_limit
            self._tail.clear()
            self._tail_size = 0
            chunk = chunk[len(chunk) - self._tail_limit :]
        if self._tail and len(self._tail[-1]) < PIECE:
            self._tail[-1] += chunk
        else:
            self._tail.append(bytearray(chunk))
        self._tail_size += len(chunk)
        while self._tail_size > self._tail_limit:
            self._drop_from_tail(self._tail_size - self._tail_limit)

    def _drop_from_tail(self, excess: int) -> None:
        oldest = self._tail[0]
        gone = min(len(oldest), excess)
        if len(oldest) > excess:
            del oldest[:excess]
        else:
            self._tail.popleft()
        self._tail_size -= gone
        self.dropped += gone

    def value(self) -> bytes:
        mark = b"\n[... %d bytes dropped ...]\n" % self.dropped if self.dropped else b""
        return bytes(self._head) + mark + b"".join(self._tail)
