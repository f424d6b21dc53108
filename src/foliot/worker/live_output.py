"""Output of a running attempt that is not stored yet. Bounded: output beyond the limit is visible only at the end."""

from __future__ import annotations

LIVE_MAX_BYTES = 1_048_576


class LiveOutput:
    """Not thread-safe: `write` and `take` need the lock of `running_attempt.py`."""

    __slots__ = ("_position", "_room", "_unsent")

    def __init__(self, room: int = LIVE_MAX_BYTES) -> None:
        self._unsent = bytearray()
        self._room = room
        self._position = 0

    @property
    def is_waiting(self) -> bool:
        return bool(self._unsent)

    def write(self, chunk: bytes) -> None:
        if self._room > 0 and chunk:
            chunk = chunk[: self._room]
            self._room -= len(chunk)
            self._unsent += chunk

    def take(self, part_max_bytes: int) -> list[tuple[int, bytes]]:
        """The new parts, each with its position in the output."""
        found, self._unsent = self._unsent, bytearray()
        start, self._position = self._position, self._position + len(found)
        return [(start + at, bytes(found[at : at + part_max_bytes])) for at in range(0, len(found), part_max_bytes)]
