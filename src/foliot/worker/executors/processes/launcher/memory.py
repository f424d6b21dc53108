"""Measures the memory of a command where no cgroup does: the memory of its processes, files and segments.

Data in an in-memory file (a memfd, /dev/shm, any other tmpfs) or a System V segment is in no process's resident memory
unless it is mapped. So files and segments count by themselves, and their mappings do not. A file is found while a
process of the command has it open, and counts from then on until it is gone.

Not counted: files opened and closed between two checks, files in transit through a socket, and kernel buffers.
"""

from __future__ import annotations

import os
import stat

from .plan import Plan

BLOCK_BYTES = 512
# Fields of /proc/PID/status. Swapped pages count too.
HELD = (b"RssAnon:", b"RssShmem:", b"VmSwap:", b"HugetlbPages:")
# Fields of /proc/PID/smaps.
EXACT = (b"SwapPss:", b"Private_Hugetlb:", b"Shared_Hugetlb:")
SEGMENTS = "/proc/sysvipc/shm"
SHARED_NAMES = (b"/dev/zero", b"/SYSV", b"/memfd:")

DEVICES: set[int] = set()
"""The devices of the tmpfs mounts at the launcher's first check."""
File = tuple[int, int]
"""Device and inode."""


class Memory:
    def __init__(self, plan: Plan) -> None:
        self.limit = plan.memory
        self._result = plan.result
        self._scratch = plan.scratch
        self._own_scratch = plan.own_scratch
        if not DEVICES:
            DEVICES.update(memory_devices())
        self._devices = DEVICES | {os.fstat(plan.file).st_dev}
        """The devices whose files are in memory. The plan is a memfd, so its device is that of all memfds."""
        self._paths: dict[File, str] = {}
        self._seen: set[int] = set()

    def is_exceeded(self, pids: list[int]) -> bool:
        self._seen.update(pids)
        scratch = self._scratch_bytes(pids)
        files = self._find_files(pids, scratch)
        segments = self._find_segments()
        apart = sum(scratch.values()) + sum(files.values()) + sum(segments.values())
        # The quick sum counts shared memory once per process. Only if it exceeds the limit is the exact sum computed.
        if apart + sum(map(held_memory, pids)) <= self.limit:
            return False
        counted, known = {*files, *((0, number) for number in segments)}, set(scratch)
        shares = [share_of_memory(pid, counted, known, self._devices) for pid in pids]
        return apart + sum(shares) > self.limit

    def _scratch_bytes(self, pids: list[int]) -> dict[int, int]:
        """The space used in the command's private in-memory directories, by device."""
        found = {}
        for path in self._own_scratch:
            found.update(used_in(path))
        for path in self._scratch:
            for pid in pids:
                inside = used_in(b"/proc/%d/root" % pid + path)
                if inside:
                    # Without a private directory the command sees the shared one, which does not count.
                    found.update({device: used for device, used in inside.items() if device not in used_in(path)})
                    break
        return found

    def _find_files(self, pids: list[int], scratch: dict[int, int]) -> dict[File, int]:
        found: dict[File, int] = {}
        if self._result >= 0:
            status = os.fstat(self._result)
            found[status.st_dev, status.st_ino] = status.st_blocks * BLOCK_BYTES
        for pid in pids:
            for path in opened_by(pid):
                status_of = status_at(path)
                if status_of is None or not stat.S_ISREG(status_of.st_mode) or status_of.st_dev not in self._devices:
                    continue
                if status_of.st_dev not in scratch:
                    file = status_of.st_dev, status_of.st_ino
                    found[file] = status_of.st_blocks * BLOCK_BYTES
                    if file not in self._paths:
                        self._paths[file] = target_of(path)
        for file, name in list(self._paths.items()):
            if file not in found:
                status_of = status_at(name)
                if status_of is None or (status_of.st_dev, status_of.st_ino) != file:
                    del self._paths[file]
                else:
                    found[file] = status_of.st_blocks * BLOCK_BYTES
        return found

    def _find_segments(self) -> dict[int, int]:
        """System V segments that a process of the command created or used last."""
        found = {}
        for words in lines_of(SEGMENTS)[1:]:
            if int(words[4]) in self._seen or int(words[5]) in self._seen:
                found[int(words[1])] = int(words[14]) + int(words[15])
        return found


def memory_devices() -> list[int]:
    return [
        os.makedev(*map(int, words[2].split(b":")))
        for words in lines_of("/proc/self/mountinfo")
        if words[words.index(b"-") + 1] == b"tmpfs"
    ]  # fmt: skip


def used_in(path: bytes) -> dict[int, int]:
    try:
        space = os.statvfs(path)
        return {os.stat(path).st_dev: (space.f_blocks - space.f_bfree) * space.f_frsize}  # noqa: PTH116
    except OSError:
        return {}


def opened_by(pid: int) -> list[str]:
    try:
        return [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]  # noqa: PTH208
    except OSError:
        # It has ended, or belongs to another user.
        return []


def status_at(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116
    except OSError:
        return None


def target_of(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""


def lines_of(path: str) -> list[list[bytes]]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return [line.split() for line in file]
    except OSError:
        # It ended meanwhile.
        return []


def held_memory(pid: int) -> int:
    """The memory of a process in bytes, without files on disk."""
    return 1024 * sum(int(words[1]) for words in lines_of(f"/proc/{pid}/status") if words and words[0] in HELD)


def share_of_memory(pid: int, counted: set[File], scratch: set[int], devices: set[int]) -> int:
    """The same, with a proportional share of shared memory, and without files that are counted already."""
    lines = lines_of(f"/proc/{pid}/smaps")
    if not lines:
        # It has ended or is not readable: shared memory counts in full.
        return held_memory(pid)
    found, counts = 0, "nothing"
    proportional = 0
    for words in lines:
        if b"-" in words[0]:
            counts, proportional = kind_of(words, counted, scratch, devices), 0
        elif words[0] == b"Pss:":
            proportional = int(words[1])
            found += proportional if counts == "all" else 0
        elif words[0] == b"Anonymous:" and counts == "copies":
            # Written pages of a private file mapping belong to the process.
            found += min(proportional, int(words[1]))
        elif words[0] in EXACT:
            found += int(words[1])
    return found * 1024


def kind_of(words: list[bytes], counted: set[File], scratch: set[int], devices: set[int]) -> str:
    """Which part of a mapping counts. `words`: address, permissions, offset, device, inode, and a name if there is
    one."""
    inode = int(words[4])
    if not inode and not (len(words) > 5 and words[5].startswith(SHARED_NAMES)):
        return "all"
    name = words[5] if len(words) > 5 else b""
    device = os.makedev(*(int(part, 16) for part in words[3].split(b":")))
    if (device, inode) in counted or device in scratch or (name.startswith(b"/SYSV") and (0, inode) in counted):
        return "copies"
    return "all" if device in devices else "copies"
