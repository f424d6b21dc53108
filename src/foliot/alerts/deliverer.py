"""Sends the messages of alerts to their channels.

Every scheduler node takes part: a message is claimed for a time, and a node that dies loses its claim. Each channel
gets one message at a time, and at most thirty in a minute. A channel that fails is tried again with growing pauses,
for a day; one that hangs delays no other channel and no job. If a node dies after it has sent a message and before it
has noted that, the message is sent again under the same id, by which far ends recognize it.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from foliot.alert_events import AlertSent, AlertUndeliverable
from foliot.alerts.channels.base import Channel, ChannelError
from foliot.alerts.message import AlertMessage
from foliot.clock import Clock
from foliot.events import EventBus
from foliot.service import Service
from foliot.store.alert_deliveries import ClaimedDelivery
from foliot.store.store import Store

LOOK_SECONDS = 5.0
# Longer than any channel takes, Apprise's start included. Each has a time limit of its own.
SEND_SECONDS = 45.0
CLAIM_SECONDS = 60.0
TOGETHER = 8
PER_MINUTE = 30
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 2.0, 300.0
GIVE_UP_SECONDS = 86_400.0
ERROR_MAX = 500
decode_message = msgspec.json.Decoder(AlertMessage).decode


class Channels(Protocol):
    async def open(self, name: str) -> Channel:
        """The channel of a stored name. Raises `ChannelError`."""


class AlertDeliverer(Service):
    def __init__(self, *, store: Store, channels: Channels, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._deliveries = store.alert_deliveries
        self._channels = channels

    async def run_once(self) -> float:
        claimed = await self._deliveries.claim_deliveries(TOGETHER, CLAIM_SECONDS, PER_MINUTE)
        await asyncio.gather(*(self._deliver(one) for one in claimed))
        return 0.0 if claimed else LOOK_SECONDS

    async def _deliver(self, claimed: ClaimedDelivery) -> None:
        try:
            async with asyncio.timeout(SEND_SECONDS):
                channel = await self._channels.open(claimed.channel)
                await channel.send(decode_message(claimed.message), str(claimed.id))
        except ChannelError as error:
            await self._failed(claimed, error.message, is_permanent=error.permanent, retry_after=error.retry_after)
        except TimeoutError:
            await self._failed(claimed, f"no answer within {SEND_SECONDS:g} seconds")
        except Exception as error:
            await self._failed(claimed, f"{type(error).__name__}: {error}")
        else:
            await self._deliveries.finish_delivery(claimed, "sent")
            self.events.emit(AlertSent(claimed.channel))

    async def _failed(
        self, claimed: ClaimedDelivery, error: str, *, is_permanent: bool = False, retry_after: float | None = None
    ) -> None:
        why = error.replace("\0", "")[:ERROR_MAX]
        self.events.emit(AlertUndeliverable(claimed.channel, why, is_permanent))
        if is_permanent:
            await self._deliveries.finish_delivery(claimed, "failed", why)
            return
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(claimed.attempt - 1, 20), LAST_PAUSE_SECONDS)
        delay = pause if retry_after is None else min(max(retry_after, 1.0), GIVE_UP_SECONDS)
        await self._deliveries.postpone_delivery(claimed, why, delay, GIVE_UP_SECONDS)
