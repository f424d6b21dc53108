"""The URLs that tasks may name."""

from __future__ import annotations

from urllib.parse import urlsplit


def check_url(text: str) -> None:
    """Raises `ValueError`, which a decoder turns into the name of the field."""
    try:
        parts = urlsplit(text)
        # Read for its check alone.
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"`url`: {error}") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise ValueError(f"`url`: only http and https, not {parts.scheme!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("`url`: no user or password in it; set the header Authorization")
    if not parts.hostname:
        raise ValueError(f"`url`: {text!r} names no host")
