"""The environment of commands: a clean one. Of the worker's own variables only those below pass, for any other may hold
a secret."""

from __future__ import annotations

import os
from collections.abc import Mapping

from foliot.config import PREFIX, Config

PASSED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"})
PASSED_PREFIX = b"LC_"
FIRST_PREFIXES = ("LC_", "LD_", "PYTHON")
"""What the C library and the interpreter look at when they start."""
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment(config: Config, added: Mapping[str, str]) -> dict[str, str]:
    """What passes, what `shell_environment` names, and what the command adds. Foliot's own settings never do."""
    named = {name.strip() for name in config.shell_environment.split(",")} | PASSED
    # As bytes, since that is how they are kept: a worker may have hundreds, and decoding all of them is much of what a
    # command costs it.
    named.update(os.fsdecode(name) for name in os.environb if name.startswith(PASSED_PREFIX))
    kept = {name: os.environ[name] for name in named if name in os.environ and not name.startswith(PREFIX)}
    return {"PATH": DEFAULT_PATH} | kept | dict(added)


def without_settings() -> tuple[dict[str, str], dict[str, str]]:
    """For the application's own code in a process of its own: all but Foliot's settings, which hold the database's URL.

    In two parts: what an interpreter must be started with, and what it is told once it has concealed itself. Until
    then, other processes of the same user can read its environment.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    first = {name for name in kept if name in PASSED or name.startswith(FIRST_PREFIXES)}
    return {name: kept[name] for name in first}, {name: value for name, value in kept.items() if name not in first}
