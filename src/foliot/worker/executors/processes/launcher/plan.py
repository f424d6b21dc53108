"""The plan of a command, as the worker sends it."""

from __future__ import annotations

import os

LEADER_BYTES = 20
BLOCK_BYTES = 512
SLACK_BYTES = 4 << 20
"""Space is allocated in pages, which may be large."""


class Plan:
    def __init__(self, descriptors: list[int]) -> None:
        self.file, self.output, *self.received = descriptors
        self.argv: list[bytes] = []
        self.wrapper: list[bytes] = []
        self.mark: dict[bytes, bytes] = {}
        self.environment: dict[bytes, bytes] = {}
        self.limits: dict[str, int] = {}
        self.passed: list[int] = []
        """The descriptor numbers that the command expects for `received`."""
        self.directory = self.cgroup = b""
        self.stdin = self.entrance = -1
        self.memory = 0
        self.private_shm = 0
        """The size of a private /dev/shm. 0: none."""
        self.scratch: list[bytes] = []
        """Private in-memory directories, by their paths inside the sandbox."""
        self.own_scratch: list[bytes] = []
        """The same for directories that the launcher shares with the command. It empties them afterwards."""
        self.result = -1
        """The file for the command's result, the first descriptor that it gets."""
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
            # Used at the start and not passed on. They follow the descriptors that are.
            setattr(self, key, self.received.pop())
        elif key in ("scratch", "own_scratch"):
            getattr(self, key).append(value)
        elif key in ("memory", "user", "private_shm", "result_max"):
            setattr(self, key, int(value))
        elif key in ("directory", "cgroup"):
            setattr(self, key, value)

    @property
    def needs_fork(self) -> bool:
        """Whether the process must set limits or enter a cgroup before exec."""
        return bool(self.limits) or self.entrance >= 0

    @property
    def leader(self) -> int:
        """The command's process, or 0 if it is not noted."""
        return int(os.pread(self.file, LEADER_BYTES, 0).strip(b"\0") or 0)

    def note_leader(self, process: int) -> None:
        os.pwrite(self.file, b"%d" % process, 0)

    @property
    def is_result_too_large(self) -> bool:
        """Checks the allocated blocks too, since they may exceed the size."""
        if self.result < 0:
            return False
        status = os.fstat(self.result)
        return status.st_size > self.result_max or status.st_blocks * BLOCK_BYTES > self.result_max + SLACK_BYTES

    def forget(self) -> None:
        """Closes the result, once no process of the command is left."""
        if self.result >= 0:
            os.close(self.result)

    def close(self) -> None:
        for descriptor in (self.file, self.output, *self.received, self.stdin, self.entrance):
            if descriptor >= 0 and descriptor != self.result:
                os.close(descriptor)
