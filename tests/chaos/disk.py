"""A disk in memory that is small enough to be filled."""

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
        """On this directory; None, and a line that says why, where that can't be done."""
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
        # Whoever still holds something there keeps it; nobody comes in any more.
        subprocess.run(["umount", "--lazy", str(self._directory)], check=False, capture_output=True, timeout=30)

    def fill(self) -> None:
        with self._ballast.open("wb") as ballast:
            while (free := os.statvfs(self._directory).f_bavail * os.statvfs(self._directory).f_frsize) > 0:
                # Others write meanwhile: what is asked for in one piece may not be there any more.
                size = ballast.seek(0, os.SEEK_END)
                try:
                    os.posix_fallocate(ballast.fileno(), size, max(4096, free // 2))
                except OSError:
                    break

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)
