"""Secrets of channels: encrypted with the keys of `secret_key`, or referenced as `env:NAME` or `file:/path`.

A stored secret is AES-256-GCM. Its additional data are the channel and the field, so that nobody who can write to the
database can move it to a place where it would be shown or sent elsewhere. References are read where a message is sent;
only those that `secret_references` lists, since they read the environment and the files of the server.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from foliot.alerts.channels.base import ChannelError
from foliot.config import Config
from foliot.config.secret_rules import allowed_references, secret_keys
from foliot.config.secrets import secret_in
from foliot.errors import ConfigurationError, Invalid
from foliot.model.alert_channel import (
    HIDDEN,
    AlertChannel,
    StoredChannel,
    is_reference,
    same_destination,
    secrets_of,
    with_secrets,
)

NONCE_BYTES = 12
KEY_ID_BYTES = 4
FORM = "1"
"""The first part of what is stored: how it is encrypted."""
NO_EXTRA = "encrypting it needs the extra: pip install 'foliot[alerts]'; or use a reference such as env:NAME"


class Unsealable(Exception):
    """A stored secret can't be decrypted."""


class ChannelSecrets:
    def __init__(self, config: Config, environment: Mapping[str, str] | None = None) -> None:
        self._keys = {_id_of(key): key for key in secret_keys(config.secret_key)}
        self._allowed = allowed_references(config.secret_references)
        self._environment = os.environ if environment is None else environment

    def hidden(
        self, name: str, channel: AlertChannel, before: StoredChannel | None
    ) -> tuple[AlertChannel, dict[str, str]]:
        """The channel as it is stored, and its encrypted secrets. `***` keeps the secret of `before`, but not for
        another destination: its new owner could read it there. Raises `Invalid`."""
        shown, sealed = dict[str, str](), dict[str, str]()
        for field, value in secrets_of(channel):
            if value == HIDDEN:
                sealed[field] = _kept(field, channel, before)
            elif is_reference(value):
                self._check_reference(field, value)
            else:
                shown[field] = HIDDEN
                sealed[field] = self._seal(name, field, value)
        return with_secrets(channel, shown), sealed

    def revealed(self, stored: StoredChannel) -> AlertChannel:
        """The channel with its secrets, to send a message. Raises `ChannelError`. It may read a file."""
        found = dict[str, str]()
        for field, value in secrets_of(stored.channel):
            try:
                found[field] = self._look_up(field, value) if is_reference(value) else self._open(stored, field)
            except (Unsealable, ConfigurationError, Invalid) as error:
                raise ChannelError(f"{field}: {getattr(error, 'detail', error)}", permanent=False) from None
        return with_secrets(stored.channel, found)

    def sealed_again(self, stored: StoredChannel) -> dict[str, str] | None:
        """The secrets, encrypted with the first key. None if they are already. Raises `ChannelError`."""
        if not self._keys or all(_key_id(text) == next(iter(self._keys)) for text in stored.secrets.values()):
            return None
        try:
            return {field: self._seal(stored.name, field, self._open(stored, field)) for field in stored.secrets}
        except (Unsealable, Invalid) as error:
            raise ChannelError(str(error), permanent=False) from None

    def _seal(self, name: str, field: str, value: str) -> str:
        if not self._keys:
            raise Invalid(
                f"{field}: this server has no secret_key, so it can't store a secret; set one, or use a reference such "
                "as env:NAME",
                field=field,
            )
        if find_spec("cryptography") is None:
            raise Invalid(f"{field}: {NO_EXTRA}", field=field)
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key_id, key = next(iter(self._keys.items()))
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, value.encode(), _place(name, field))
        return f"{FORM}:{key_id}:{base64.b64encode(nonce + sealed).decode()}"

    def _open(self, stored: StoredChannel, field: str) -> str:
        text = stored.secrets.get(field, "")
        key = self._keys.get(_key_id(text))
        if key is None:
            raise Unsealable("secret_key has no longer the key that encrypted it; set the secret again")
        if find_spec("cryptography") is None:
            raise Unsealable("decrypting it needs the extra: pip install 'foliot[alerts]'")
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        raw = base64.b64decode(text.rpartition(":")[2])
        try:
            return AESGCM(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], _place(stored.name, field)).decode()
        except InvalidTag:
            raise Unsealable("the stored secret was changed in the database; set the secret again") from None

    def _check_reference(self, field: str, reference: str) -> None:
        if not self._is_allowed(reference):
            raise Invalid(
                f"{field}: {reference} is not among the secret_references of this server; "
                "an administrator can add it there",
                field=field,
            )

    def _is_allowed(self, reference: str) -> bool:
        if "/../" in reference or reference.endswith("/..") or str(PurePosixPath(reference)) != reference:
            return False
        return any(_covers(one, reference) for one in self._allowed)

    def _look_up(self, field: str, reference: str) -> str:
        self._check_reference(field, reference)
        kind, _, where = reference.partition(":")
        if kind == "file":
            return secret_in(str(Path(where)), reference)
        value = self._environment.get(where, "").strip()
        if not value:
            raise ConfigurationError(f"the environment variable {where} is not set where the message is sent")
        return value


def _kept(field: str, channel: AlertChannel, before: StoredChannel | None) -> str:
    if before is None or field not in before.secrets:
        raise Invalid(f"{field}: {HIDDEN} stands for a stored secret, and there is none; give the secret", field=field)
    if not same_destination(channel, before.channel):
        raise Invalid(f"{field}: give the secret again, because the destination has changed", field=field)
    return before.secrets[field]


def _covers(allowed: str, reference: str) -> bool:
    if not allowed.endswith("*"):
        return reference == allowed
    beginning = allowed.removesuffix("*")
    rest = reference.removeprefix(beginning)
    return reference.startswith(beginning) and rest != "" and "/" not in rest


def _place(name: str, field: str) -> bytes:
    return f"{name}\0{field}".encode()


def _id_of(key: bytes) -> str:
    return hashlib.sha256(b"foliot secret key" + key).hexdigest()[: 2 * KEY_ID_BYTES]


def _key_id(sealed: str) -> str:
    parts = sealed.split(":")
    return parts[1] if len(parts) == 3 and parts[0] == FORM else ""
