"""Stores the channels of alerts. Secrets arrive here encrypted."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from foliot.model.alert_channel import AlertChannel, StoredChannel
from foliot.model.namespace import Namespace, bare, namespace_of
from foliot.store import queries
from foliot.store.postgres import Database, Record

LIST_MAX = 1000
decode_channel: msgspec.json.Decoder[AlertChannel] = msgspec.json.Decoder(AlertChannel)
decode_secrets = msgspec.json.Decoder(dict[str, str]).decode


class AlertChannels:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("alert_channels")

    async def put_channel(
        self,
        name: str,
        channel: AlertChannel,
        secrets: Mapping[str, str],
        *,
        only: StoredChannel | None = None,
        is_new: bool = False,
    ) -> StoredChannel | None:
        """Creates or changes a channel. Returns None if it is not at the version of `only` any more, or, with `is_new`,
        if there is one."""
        row = await self._database.fetch_row(
            self._queries["put_channel"],
            name=name,
            channel=msgspec.json.encode(channel).decode(),
            secrets=msgspec.json.encode(secrets).decode(),
            now=self._database.clock.sql_now(),
            version=None if only is None else only.version,
            created_at=None if only is None else only.created_at,
            only_new=is_new,
            is_repeatable=only is None and not is_new,
        )
        return _stored(row) if row else None

    async def seal_channel_again(self, stored: StoredChannel, secrets: Mapping[str, str]) -> bool:
        """Returns False if the channel was changed meanwhile, and its secrets are new."""
        return bool(
            await self._database.fetch_value(
                self._queries["seal_channel_again"],
                name=stored.name,
                version=stored.version,
                created_at=stored.created_at,
                secrets=msgspec.json.encode(secrets).decode(),
            )
        )

    async def get_channel(self, name: str) -> StoredChannel | None:
        row = await self._database.fetch_row(self._queries["get_channel"], name=name)
        return _stored(row) if row else None

    async def list_channels(self, namespace: Namespace) -> list[StoredChannel]:
        rows = await self._database.fetch(self._queries["list_channels"], limit=LIST_MAX, namespace=namespace.name)
        return [_stored(row) for row in rows]

    async def delete_channel(self, name: str) -> bool:
        """Returns False if it is gone, or if a rule names it."""
        return bool(
            await self._database.fetch_value(
                self._queries["delete_channel"], name=name, namespace=namespace_of(name), bare_name=bare(name)
            )
        )


def _stored(row: Record) -> StoredChannel:
    return StoredChannel(
        row["name"], row["version"], row["created_at"], row["updated_at"], decode_channel.decode(row["channel"]),
        decode_secrets(row["secrets"]),
    )  # fmt: skip
