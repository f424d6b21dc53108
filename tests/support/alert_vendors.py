"""Checks requests against the documentation of each vendor. A function raises an AssertionError for a request that the
vendor would refuse."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

from tests.support.http import Asked


def json_of(asked: Asked) -> dict[str, Any]:
    assert asked.method == "POST"
    assert asked.headers["content-type"] == "application/json"
    found: dict[str, Any] = json.loads(asked.body)
    return found


def check_slack(asked: Asked) -> dict[str, Any]:
    """Incoming webhooks and Block Kit: 50 blocks, headers of 150 characters, texts of 3000, and 10 fields of 2000."""
    document = json_of(asked)
    assert document.keys() == {"text", "blocks"}
    assert 0 < len(document["text"]) <= 40_000
    assert 0 < len(document["blocks"]) <= 50
    for block in document["blocks"]:
        match block["type"]:
            case "header":
                _slack_text(block["text"], 150)
            case "section":
                assert ("text" in block) != ("fields" in block)
                _slack_text(block.get("text", {"type": "plain_text", "text": "-"}), 3000)
                assert len(block.get("fields", [])) <= 10
                for field in block.get("fields", []):
                    _slack_text(field, 2000)
            case "rich_text":
                for element in block["elements"]:
                    assert element["type"] in ("rich_text_section", "rich_text_preformatted")
                    for part in element["elements"]:
                        assert part["type"] in ("text", "link")
                        assert part["text"]
                        assert part["type"] == "text" or part["url"].startswith("https://")
            case other:
                raise AssertionError(other)
    return document


def _slack_text(text: dict[str, Any], most: int) -> None:
    assert text["type"] == "plain_text"
    assert 0 < len(text["text"]) <= most


def check_teams(asked: Asked) -> dict[str, Any]:
    """A message with one Adaptive Card, in at most 28 KB."""
    document = json_of(asked)
    assert len(asked.body) <= 28_000
    assert document["type"] == "message"
    (attachment,) = document["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card: dict[str, Any] = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    for block in card["body"]:
        assert block["type"] == "RichTextBlock"
        for run in block["inlines"]:
            assert run["type"] == "TextRun"
            assert run["text"]
            assert run.get("color", "good") in ("attention", "warning", "accent", "good")
    for action in card.get("actions", []):
        assert action["type"] == "Action.OpenUrl"
        assert action["url"].startswith("https://")
    return card


def check_discord(asked: Asked) -> dict[str, Any]:
    """Execute Webhook: a title of 256 characters, a description of 4096, 25 fields of 1024, all together 6000."""
    document = json_of(asked)
    assert document["allowed_mentions"] == {"parse": []}
    (embed,) = document["embeds"]
    fields = embed.get("fields", [])
    assert len(fields) <= 25
    assert 0 < len(embed["title"]) <= 256
    assert len(embed["description"]) <= 4096
    for field in fields:
        assert 0 < len(field["name"]) <= 256
        assert 0 < len(field["value"]) <= 1024
    texts = [embed["title"], embed["description"], *(one["name"] + one["value"] for one in fields)]
    assert sum(map(len, texts)) <= 6000
    assert 0 <= embed["color"] <= 0xFFFFFF
    assert datetime.fromisoformat(embed["timestamp"]).tzinfo is not None
    assert embed.get("url", "https://").startswith("https://")
    checked: dict[str, Any] = embed
    return checked


def check_pagerduty(asked: Asked) -> dict[str, Any]:
    """Events API v2."""
    event = json_of(asked)
    assert asked.path == "/v2/enqueue"
    assert len(event["routing_key"]) == 32
    assert event["event_action"] in ("trigger", "acknowledge", "resolve")
    assert 0 < len(event["dedup_key"]) <= 255
    assert len(asked.body) <= 512_000
    if event["event_action"] == "trigger":
        payload = event["payload"]
        assert 0 < len(payload["summary"]) <= 1024
        assert payload["severity"] in ("critical", "error", "warning", "info")
        assert payload["source"]
        assert datetime.fromisoformat(payload["timestamp"]).tzinfo is not None
        assert isinstance(payload["custom_details"], dict)
        for link in event.get("links", []):
            assert link["href"].startswith("https://")
    return event


def check_twilio(asked: Asked, sid: str) -> dict[str, str]:
    """The resource Messages of the API 2010-04-01: a form of at most 1600 characters of text."""
    assert asked.method == "POST"
    assert asked.path == f"/2010-04-01/Accounts/{sid}/Messages.json"
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert re.fullmatch(r"Basic [A-Za-z0-9+/=]+", asked.headers["authorization"])
    form = {name: value for name, (value,) in parse_qs(asked.body.decode(), strict_parsing=True).items()}
    assert form.keys() in ({"To", "From", "Body"}, {"To", "MessagingServiceSid", "Body"})
    assert 0 < len(form["Body"]) <= 1600
    return form
