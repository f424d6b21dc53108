"""A disk in memory, small enough to fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path


class SmallDisk:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ballast = directory / "ballast"

    @staticmethod
    def mounted(directory: Path, size: int, say: Callable[[str], None]) -> SmallDisk | None:
        """Mounts it on this directory. Returns None, and prints the reason, where that is impossible."""
        directory.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs", str(directory)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.SubprocessError) as error:
            why = (getattr(error, "stderr", "") or str(error)).strip()
            say(f"skipped: a full disk, because no tmpfs can be mounted: {why}")
            return None
        return SmallDisk(directory)

    def unmount(self) -> None:
        # Processes keep their open files; nobody can open new ones.
        subprocess.run(["umount", "--lazy", str(self._directory)], check=False, capture_output=True, timeout=30)

    def fill(self) -> None:
        with self._ballast.open("wb") as ballast:
            while (free := os.statvfs(self._directory).f_bavail * os.statvfs(self._directory).f_frsize) > 0:
                # Other processes write meanwhile: a single large allocation may fail.
                size = ballast.seek(0, os.SEEK_END)
                try:
                    os.posix_fallocate(ballast.fileno(), size, max(4096, free // 2))
                except OSError:
                    break

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)
