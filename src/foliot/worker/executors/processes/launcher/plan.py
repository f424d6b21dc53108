"""What a launcher was asked to start."""

from __future__ import annotations

import os

LEADER_BYTES = 20
BLOCK_BYTES = 512
SLACK_BYTES = 4 << 20
"""Space comes in pages, and pages may be large."""


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
        self.private_shm = 0
        """How large a /dev/shm of its own may be, if it is to get one."""
        self.scratch: list[bytes] = []
        """Directories in memory that only the command has, as it sees them."""
        self.own_scratch: list[bytes] = []
        """The same for those that we see, too, because we are where the command is. They are emptied when it has
        ended."""
        self.result = -1
        """The file that the command writes its result to: the first one that it gets."""
        self.result_max = 0
        self.user: int | None = None
        text = os.pread(self.file, os.fstat(self.file).st_size, LEADER_BYTES)
        for entry in text.split(b"\0")[:-1]:
            key, _, value = entry.partition(b"=")
            self._take(key.decode(), value)
        if self.result_max:
            self.result = self.received[0]

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
        elif key in ("scratch", "own_scratch"):
            getattr(self, key).append(value)
        elif key in ("memory", "user", "private_shm", "result_max"):
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

    @property
    def is_result_too_large(self) -> bool:
        """By its blocks too: space may be taken before the size says so."""
        if self.result < 0:
            return False
        status = os.fstat(self.result)
        return status.st_size > self.result_max or status.st_blocks * BLOCK_BYTES > self.result_max + SLACK_BYTES

    def forget(self) -> None:
        """The result too, once nothing is left of the command."""
        if self.result >= 0:
            os.close(self.result)

    def close(self) -> None:
        for descriptor in (self.file, self.output, *self.received, self.stdin, self.entrance):
            if descriptor >= 0 and descriptor != self.result:
                os.close(descriptor)
