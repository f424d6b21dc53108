"""The embedded PostgreSQL: found, created, started, watched and stopped by the process that owns
it."""

from __future__ import annotations

from foliot.embedded.server import EmbeddedPostgres, find_url

__all__ = ["EmbeddedPostgres", "find_url"]
