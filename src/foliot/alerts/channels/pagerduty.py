"""PagerDuty, by its Events API v2. All events about one alert have its id as dedup key, so that retries and repeats
update the same incident, and the resolution closes it."""

from __future__ import annotations

from typing import Any

from foliot.alerts.channels.posting import Poster
from foliot.alerts.channels.texts import Texts, cut, texts_of
from foliot.alerts.message import AlertMessage
from foliot.model.alert_channel import PagerDutyChannel

ACTIONS = {
    "opened": "trigger",
    "repeated": "trigger",
    "acknowledged": "acknowledge",
    "resolved": "resolve",
    "test": "trigger",
}
PATH = "/v2/enqueue"
SUMMARY_MAX = 1024


class PagerDuty:
    def __init__(self, channel: PagerDutyChannel, poster: Poster) -> None:
        self._channel = channel
        self._poster = poster

    async def send(self, message: AlertMessage, delivery_id: str) -> None:
        action = ACTIONS[message.event]
        await self._enqueue(action, message)
        if message.event == "test":
            # A test must not leave an incident open.
            await self._enqueue("resolve", message)

    async def _enqueue(self, action: str, message: AlertMessage) -> None:
        key = self._channel.routing_key
        event: dict[str, Any] = {"routing_key": key, "event_action": action, "dedup_key": message.alert_id}
        if action == "trigger":
            texts = texts_of(message, self._channel)
            event |= {"payload": payload_of(message, texts), "client": "Foliot"}
            if texts.link:
                event |= {"client_url": texts.link, "links": [{"href": texts.link, "text": "Open in Foliot"}]}
        url = self._channel.api_url.rstrip("/") + PATH
        await self._poster.post_json(url, event, secrets=(key,))


def payload_of(message: AlertMessage, texts: Texts) -> dict[str, Any]:
    details = {"summary": texts.summary, **dict(texts.facts)} | ({"log": texts.log} if texts.log else {})
    return {
        "summary": cut(texts.title, SUMMARY_MAX),
        "source": message.namespace,
        "severity": message.severity,
        "timestamp": message.since.isoformat(),
        "component": "Foliot",
        "group": message.namespace,
        "class": message.rule,
        "custom_details": details,
    }
