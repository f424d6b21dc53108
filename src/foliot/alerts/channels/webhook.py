"""Your own webhook: a JSON document, signed with HMAC-SHA256 as Standard Webhooks defines it.

The signature covers the id of the delivery, the time of this try and the body. The id stays the same at every try, so
the receiver can drop repetitions by it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import msgspec

from foliot.alerts.channels.base import ChannelError
from foliot.alerts.channels.posting import Poster
from foliot.alerts.channels.texts import texts_of
from foliot.alerts.message import AlertMessage
from foliot.model.alert_channel import WebhookChannel, signing_key


class Webhook:
    def __init__(self, channel: WebhookChannel, poster: Poster) -> None:
        self._channel = channel
        self._poster = poster

    async def send(self, message: AlertMessage, delivery_id: str) -> None:
        channel = self._channel
        body = msgspec.json.encode(document_of(message, channel))
        at = str(int(self._poster.clock.now().timestamp()))
        try:
            signature = signature_of(channel.signing_secret, delivery_id, at, body)
        except ValueError as error:
            raise ChannelError(f"signing_secret: {error}", permanent=True) from None
        headers = {
            "content-type": "application/json",
            "webhook-id": delivery_id,
            "webhook-timestamp": at,
            "webhook-signature": signature,
        }
        if channel.authorization is not None:
            headers["authorization"] = channel.authorization
        secrets = (channel.signing_secret, channel.authorization or channel.signing_secret)
        await self._poster.post(channel.url, body, headers, secrets=secrets)


def document_of(message: AlertMessage, channel: WebhookChannel) -> dict[str, Any]:
    texts = texts_of(message, channel)
    return {
        "type": f"alert.{message.event}",
        "timestamp": message.resolved_at or message.since,
        "data": {
            "alert_id": message.alert_id,
            "severity": message.severity,
            "namespace": message.namespace,
            "rule": message.rule,
            "title": texts.title,
            "text": texts.body,
            "summary": message.summary,
            "since": message.since,
            "resolved_at": message.resolved_at,
            "count": message.count,
            "subjects": message.subjects,
            "log_tail": message.log_tail,
            "link": message.link or None,
        },
    }


def signature_of(secret: str, delivery_id: str, at: str, body: bytes) -> str:
    """Raises `ValueError` for a secret that is not in the form of Standard Webhooks."""
    signed = f"{delivery_id}.{at}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(signing_key(secret), signed, hashlib.sha256)).decode()
