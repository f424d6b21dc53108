"""Builds a clean environment for commands. Only the variables below are inherited: any other may hold a secret."""

from __future__ import annotations

import os
from collections.abc import Mapping

from foliot.config import PREFIX, Config

PASSED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"})
PASSED_PREFIX = b"LC_"
FIRST_PREFIXES = ("LC_", "LD_", "PYTHON")
"""Variables that the C library and the interpreter read at startup."""
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment(config: Config, added: Mapping[str, str]) -> dict[str, str]:
    """The inherited variables, those that `shell_environment` names, and the command's own. Never Foliot's settings."""
    named = {name.strip() for name in config.shell_environment.split(",")} | PASSED
    # Compared as bytes: a worker may have hundreds of variables, and decoding them all would slow down every command.
    named.update(os.fsdecode(name) for name in os.environb if name.startswith(PASSED_PREFIX))
    kept = {name: os.environ[name] for name in named if name in os.environ and not name.startswith(PREFIX)}
    return {"PATH": DEFAULT_PATH} | kept | dict(added)


def without_settings() -> tuple[dict[str, str], dict[str, str]]:
    """The environment of Python processes that run the app's code: everything except Foliot's settings, which hold the
    database URL.

    In two parts: the variables that the interpreter starts with, and those that it receives once it has concealed
    itself. Until then, other processes of the same user can read its environment.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    first = {name for name in kept if name in PASSED or name.startswith(FIRST_PREFIXES)}
    return {name: kept[name] for name in first}, {name: value for name, value in kept.items() if name not in first}
