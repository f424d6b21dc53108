"""Where a worker without database access finds its server."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServerAddress:
    url: str
    token: str = field(repr=False)
    namespace: str = ""
    """Empty: the namespace of the token."""
