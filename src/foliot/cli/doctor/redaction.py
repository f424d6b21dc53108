"""Removes secrets from a report: passwords in URLs, and every value of a secret setting, wherever it appears."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from foliot.config import SECRETS, Config, from_environment, presentable
from foliot.errors import FoliotError

HIDDEN = "***"
# A shorter text would hide parts of ordinary words.
SHORTEST = 4


def secrets_of(config: Config | None) -> frozenset[str]:
    """The secrets that this process knows, as they might appear in an error message."""
    return frozenset(secret for secret in _known(config) if len(secret) >= SHORTEST)


def _known(config: Config | None) -> Iterator[str]:
    values = [str(getattr(config, name)) for name in SECRETS] if config is not None else []
    values += [os.environ.get(f"FOLIOT_{name.upper()}", "") for name in SECRETS]
    for name in ("FOLIOT_URL", "FOLIOT_TOKEN"):
        try:
            values.append(from_environment(name))
        except FoliotError:
            # The file is missing or unreadable; the report says so elsewhere.
            continue
    for value in values:
        if "://" not in value:
            yield value
            # Several keys, or several headers with their names.
            for part in value.split(","):
                yield from (part.strip(), part.partition("=")[2].strip())
            continue
        for password in _passwords_in(value):
            yield from (password, unquote(password))


def _passwords_in(url: str) -> Iterator[str]:
    """After the user in front of the host, and among the parameters. A password may contain a raw @ or /."""
    credentials, has_host, _ = url.partition("://")[2].rpartition("@")
    if has_host:
        yield credentials.partition(":")[2]
    for parameter in url.replace("?", "&").split("&"):
        name, _, value = parameter.partition("=")
        if name == "password":
            yield value


def redacted(value: Any, secrets: frozenset[str]) -> Any:
    """The same value without secrets, in all texts within it."""
    if isinstance(value, str):
        text = presentable(value)
        # The longest first: one may be part of another.
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text
    if isinstance(value, Mapping):
        return {key: redacted(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item, secrets) for item in value]
    return value
