"""Makes the channel of each kind, from a configuration whose secrets are revealed."""

from __future__ import annotations

from typing import assert_never

from foliot.alerts.channels.apprise import Apprise
from foliot.alerts.channels.base import Channel
from foliot.alerts.channels.discord import Discord
from foliot.alerts.channels.email import Email
from foliot.alerts.channels.pagerduty import PagerDuty
from foliot.alerts.channels.posting import Poster
from foliot.alerts.channels.slack import Slack
from foliot.alerts.channels.sms import Sms
from foliot.alerts.channels.teams import Teams
from foliot.alerts.channels.webhook import Webhook
from foliot.clock import Clock
from foliot.config import Config
from foliot.model.alert_channel import (
    AlertChannel,
    AppriseChannel,
    DiscordChannel,
    EmailChannel,
    PagerDutyChannel,
    SlackChannel,
    SmsChannel,
    TeamsChannel,
    WebhookChannel,
)
from foliot.outbound.addresses import AddressPolicy


def channel_of(channel: AlertChannel, *, config: Config, clock: Clock, policy: AddressPolicy | None = None) -> Channel:
    poster = Poster(config, clock, policy)
    match channel:
        case EmailChannel():
            return Email(channel, config, clock, poster.policy)
        case PagerDutyChannel():
            return PagerDuty(channel, poster)
        case SlackChannel():
            return Slack(channel, poster)
        case TeamsChannel():
            return Teams(channel, poster)
        case DiscordChannel():
            return Discord(channel, poster)
        case SmsChannel():
            return Sms(channel, poster)
        case WebhookChannel():
            return Webhook(channel, poster)
        case AppriseChannel():
            return Apprise(channel, config)
        case _:
            assert_never(channel)
