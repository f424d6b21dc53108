"""URLs of databases and brokers: whether one is valid, and whether it is local."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

LOCAL_HOSTS = frozenset({"", "localhost", "127.0.0.1", "::1"})
HOST = re.compile(r"(?:\[[^\]]*\]|[^\[\]:]*)(?::[0-9]{0,5})?")

BROKER_SCHEMES = {
    "redis": ("redis", "rediss", "unix"),
    "rabbitmq": ("amqp", "amqps"),
    "nats": ("nats", "tls"),
    "kafka": ("kafka", "kafkas"),
    "sqs": ("sqs",),
}


def scheme_of(url: str) -> str:
    """The scheme, or an empty text for a URL that can't be read."""
    try:
        parts = urlsplit(url)
        # Raises for a port that is no number.
        _ = parts.port
    except ValueError:
        return ""
    return parts.scheme


def broker_kind_of(url: str) -> str | None:
    """The kind of broker that the scheme stands for."""
    scheme = scheme_of(url)
    return next((kind for kind, schemes in BROKER_SCHEMES.items() if scheme in schemes), None)


def is_postgres_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("postgresql", "postgres") and all(
        HOST.fullmatch(host) for host in parts.netloc.rpartition("@")[2].split(",")
    )


def is_local(url: str) -> bool:
    parts = urlsplit(url)
    named = unquote(parts.netloc.rpartition("@")[2]).split(",")
    hosts = parse_qs(parts.query).get("host") or [re.sub(r":\d*$", "", host).strip("[]") for host in named]
    return all(host in LOCAL_HOSTS or host.startswith("/") for host in hosts)
