"""Text messages through Twilio. Other providers are reached through Apprise."""

from __future__ import annotations

import base64
from urllib.parse import urlencode

from foliot.alerts.channels.posting import Poster
from foliot.alerts.channels.texts import cut, texts_of
from foliot.alerts.message import AlertMessage
from foliot.model.alert_channel import SmsChannel

# Twilio takes 1600, but each 153 are billed as one message.
TEXT_MAX = 459


class Sms:
    def __init__(self, channel: SmsChannel, poster: Poster) -> None:
        self._channel = channel
        self._poster = poster

    async def send(self, message: AlertMessage, delivery_id: str) -> None:
        channel = self._channel
        texts = texts_of(message, channel)
        text = texts.summary if channel.body is not None else f"{texts.title}\n{texts.summary}"
        if texts.link and channel.body is None:
            text = f"{cut(text, max(TEXT_MAX - len(texts.link) - 1, 1))}\n{texts.link}"
        sender = "MessagingServiceSid" if channel.sender.startswith("MG") else "From"
        form = urlencode({"To": channel.to, sender: channel.sender, "Body": cut(text, TEXT_MAX)})
        user = channel.api_key_sid or channel.account_sid
        login = base64.b64encode(f"{user}:{channel.auth_token}".encode()).decode()
        headers = {"content-type": "application/x-www-form-urlencoded", "authorization": f"Basic {login}"}
        url = f"{channel.api_url.rstrip('/')}/2010-04-01/Accounts/{channel.account_sid}/Messages.json"
        await self._poster.post(url, form.encode(), headers, secrets=(channel.auth_token, login))
