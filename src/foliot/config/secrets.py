"""Secrets in files: `NAME_file` names the file that contains the setting `NAME`."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

from foliot.config.masking import SECRETS
from foliot.config.settings import PREFIX, Config
from foliot.errors import ConfigurationError

SECRET_MAX_BYTES = 65_536
DESCRIPTOR = re.compile(r"fd:([0-9]{1,9})")


def secret_in(where: str, name: str) -> str:
    """The text in a file or in an inherited file descriptor, stripped. `name` is the setting that names it.

    A descriptor is read to its end and closed, so that child processes do not inherit it.
    """
    try:
        if descriptor := DESCRIPTOR.fullmatch(where):
            content = _read_descriptor(int(descriptor[1]))
        else:
            with Path(where).open("rb") as file:
                content = file.read(SECRET_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{name}: {where} can't be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    if len(content) > SECRET_MAX_BYTES:
        raise ConfigurationError(
            f"{name}: {where} has more than {SECRET_MAX_BYTES} bytes; it must contain one line only"
        )
    try:
        text = content.decode("utf-8").strip()
    except UnicodeDecodeError:
        # Do not quote it: it may still be a secret.
        raise ConfigurationError(f"{name}: {where} is not UTF-8 text") from None
    if not text:
        raise ConfigurationError(f"{name}: {where} is empty")
    return text


@functools.cache
def _read_descriptor(descriptor: int) -> bytes:
    """Cached: a descriptor can be read only once, and clients read it for each connection."""
    with open(descriptor, "rb") as file:
        if file.seekable():
            # A supervisor passes the same open file to each process that it starts.
            file.seek(0)
        return file.read(SECRET_MAX_BYTES + 1)


def from_environment(variable: str) -> str:
    """The value of a client's variable, or the content of the file that VARIABLE_FILE names; else empty."""
    value, where = os.environ.get(variable, ""), os.environ.get(f"{variable}_FILE", "")
    if value and where:
        raise ConfigurationError(f"environment: {variable} and {variable}_FILE are both given; give one of them")
    return secret_in(where, f"{variable}_FILE") if where else value


def forget_secrets() -> None:
    """Removes the secrets from this process's environment, so that processes that a task starts do not inherit
    them."""
    for name in SECRETS:
        os.environ.pop(PREFIX + name.upper(), None)


def hidden_paths(config: Config) -> list[Path]:
    """Paths that may contain secrets of this process: the embedded PostgreSQL, the configuration file, and secret
    files."""
    named = [config.tls_key_file, *(getattr(config, f"{name}_file") for name in SECRETS)]
    named += [os.environ.get(f"FOLIOT_{name}_FILE", "") for name in ("URL", "TOKEN")]
    files = [path for path in named if path and not DESCRIPTOR.fullmatch(path)]
    return [Path(path).absolute() for path in (config.data, os.environ.get("FOLIOT_CONFIG") or "foliot.toml", *files)]
