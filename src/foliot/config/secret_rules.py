"""Rules of the settings `secret_key` and `secret_references`."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foliot.config.sections.channels import ChannelsSettings

KEY_BYTES = 32
ALLOWED = re.compile(r"env:(?!FOLIOT_)[A-Za-z_][A-Za-z0-9_]*\*?|file:(?:/(?!\.\.?(?:/|$))[^/*,\x00]+)+(?:/\*)?")


def check_secrets(settings: ChannelsSettings) -> None:
    """Raises `ValueError`."""
    secret_keys(settings.secret_key)
    for one in allowed_references(settings.secret_references):
        if not ALLOWED.fullmatch(one):
            raise ValueError(
                f"secret_references: {one!r} is neither env:NAME, env:BEGINNING*, file:/absolute/path nor "
                "file:/directory/*, or begins with FOLIOT_"
            )


def secret_keys(setting: str) -> tuple[bytes, ...]:
    """The keys, which are not quoted in the error. Raises `ValueError`."""
    found = []
    for number, text in enumerate((part.strip() for part in setting.split(",")), 1):
        if not text and not setting.strip():
            continue
        try:
            key = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise ValueError(
                f"secret_key: key {number} is not {KEY_BYTES} bytes in base64; make one with openssl rand -base64 32"
            )
        found.append(key)
    return tuple(found)


def allowed_references(setting: str) -> tuple[str, ...]:
    return tuple(one for part in setting.split(",") if (one := part.strip()))
