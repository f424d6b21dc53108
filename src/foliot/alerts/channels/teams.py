"""Microsoft Teams, by a webhook of its Workflows app: an Adaptive Card.

Texts are runs of rich text, in which Teams reads no Markdown.
"""

from __future__ import annotations

from typing import Any

from foliot.alerts.channels.posting import Poster
from foliot.alerts.channels.texts import Texts, texts_of
from foliot.alerts.message import AlertMessage
from foliot.model.alert_channel import TeamsChannel

COLOURS = {"critical": "attention", "warning": "warning", "info": "accent"}


class Teams:
    def __init__(self, channel: TeamsChannel, poster: Poster) -> None:
        self._channel = channel
        self._poster = poster

    async def send(self, message: AlertMessage, delivery_id: str) -> None:
        texts = texts_of(message, self._channel)
        colour = "good" if message.event == "resolved" else COLOURS[message.severity]
        attachment = {
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": None,
            "content": card_of(texts, colour),
        }
        url = self._channel.webhook_url
        await self._poster.post_json(url, {"type": "message", "attachments": [attachment]}, secrets=(url,))


def card_of(texts: Texts, colour: str) -> dict[str, Any]:
    body = [_text(texts.title, weight="bolder", size="large", color=colour)]
    if texts.summary:
        body.append(_text(texts.summary))
    body += [_text(f"{name}: {value}") for name, value in texts.facts]
    if texts.log:
        body.append(_text(texts.log, fontType="monospace"))
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "msteams": {"width": "Full"},
    }
    if texts.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open in Foliot", "url": texts.link}]
    return card


def _text(text: str, **style: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}
