"""Channels that post to a vendor: the documented format, refusals, and far ends that hang, die or lie."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import logging
import subprocess
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foliot.alerts.channels.base import ChannelError
from foliot.alerts.channels.kinds import channel_of
from foliot.alerts.message import AlertMessage
from foliot.config import Config
from foliot.model.alert_channel import (
    AlertChannel,
    DiscordChannel,
    PagerDutyChannel,
    SlackChannel,
    SmsChannel,
    TeamsChannel,
    WebhookChannel,
)
from foliot.outbound.addresses import AddressPolicy
from tests.support.alert_messages import HOSTILE, MESSAGE, RESOLVED, message
from tests.support.alert_vendors import check_discord, check_pagerduty, check_slack, check_teams, check_twilio
from tests.support.certificates import Authority
from tests.support.debian import require
from tests.support.fake_clock import FakeClock
from tests.support.http import Answering, Asked, answer, answering

PRIVATE = Config(http_allow_private=True, alert_timeout_seconds=15)
HASTY = Config(http_allow_private=True, alert_timeout_seconds=0.5)
KEY = "0123456789abcdef0123456789abcdef"
SID = "AC" + "0" * 32
SIGNING = "whsec_" + base64.b64encode(b"k" * 32).decode()
PATH = "/services/T00/B00/sEcReT"


@pytest.fixture
async def server() -> AsyncIterator[Answering]:
    async with answering() as found:
        yield found


async def send(
    channel: AlertChannel,
    sent: AlertMessage = MESSAGE,
    *,
    config: Config = PRIVATE,
    policy: AddressPolicy | None = None,
) -> None:
    clock = FakeClock()
    await channel_of(channel, config=config, clock=clock, policy=policy).send(sent, "delivery-1")


async def failure(channel: AlertChannel, **how: Any) -> ChannelError:
    with pytest.raises(ChannelError) as raised:
        await send(channel, **how)
    return raised.value


@pytest.mark.parametrize(
    ("kind", "check"), [(SlackChannel, check_slack), (TeamsChannel, check_teams), (DiscordChannel, check_discord)]
)
@pytest.mark.parametrize("sent", [MESSAGE, RESOLVED, HOSTILE, message(log_tail="", link="", subjects=(), event="test")])
async def test_chat_messages_have_the_format_of_their_vendor(
    server: Answering, kind: Callable[..., AlertChannel], check: Callable[[Asked], dict[str, Any]], sent: AlertMessage
) -> None:
    server.answers[PATH] = answer("200 OK", b"ok")
    await send(kind(webhook_url=server.url + PATH), sent)
    (asked,) = server.asked
    text = json.dumps(check(asked), ensure_ascii=False)
    assert "nightly-failed" in text
    assert "2026-03-01 11:55:00 UTC" in text
    assert "javascript:" not in text
    assert ("the last line" in text) is (sent is HOSTILE)
    assert ("Resolved: Job nightly failed" in text) is (sent is RESOLVED)


async def test_slack_and_discord_can_mention_nobody(server: Answering) -> None:
    server.answers[PATH] = answer()
    await send(SlackChannel(webhook_url=server.url + PATH), HOSTILE)
    await send(DiscordChannel(webhook_url=server.url + PATH), HOSTILE)
    slack, discord = check_slack(server.asked[0]), check_discord(server.asked[1])
    assert "<!channel>" not in slack["text"]
    assert "&lt;!channel&gt;" in slack["text"]
    assert r"\[click\]\(https:" in discord["description"]
    # The output can't end the block of code that it stands in.
    assert discord["description"].count("```") == 2


async def test_pagerduty_gets_one_incident_for_an_alert_and_resolves_it(server: Answering) -> None:
    server.answers["/v2/enqueue"] = answer("202 Accepted", b'{"status":"success"}')
    channel = PagerDutyChannel(routing_key=KEY, api_url=server.url)
    for sent in (MESSAGE, message(event="repeated"), RESOLVED, HOSTILE):
        await send(channel, sent)
    events = [check_pagerduty(asked) for asked in server.asked]
    assert [event["event_action"] for event in events] == ["trigger", "trigger", "resolve", "trigger"]
    assert {event["dedup_key"] for event in events} == {MESSAGE.alert_id}
    opened = events[0]
    assert opened["payload"]["summary"] == "[critical] Job nightly failed"
    assert opened["payload"]["severity"] == "critical"
    assert opened["payload"]["custom_details"]["log"].endswith("connection refused")
    assert opened["links"] == [{"href": MESSAGE.link, "text": "Open in Foliot"}]
    assert "payload" not in events[2]


async def test_a_test_of_pagerduty_leaves_no_incident_open(server: Answering) -> None:
    server.answers["/v2/enqueue"] = answer("202 Accepted")
    await send(PagerDutyChannel(routing_key=KEY, api_url=server.url), message(event="test"))
    assert [check_pagerduty(asked)["event_action"] for asked in server.asked] == ["trigger", "resolve"]


async def test_a_text_message_goes_through_twilio(server: Answering) -> None:
    server.answers[f"/2010-04-01/Accounts/{SID}/Messages.json"] = answer("201 Created", b'{"sid":"SM1"}')
    channel = SmsChannel(
        account_sid=SID, auth_token="token", sender="+4930123456", to="+14155552671", api_url=server.url
    )
    await send(channel)
    await send(
        SmsChannel(account_sid=SID, auth_token="t", sender="MG" + "1" * 32, to="+14155552671", api_url=server.url),
        HOSTILE,
    )
    form = check_twilio(server.asked[0], SID)
    assert form["Body"].startswith("[critical] Job nightly failed\nThe job nightly failed for good")
    assert form["Body"].endswith(MESSAGE.link)
    assert (form["To"], form["From"]) == ("+14155552671", "+4930123456")
    login = base64.b64decode(server.asked[0].headers["authorization"].removeprefix("Basic "))
    assert login == f"{SID}:token".encode()
    assert len(check_twilio(server.asked[1], SID)["Body"]) <= 459


async def test_a_webhook_is_signed_and_keeps_its_id_at_every_try(server: Answering) -> None:
    server.answers["/hook"] = answer("204 No Content")
    channel = WebhookChannel(url=f"{server.url}/hook", signing_secret=SIGNING, authorization="Bearer t")
    await send(channel)
    await send(channel)
    asked = server.asked[0]
    assert {one.headers["webhook-id"] for one in server.asked} == {"delivery-1"}
    at = asked.headers["webhook-timestamp"]
    assert int(at) == int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp())
    assert asked.headers["authorization"] == "Bearer t"
    # Worked out by `openssl dgst`, not by the code under test.
    assert asked.headers["webhook-signature"] == "v1," + openssl_hmac(f"delivery-1.{at}.".encode() + asked.body)
    document = json.loads(asked.body)
    assert document["type"] == "alert.opened"
    assert document["data"]["subjects"] == ["nightly", "report"]
    assert document["data"]["since"] == "2026-03-01T11:55:00Z"
    assert document["data"]["text"].count("pg_dump: error: connection refused") == 1


def openssl_hmac(signed: bytes) -> str:
    key = f"hexkey:{b'k'.hex() * 32}"
    command = [require("openssl", "openssl"), "dgst", "-sha256", "-mac", "HMAC", "-macopt", key, "-binary"]
    made = subprocess.run(command, input=signed, capture_output=True, check=True)
    return base64.b64encode(made.stdout).decode()


async def test_own_templates_replace_the_texts(server: Answering) -> None:
    server.answers[PATH] = answer()
    channel = SlackChannel(
        webhook_url=server.url + PATH,
        title="{{ severity }}: {{ rule }}\nsecond line",
        body='{{ since | format "%H:%M" }} {{ subjects }} {{ resolved_at | default "still open" }}',
    )
    await send(channel)
    document = check_slack(server.asked[0])
    assert document["text"] == "critical: nightly-failed second line"
    assert document["blocks"][1]["text"]["text"] == "11:55 nightly, report and 1 more still open"


@pytest.mark.parametrize(
    ("status", "is_permanent"),
    [
        ("400 Bad Request", True), ("401 Unauthorized", True), ("403 Forbidden", True), ("404 Not Found", True),
        ("410 Gone", True), ("302 Found", True), ("408 Request Timeout", False), ("429 Too Many Requests", False),
        ("500 Internal Server Error", False), ("503 Service Unavailable", False),
    ],
)  # fmt: skip
async def test_the_status_decides_whether_another_try_makes_sense(
    server: Answering, status: str, is_permanent: bool
) -> None:
    server.answers[PATH] = answer(status, b"no_service", Retry_After="7", Location="/elsewhere")
    server.answers["/elsewhere"] = answer()
    error = await failure(SlackChannel(webhook_url=server.url + PATH))
    assert error.permanent is is_permanent
    assert error.retry_after == (None if is_permanent else 7)
    assert status[:3] in error.message
    # A redirect is not followed.
    assert [asked.path for asked in server.asked] == [PATH]


async def test_no_error_and_no_log_line_contains_a_secret(server: Answering, caplog: pytest.LogCaptureFixture) -> None:
    url = server.url + PATH
    server.answers[PATH] = answer("400 Bad Request", f"no webhook {url} here, token tOkEn".encode())
    twilio = f"/2010-04-01/Accounts/{SID}/Messages.json"
    server.answers[twilio] = answer("401 Unauthorized", b"tOkEn is wrong")
    errors = []
    with caplog.at_level(logging.DEBUG):
        errors.append(await failure(SlackChannel(webhook_url=url)))
        errors.append(await failure(SlackChannel(webhook_url="https://127.0.0.1:1/services/sEcReT")))
        errors.append(await failure(TeamsChannel(webhook_url="https:///sEcReT")))
        sms = SmsChannel(account_sid=SID, auth_token="tOkEn", sender="+491234567", to="+491234567", api_url=server.url)
        errors.append(await failure(sms))
    for error in errors:
        assert "sEcReT" not in error.message
    assert "tOkEn" not in errors[-1].message
    assert "sEcReT" not in caplog.text
    assert "tOkEn" not in caplog.text


async def test_a_far_end_that_hangs_is_given_up(server: Answering) -> None:
    server.answers["/hang"] = b"HTTP/1.1 200 OK\r\n"
    error = await failure(SlackChannel(webhook_url=f"{server.url}/hang"), config=HASTY)
    assert (error.message, error.permanent) == ("127.0.0.1 gave no complete answer within 0.5 s", False)


async def test_only_the_beginning_of_an_endless_answer_is_read(server: Answering) -> None:
    server.answers[PATH] = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    server.endless.add(PATH)
    error = await failure(SlackChannel(webhook_url=server.url + PATH))
    assert error.permanent
    assert len(error.message) < 500
    # The event loop closes unfinished generators in tasks of its own.
    gc.collect()
    await asyncio.sleep(0.01)


@pytest.mark.parametrize("said", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx"])
async def test_an_answer_that_is_not_http_fails_for_now(server: Answering, said: bytes) -> None:
    server.answers[PATH] = said
    assert not (await failure(SlackChannel(webhook_url=server.url + PATH))).permanent


async def test_a_far_end_that_is_down_fails_for_now() -> None:
    async with answering() as gone:
        url = gone.url
    assert not (await failure(SlackChannel(webhook_url=url))).permanent


@pytest.mark.parametrize("host", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "[::1]", "2130706433"])
async def test_an_address_that_is_not_public_is_refused_when_it_is_used(host: str) -> None:
    error = await failure(SlackChannel(webhook_url=f"http://{host}/x"), config=Config())
    assert error.permanent
    assert "not public" in error.message


async def test_a_name_that_turns_private_later_is_refused(server: Answering) -> None:
    """DNS rebinding: the name is resolved once for each request, and the request goes to the checked address."""
    answers = [["93.184.215.14"], ["127.0.0.1"]]

    async def rebinding(host: str, port: int) -> list[str]:
        return answers.pop(0)

    policy = AddressPolicy(Config(), rebinding)
    assert await policy.addresses_of("hooks.example.org", server.port) == ["93.184.215.14"]
    error = await failure(SlackChannel(webhook_url=f"http://hooks.example.org:{server.port}{PATH}"), policy=policy)
    assert "not public" in error.message
    assert server.asked == []


async def test_tls_verifies_the_name_of_the_host(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    trusting = Config(http_allow_private=True, http_ca_file=str(authority.certificate))
    async with answering(authority.server("DNS:localhost")) as server:
        server.answers[PATH] = answer()
        await send(SlackChannel(webhook_url=f"https://localhost:{server.port}{PATH}"), config=trusting)
        error = await failure(SlackChannel(webhook_url=f"https://127.0.0.1:{server.port}{PATH}"), config=trusting)
        assert "certificate" in error.message.lower()
        await failure(SlackChannel(webhook_url=f"https://localhost:{server.port}{PATH}"))
    assert len(server.asked) == 1
