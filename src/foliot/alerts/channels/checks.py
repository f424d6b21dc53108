"""Checks before a channel is stored whether this installation may connect to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from foliot.alerts.channels.apprise import check_apprise
from foliot.alerts.channels.email import PORTS
from foliot.config import Config
from foliot.errors import Invalid
from foliot.model.alert_channel import (
    HIDDEN,
    AlertChannel,
    AppriseChannel,
    EmailChannel,
    PagerDutyChannel,
    SmsChannel,
    WebhookChannel,
    is_reference,
    secrets_of,
)
from foliot.outbound.addresses import AddressPolicy, AddressRefused, HostNotFound
from foliot.outbound.requests import url_of

LOOK_UP_SECONDS = 3.0


async def check_destination(channel: AlertChannel, config: Config, policy: AddressPolicy | None = None) -> None:
    """Raises `Invalid` for a private, loopback or metadata address, unless the settings allow it.

    A name that can't be resolved here is fine: the nodes that send may know it. They check it again each time.
    """
    if isinstance(channel, AppriseChannel):
        if not is_reference(channel.url) and channel.url != HIDDEN:
            await check_apprise(channel.url, config)
        return
    checked = policy or AddressPolicy(config)
    for field, host, port in _hosts(channel):
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                await checked.addresses_of(host, port)
        except AddressRefused as error:
            raise Invalid(f"{field}: {error}", field=field) from None
        except (HostNotFound, TimeoutError):
            continue


def _hosts(channel: AlertChannel) -> Iterator[tuple[str, str, int]]:
    """The fields that name a host, the hosts and their ports."""
    match channel:
        case EmailChannel():
            yield "host", channel.host, channel.port or PORTS[channel.security]
            return
        case WebhookChannel():
            urls = {"url": channel.url}
        case PagerDutyChannel() | SmsChannel():
            urls = {"api_url": channel.api_url}
        case _:
            urls = {field: url for field, url in secrets_of(channel) if not is_reference(url) and url != HIDDEN}
    for field, text in urls.items():
        try:
            url = url_of(text)
        except Invalid:
            # Not quoted: it may be a secret.
            raise Invalid(f"{field}: it can't be read as a URL", field=field) from None
        yield field, url.host, url.port or (443 if url.scheme == "https" else 80)
