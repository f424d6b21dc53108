"""What a launcher was asked to start."""

from __future__ import annotations

import os

LEADER_BYTES = 20


class Plan:
    def __init__(self, descriptors: list[int]) -> None:
        self.file, self.output, *self.received = descriptors
        self.argv: list[bytes] = []
        self.wrapper: list[bytes] = []
        self.mark: dict[bytes, bytes] = {}
        self.environment: dict[bytes, bytes] = {}
        self.limits: dict[str, int] = {}
        self.passed: list[int] = []
        """The numbers under which the command is to find what was received."""
        self.directory = self.cgroup = b""
        self.stdin = self.entrance = -1
        self.memory = 0
        self.user: int | None = None
        text = os.pread(self.file, os.fstat(self.file).st_size, LEADER_BYTES)
        for entry in text.split(b"\0")[:-1]:
            key, _, value = entry.partition(b"=")
            self._take(key.decode(), value)

    def _take(self, key: str, value: bytes) -> None:
        if key in ("argv", "wrapper"):
            getattr(self, key).append(value)
        elif key in ("environment", "mark"):
            name, _, content = value.partition(b"=")
            getattr(self, key)[name] = content
        elif key.startswith("RLIMIT_"):
            self.limits[key] = int(value)
        elif key == "descriptor":
            self.passed.append(int(value))
        elif key in ("stdin", "entrance"):
            # For the start only, not passed on: they come after those that are.
            setattr(self, key, self.received.pop())
        elif key in ("memory", "user"):
            setattr(self, key, int(value))
        elif key in ("directory", "cgroup"):
            setattr(self, key, value)

    @property
    def takes_a_fork(self) -> bool:
        """There is something to be done that a command must do to itself before it begins."""
        return bool(self.limits) or self.entrance >= 0

    @property
    def leader(self) -> int:
        """The process that became the command, if it was noted."""
        return int(os.pread(self.file, LEADER_BYTES, 0).strip(b"\0") or 0)

    def note_leader(self, process: int) -> None:
        os.pwrite(self.file, b"%d" % process, 0)

    def close(self) -> None:
        for descriptor in (self.file, self.output, *self.received, self.stdin, self.entrance):
            if descriptor >= 0:
                os.close(descriptor)
