"""Reads the configuration of a process.

A setting comes from its default, a TOML file (`foliot.toml` in the working directory, or FOLIOT_CONFIG), the
environment (FOLIOT_ and its name in capitals) or the command line; later sources win. An unknown name is an error that
suggests the nearest known name.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from foliot.config.masking import SECRETS
from foliot.config.secrets import secret_in
from foliot.config.settings import GIVEN_TO_COMMANDS, LISTS, PREFIX, Config, did_you_mean
from foliot.errors import ConfigurationError
from foliot.validation_errors import to_invalid

SOURCES = "FOLIOT_SETTING_SOURCES"
"""Tells the children of `foliot up`, which get all settings in their environment, where the settings come from."""
OTHER_VARIABLES = (
    frozenset({"FOLIOT_CONFIG", "FOLIOT_URL", "FOLIOT_URL_FILE", "FOLIOT_TOKEN", "FOLIOT_TOKEN_FILE", SOURCES})
    | GIVEN_TO_COMMANDS
)
"""Variables that are not settings: other parts read them."""


def load(overrides: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None) -> Config:
    """The configuration of this process. `overrides` come from the command line; None there means not given."""
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    for source in (_from_file(environment), _from_environment(environment), given):
        values = _over(values, source)
    for name in SECRETS:
        if where := values.get(f"{name}_file"):
            values[name] = secret_in(str(where), f"{name}_file")
    try:
        return msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"configuration: {to_invalid(error, whole='settings').detail}") from None


def sources_of(
    overrides: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Where the settings of `load` come from: file, environment or command line. Defaults are left out."""
    environment = os.environ if environment is None else environment
    if (told := environment.get(SOURCES)) is not None:
        return msgspec.json.decode(told, type=dict[str, str])
    given = {name for name, value in (overrides or {}).items() if value is not None}
    return (
        dict.fromkeys(_from_file(environment), "file")
        | dict.fromkeys(_from_environment(environment), "environment")
        | dict.fromkeys(given, "command line")
    )


def _over(values: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    """Merges the two; `source` wins. A secret and the file that contains it are one setting, so one replaces the
    other."""
    merged = values | source
    for name in SECRETS:
        file = f"{name}_file"
        if source.get(name) and source.get(file):
            raise ConfigurationError(f"configuration: {name} and {file} are both given; give one of them")
        if source.get(name):
            merged.pop(file, None)
        elif source.get(file):
            merged.pop(name, None)
    return merged


def setting_names() -> tuple[str, ...]:
    return Config.__struct_fields__


def _from_file(environment: Mapping[str, str]) -> dict[str, Any]:
    named = environment.get("FOLIOT_CONFIG")
    path = Path(named or "foliot.toml")
    if not named and not path.is_file():
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"configuration file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"configuration file {path}: {error}") from None
    for name in values:
        if name not in setting_names():
            raise ConfigurationError(
                f"configuration file {path}: unknown setting {name!r}{did_you_mean(name, setting_names())}"
            )
    for name in LISTS:
        if isinstance(given := values.get(name), list) and all(isinstance(word, str) for word in given):
            values[name] = ",".join(given)
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    known = {PREFIX + name.upper(): name for name in setting_names()}
    values = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable not in known:
            raise ConfigurationError(f"environment: unknown setting {variable!r}{did_you_mean(variable, known)}")
        values[known[variable]] = value
    return values
