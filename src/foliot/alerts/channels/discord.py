"""Discord, by a webhook of a channel: one embed. Nobody can be mentioned by it."""

from __future__ import annotations

import re
from typing import Any

from foliot.alerts.channels.posting import Poster
from foliot.alerts.channels.texts import Texts, cut, texts_of
from foliot.alerts.message import AlertMessage
from foliot.model.alert_channel import DiscordChannel

MARKDOWN = re.compile(r"([\\*_~`|>#\[\]()<])")
COLOURS = {"critical": 0xC62828, "warning": 0xEF6C00, "info": 0x1565C0}
RESOLVED = 0x2E7D32
FIELD_MAX = 1024
DESCRIPTION_MAX = 4000
# Of all texts of an embed together Discord takes 6000 characters.
SUMMARY_MAX, LOG_MAX = 2000, 1500


class Discord:
    def __init__(self, channel: DiscordChannel, poster: Poster) -> None:
        self._channel = channel
        self._poster = poster

    async def send(self, message: AlertMessage, delivery_id: str) -> None:
        texts = texts_of(message, self._channel)
        embed = embed_of(texts) | {
            "color": RESOLVED if message.event == "resolved" else COLOURS[message.severity],
            "timestamp": (message.resolved_at or message.since).isoformat(),
        }
        document = {"username": "Foliot", "embeds": [embed], "allowed_mentions": {"parse": []}}
        url = self._channel.webhook_url
        await self._poster.post_json(url, document, secrets=(url,))


def embed_of(texts: Texts) -> dict[str, Any]:
    log = texts.log[-LOG_MAX:].replace("```", "`\u200b``")
    parts = [cut(_escaped(texts.summary), SUMMARY_MAX), f"```\n{log}\n```" if log else ""]
    embed: dict[str, Any] = {
        "title": cut(_escaped(texts.title), 256),
        "description": cut("\n".join(part for part in parts if part), DESCRIPTION_MAX),
        "fields": [
            {"name": name, "value": cut(_escaped(value), FIELD_MAX), "inline": len(value) < 40}
            for name, value in texts.facts
        ],
    }
    return embed | ({"url": texts.link} if texts.link else {})


def _escaped(text: str) -> str:
    return MARKDOWN.sub(r"\\\1", text)
