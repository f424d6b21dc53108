"""Where the archive is: an S3 store or a directory."""

from __future__ import annotations

from typing import Protocol

from foliot.config import Config, bucket_of
from foliot.errors import ConfigurationError, FoliotError

NEEDS_EXTRA = "{setting} needs more packages: pip install 'foliot[archive]'"


class ArchiveUnavailable(FoliotError):
    """The archive does not answer, or does not hold what was written to it."""

    code = "archive_unavailable"


class Destination(Protocol):
    """Its methods block, and raise `ArchiveUnavailable`. Names are paths with slashes."""

    location: str
    """As users write it."""

    def put(self, name: str, content: bytes) -> None:
        """Returns once the content is stored for good. Replaces what was there."""
        ...

    def get(self, name: str) -> bytes | None: ...

    def sizes(self, directory: str) -> dict[str, int]:
        """The objects in a directory and below it, by their names from there."""
        ...

    def directories(self, directory: str) -> list[str]:
        """The names of the directories in a directory, in order."""
        ...


def open_destination(config: Config) -> Destination:
    """Raises `ConfigurationError`. Does not connect."""
    if not config.archive_url:
        raise ConfigurationError("archive_url is not set: there is no archive")
    if config.archive_format == "parquet":
        check_parquet()
    if bucket_of(config.archive_url) is None:
        from foliot.archive.directory import Directory

        return Directory(config.archive_url)
    try:
        from foliot.archive.s3 import S3
    except ImportError:
        raise ConfigurationError(NEEDS_EXTRA.format(setting="archive_url")) from None
    return S3(config)


def check_parquet() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ConfigurationError(NEEDS_EXTRA.format(setting="archive_format = parquet")) from None
