"""The rules of the settings of the archive and of the search engine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from foliot.config.sections.archive import ArchiveSettings

BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
PREFIX = re.compile(r"[A-Za-z0-9!_.*'()-]+(/[A-Za-z0-9!_.*'()-]+)*")


@dataclass(frozen=True, slots=True)
class Bucket:
    name: str
    prefix: str
    """Without a slash at its end. May be empty."""


def bucket_of(url: str) -> Bucket | None:
    """The bucket that `archive_url` names. None for a directory. Raises `ValueError`."""
    if not url.startswith("s3://"):
        if "://" in url or not Path(url).is_absolute():
            raise ValueError(f"archive_url: {url!r} is neither s3://BUCKET/PREFIX nor the absolute path of a directory")
        return None
    name, _, prefix = url.removeprefix("s3://").strip("/").partition("/")
    if not BUCKET.fullmatch(name) or (prefix and not PREFIX.fullmatch(prefix)):
        raise ValueError(f"archive_url: {url!r} must look like s3://BUCKET/PREFIX, with the name of a bucket in S3")
    return Bucket(name, prefix)


def check_archive(settings: ArchiveSettings) -> None:
    """Raises `ValueError`."""
    if settings.archive_url:
        bucket_of(settings.archive_url)
    if bool(settings.archive_s3_access_key) != bool(settings.archive_s3_secret_key):
        raise ValueError("archive_s3_access_key and archive_s3_secret_key belong together: set both or neither")
    for name in ("archive_s3_endpoint", "search_url"):
        if url := getattr(settings, name):
            _check_http(name, url)
    if settings.search_api_key and settings.search_username:
        raise ValueError("search_api_key and search_username exclude each other: set one of them")
    if settings.search_password and not settings.search_username:
        raise ValueError("search_password needs search_username")


def _check_http(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ValueError(f"{name} must look like https://host:9200")
    if "@" in parts.netloc:
        # Do not quote it: it contains a password.
        raise ValueError(f"{name} may not contain a user or a password: there are settings for them")
