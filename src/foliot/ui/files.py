"""The files that `make ui` builds, read once each and kept in memory."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

DIST = Path(__file__).parent / "dist"
# No directory and no dot at the start, so that a request cannot leave the directory of the assets.
ASSET_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,120}")
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
}
ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Content codings that the build prepares, in order of preference."""
PREFIX_MARK = 'name="foliot-prefix" content=""'


@dataclass(frozen=True, slots=True)
class Asset:
    kind: str
    plain: bytes
    encoded: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Index:
    text: bytes
    etag: str


class Files:
    def __init__(self, directory: Path = DIST, *, prefix: str = "") -> None:
        self._directory = directory
        self._prefix = prefix
        self._assets: dict[str, Asset] = {}
        self._index: tuple[int, Index] | None = None

    def index(self) -> Index | None:
        """The one page of the UI; None while it has not been built. A new build is seen at once."""
        path = self._directory / "index.html"
        try:
            changed_at = path.stat().st_mtime_ns
            if self._index is None or self._index[0] != changed_at:
                text = _with_prefix(path.read_text(), self._prefix).encode()
                self._index = changed_at, Index(text, f'"{hashlib.sha256(text).hexdigest()[:32]}"')
        except FileNotFoundError:
            return None
        return self._index[1]

    def asset(self, name: str) -> Asset | None:
        """A file whose name contains the hash of its content, so that it never changes."""
        return self._read(f"assets/{name}") if ASSET_NAME.fullmatch(name) else None

    def third_party(self) -> Asset | None:
        """The licences of the packages inside."""
        return self._read("THIRD_PARTY.txt")

    def _read(self, name: str) -> Asset | None:
        if name not in self._assets:
            path = self._directory / name
            kind = KINDS.get(path.suffix)
            if kind is None or not path.is_file():
                return None
            encoded = {
                coding: other.read_bytes()
                for coding, suffix in ENCODINGS.items()
                if (other := path.with_name(path.name + suffix)).is_file()
            }
            self._assets[name] = Asset(kind, path.read_bytes(), encoded)
        return self._assets[name]


def _with_prefix(page: str, prefix: str) -> str:
    """Puts a proxy's path in front of the page's links, and tells the scripts about it."""
    if not prefix:
        return page
    return page.replace(PREFIX_MARK, f'name="foliot-prefix" content="{prefix}"').replace('"/ui/', f'"{prefix}/ui/')
