"""The part of the report about this machine: versions, platform and settings."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Any

import msgspec

import foliot
from foliot import config
from foliot.cli.doctor.findings import Finding, notice, problem
from foliot.config import Config
from foliot.errors import ConfigurationError


def load_config() -> tuple[Config | None, list[Finding]]:
    """The configuration. None if it is invalid, which is a finding."""
    try:
        loaded = config.load()
    except ConfigurationError as error:
        return None, [problem(f"The configuration can't be read: {error.detail}", "Correct it; see `foliot check`.")]
    return loaded, [notice(warning) for warning in loaded.warnings()]


def machine_report(loaded: Config | None) -> dict[str, Any]:
    return {
        "foliot": foliot.__version__,
        "python": sys.version,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": dict(sorted(packages())),
        "settings": settings_of(loaded) if loaded is not None else None,
        "variables": sorted(name for name in os.environ if name.startswith("FOLIOT_")),
    }


def packages() -> list[tuple[str, str]]:
    """The packages that Foliot requires, also those of its extras, as far as they are installed."""
    found = []
    for requirement in metadata.requires("foliot") or ():
        name = requirement.partition(";")[0].strip().partition("[")[0]
        name = "".join(character for character in name.partition(">")[0] if character.isalnum() or character in "-_.")
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found


def settings_of(loaded: Config) -> dict[str, Any]:
    """The settings that are not at their default, with secrets masked, and where they come from."""
    defaults, sources = msgspec.to_builtins(Config()), config.sources_of()
    return {
        name: {
            "value": config.shown(name, value),
            "source": sources.get(name) or sources.get(f"{name}_file", "default"),
        }
        for name, value in msgspec.to_builtins(loaded).items()
        if value != defaults[name]
    }
