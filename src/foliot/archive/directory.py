"""An archive in a directory, such as a mounted volume."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from foliot.archive.destination import ArchiveUnavailable


class Directory:
    def __init__(self, location: str) -> None:
        self.location = location
        self._root = Path(location)

    def put(self, name: str, content: bytes) -> None:
        try:
            self._check_root()
            path = self._root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, path)  # noqa: PTH105
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            _sync(path.parent)
        except OSError as error:
            raise self._unavailable(error) from error

    def get(self, name: str) -> bytes | None:
        try:
            self._check_root()
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unavailable(error) from error

    def sizes(self, directory: str) -> dict[str, int]:
        try:
            self._check_root()
            top = self._root / directory
            return {str(path.relative_to(top)): path.stat().st_size for path in top.rglob("*") if path.is_file()}
        except OSError as error:
            raise self._unavailable(error) from error

    def directories(self, directory: str) -> list[str]:
        try:
            self._check_root()
            top = self._root / directory
            return sorted(path.name for path in top.iterdir() if path.is_dir()) if top.is_dir() else []
        except OSError as error:
            raise self._unavailable(error) from error

    def _check_root(self) -> None:
        """An archive on a volume that is not mounted must not end up on the disk below."""
        if not self._root.is_dir():
            raise ArchiveUnavailable(f"archive_url: {self.location} is not a directory: create or mount it")

    def _unavailable(self, error: OSError) -> ArchiveUnavailable:
        return ArchiveUnavailable(f"{self.location}: {error.strerror or error}")


def _sync(directory: Path) -> None:
    """A new name is stored for good once its directory is."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
