"""Apprise in a process of its own: what it may reach, and how a hung one ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foliot.alerts.channels.apprise import check_apprise
from foliot.alerts.channels.base import ChannelError
from foliot.alerts.channels.kinds import channel_of
from foliot.config import Config
from foliot.errors import Invalid
from foliot.model.alert_channel import AppriseChannel
from tests.support.alert_messages import MESSAGE
from tests.support.fake_clock import FakeClock
from tests.support.http import answer, answering

PUBLIC = Config(alert_timeout_seconds=15)
ALLOWED = Config(http_allow_hosts="localhost", alert_timeout_seconds=15)


async def send(url: str, config: Config) -> None:
    await channel_of(AppriseChannel(url=url), config=config, clock=FakeClock()).send(MESSAGE, "delivery-1")


async def test_a_message_goes_through_apprise() -> None:
    async with answering() as server:
        server.answers["/hook"] = answer()
        await send(f"json://localhost:{server.port}/hook", ALLOWED)
    document = json.loads(server.asked[0].body)
    assert document["title"] == "[critical] Job nightly failed"
    assert document["type"] == "failure"
    assert "pg_dump: error: connection refused" in document["message"]


async def test_redirects_and_failures_are_errors() -> None:
    async with answering() as server:
        server.answers["/moved"] = answer("302 Found", Location=f"http://localhost:{server.port}/hook")
        server.answers["/hook"] = answer()
        for path in ("moved", "missing"):
            with pytest.raises(ChannelError) as raised:
                await send(f"json://localhost:{server.port}/{path}", ALLOWED)
            assert not raised.value.permanent
    assert [asked.path for asked in server.asked] == ["/moved", "/missing"]


async def test_an_address_that_is_not_public_is_refused_when_it_is_used() -> None:
    async with answering() as server:
        for host in ("localhost", "127.0.0.1"):
            with pytest.raises(ChannelError, match="not a public address") as raised:
                await send(f"json://{host}:{server.port}/hook", PUBLIC)
            assert raised.value.permanent
    assert server.asked == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nonsense", "does not understand"),
        ("json://127.0.0.1/x", "not a public address"),
        ("rsyslog://169.254.169.254", "not a public address"),
        ("syslog://", "only on one machine"),
    ],
)
async def test_a_url_is_checked_when_the_channel_is_made(url: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as raised:
        await check_apprise(url, PUBLIC)
    assert raised.value.field == "url"
    assert url not in raised.value.detail


async def test_a_url_of_a_known_service_is_fine() -> None:
    await check_apprise("ntfy://some-topic", PUBLIC)


async def test_no_file_of_the_machine_is_read(tmp_path: Path) -> None:
    """Some services take a template from a file, which would be sent."""
    template = tmp_path / "template.json"
    template.write_text('{"type": "message", "text": "sEcReT"}')
    async with answering() as server:
        url = f"workflows://localhost:{server.port}/workflow/signature?template={template}"
        with pytest.raises(ChannelError):
            await send(url, ALLOWED)
    assert all(b"sEcReT" not in asked.body for asked in server.asked)


async def test_a_far_end_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliot.alerts.channels.apprise.START_SECONDS", 4.0)
    async with answering() as server:
        server.answers["/hang"] = b"HTTP/1.1 200 OK\r\n"
        config = Config(http_allow_hosts="localhost", alert_timeout_seconds=1)
        with pytest.raises(ChannelError) as raised:
            await send(f"json://localhost:{server.port}/hang?rto=300", config)
    assert not raised.value.permanent


async def test_the_time_that_apprise_takes_to_start_is_not_that_of_the_far_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that has arrived would be sent again if its process were ended before it says so."""
    monkeypatch.setattr("foliot.alerts.channels.apprise.END_SECONDS", 30.0)
    async with answering() as server:
        server.answers["/hook"] = answer()
        # Apprise takes longer than that to start.
        await send(
            f"json://localhost:{server.port}/hook", Config(http_allow_hosts="localhost", alert_timeout_seconds=0.3)
        )
    assert len(server.asked) == 1


async def test_an_apprise_that_does_not_start_in_time_has_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliot.alerts.channels.apprise.START_SECONDS", 0.05)
    async with answering() as server:
        server.answers["/hook"] = answer()
        with pytest.raises(ChannelError) as raised:
            await send(f"json://localhost:{server.port}/hook", ALLOWED)
    assert not raised.value.permanent
    assert server.asked == []
