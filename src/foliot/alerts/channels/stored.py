"""Opens stored channels, with their secrets."""

from __future__ import annotations

import asyncio

from foliot.alerts.channels.base import Channel, ChannelError
from foliot.alerts.secrets import ChannelSecrets
from foliot.clock import Clock
from foliot.config import Config
from foliot.model.alert_channel import StoredChannel
from foliot.model.namespace import bare
from foliot.outbound.addresses import AddressPolicy
from foliot.store.store import Store


class StoredChannels:
    def __init__(self, *, store: Store, config: Config, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        self._policy = AddressPolicy(config)
        self.secrets = ChannelSecrets(config)

    async def open(self, name: str) -> Channel:
        """The channel of a qualified name. Raises `ChannelError`."""
        stored = await self._store.alert_channels.get_channel(name)
        if stored is None:
            raise ChannelError(f"there is no channel {bare(name)!r}", permanent=True)
        return await self.opened(stored)

    async def opened(self, stored: StoredChannel) -> Channel:
        """Raises `ChannelError`."""
        # Imported here, since most schedulers have no channel, and need no HTTP client.
        from foliot.alerts.channels.kinds import channel_of

        # In a thread, because a secret may be in a file.
        channel = await asyncio.to_thread(self.secrets.revealed, stored)
        return channel_of(channel, config=self._config, clock=self._clock, policy=self._policy)
