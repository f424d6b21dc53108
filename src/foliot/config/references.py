"""Secrets that stored rules refer to: `env:NAME` or `file:/path`. They are read where they are used, and only if the
setting `secret_references` lists them, because they read the environment and the files of the process."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from foliot.config.secret_rules import allowed_references
from foliot.config.secrets import secret_in
from foliot.config.settings import Config
from foliot.errors import ConfigurationError


def secret_of(config: Config, field: str, reference: str) -> str:
    """The text that a reference stands for. It may read a file. Raises `ConfigurationError`."""
    if not is_allowed(config, reference):
        raise ConfigurationError(
            f"{field}: {reference} is not among the secret_references of this process; an administrator can add it"
        )
    kind, _, where = reference.partition(":")
    if kind == "file":
        return secret_in(where, field)
    value = os.environ.get(where, "").strip()
    if not value:
        raise ConfigurationError(f"{field}: the environment variable {where} is not set in this process")
    return value


def is_allowed(config: Config, reference: str) -> bool:
    if "/../" in reference or reference.endswith("/..") or str(PurePosixPath(reference)) != reference:
        return False
    return any(_covers(one, reference) for one in allowed_references(config.secret_references))


def _covers(allowed: str, reference: str) -> bool:
    if not allowed.endswith("*"):
        return reference == allowed
    beginning = allowed.removesuffix("*")
    rest = reference.removeprefix(beginning)
    return reference.startswith(beginning) and rest != "" and "/" not in rest
