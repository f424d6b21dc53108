"""Slack, by an incoming webhook.

The blocks have plain and rich text only, which Slack does not parse, so that nothing in a message can mention people or
forge a link.
"""

from __future__ import annotations

from typing import Any

from foliot.alerts.channels.posting import Poster
from foliot.alerts.channels.texts import Texts, cut, texts_of
from foliot.alerts.message import AlertMessage
from foliot.model.alert_channel import SlackChannel

HEADER_MAX, TEXT_MAX = 150, 2900


class Slack:
    def __init__(self, channel: SlackChannel, poster: Poster) -> None:
        self._channel = channel
        self._poster = poster

    async def send(self, message: AlertMessage, delivery_id: str) -> None:
        texts = texts_of(message, self._channel)
        document = {"text": _escaped(texts.title), "blocks": blocks_of(texts)}
        url = self._channel.webhook_url
        await self._poster.post_json(url, document, secrets=(url,))


def blocks_of(texts: Texts) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain(cut(texts.title, HEADER_MAX))}]
    if texts.summary:
        blocks.append({"type": "section", "text": _plain(cut(texts.summary, TEXT_MAX))})
    if texts.facts:
        blocks.append({"type": "section", "fields": [_plain(f"{name}: {value}") for name, value in texts.facts]})
    if texts.log:
        text = [{"type": "text", "text": texts.log}]
        blocks.append({"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": text}]})
    if texts.link:
        link = [{"type": "link", "url": texts.link, "text": "Open in Foliot"}]
        blocks.append({"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": link}]})
    return blocks


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _escaped(text: str) -> str:
    """Slack parses the text of notifications."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
