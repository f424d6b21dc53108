"""Email against a real SMTP server with TLS and logins, and against servers that hang, die or never end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from foliot.alerts.channels import email
from foliot.alerts.channels.base import ChannelError
from foliot.alerts.channels.kinds import channel_of
from foliot.alerts.message import AlertMessage
from foliot.config import Config
from foliot.model.alert_channel import EmailChannel
from foliot.outbound.addresses import AddressPolicy
from tests.support.alert_messages import HOSTILE, MESSAGE, RESOLVED
from tests.support.certificates import Authority
from tests.support.fake_clock import FakeClock
from tests.support.smtp import PASSWORD, USER, misbehaving, smtp_server

PRIVATE = Config(http_allow_private=True, alert_timeout_seconds=15)
HASTY = Config(http_allow_private=True, alert_timeout_seconds=0.5)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def trusting(authority: Authority) -> Config:
    return Config(http_allow_private=True, http_ca_file=str(authority.certificate), alert_timeout_seconds=15)


def channel(port: int, **fields: Any) -> EmailChannel:
    given: dict[str, Any] = {"host": "localhost", "security": "none", "to": ("ops@example.org",)} | fields
    return EmailChannel(port=port, sender="foliot@example.org", **given)


async def send(
    to: EmailChannel, sent: AlertMessage = MESSAGE, *, config: Config = PRIVATE, policy: AddressPolicy | None = None
) -> None:
    await channel_of(to, config=config, clock=FakeClock(), policy=policy).send(sent, "delivery-1")


async def failure(to: EmailChannel, **how: Any) -> ChannelError:
    with pytest.raises(ChannelError) as raised:
        await send(to, **how)
    return raised.value


async def test_a_mail_says_what_since_when_and_why() -> None:
    async with smtp_server() as mailbox:
        to = channel(mailbox.port, to=("ops@example.org", "Anna.Muster@example.org"))
        await send(to)
        await send(to, RESOLVED)
    opened, resolved = mailbox.mails
    assert opened["subject"] == "[critical] Job nightly failed"
    assert (opened["from"], opened["to"]) == ("foliot@example.org", "ops@example.org, Anna.Muster@example.org")
    assert opened["date"] == "Sun, 01 Mar 2026 12:00:00 +0000"
    assert opened["message-id"] == "<delivery-1@foliot>"
    assert opened["auto-submitted"] == "auto-generated"
    # Mail programs show the messages of one alert together.
    assert opened["references"] == resolved["references"]
    text = opened.get_content().replace("\r\n", "\n")
    for expected in (
        MESSAGE.summary, "Since: 2026-03-01 11:55:00 UTC", "About: nightly, report and 1 more", "Rule: nightly-failed",
        "Last lines of the log:\nline one\npg_dump: error: connection refused", MESSAGE.link,
    ):  # fmt: skip
        assert expected in text
    assert resolved["subject"] == "[critical] Resolved: Job nightly failed"
    assert "Resolved: 2026-03-01 11:59:00 UTC" in resolved.get_content()
    assert mailbox.recipients == [["ops@example.org", "Anna.Muster@example.org"]] * 2


async def test_nothing_in_a_message_becomes_a_header() -> None:
    async with smtp_server() as mailbox:
        await send(channel(mailbox.port), HOSTILE)
    (mail,) = mailbox.mails
    assert mail["bcc"] is None
    assert mail["subject"].startswith("[critical] a Bcc: eve@example.org")
    assert mailbox.recipients == [["ops@example.org"]]
    assert "javascript:" not in mail.get_content()
    assert len(mail.get_content()) < 10_000


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_mail_is_encrypted_and_the_login_is_used(security: str, authority: Authority) -> None:
    context = authority.server("DNS:localhost")
    contexts: dict[str, Any] = {security: context}
    async with smtp_server(**contexts, requires_login=True) as mailbox:
        to = channel(mailbox.port, security=security, username=USER, password=PASSWORD)
        await send(to, config=trusting(authority))
        wrong = channel(mailbox.port, security=security, username=USER, password="wRoNg")
        error = await failure(wrong, config=trusting(authority))
        anonymous = await failure(channel(mailbox.port, security=security), config=trusting(authority))
    assert mailbox.is_encrypted == [True]
    assert mailbox.logins[0] in ("PLAIN", "LOGIN")
    assert error.permanent
    assert "535" in error.message
    assert "wRoNg" not in error.message
    assert "530" in anonymous.message


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_certificate_that_is_not_trusted_or_of_another_host_is_refused(
    security: str, authority: Authority
) -> None:
    contexts: dict[str, Any] = {security: authority.server("DNS:other.example.org")}
    async with smtp_server(**contexts) as mailbox:
        for config in (trusting(authority), PRIVATE):
            error = await failure(channel(mailbox.port, security=security), config=config)
            assert "CERTIFICATE_VERIFY_FAILED" in error.message
    assert mailbox.mails == []


async def test_a_server_without_starttls_gets_no_mail() -> None:
    async with smtp_server() as mailbox:
        error = await failure(channel(mailbox.port, security="starttls"))
    assert error.permanent
    assert mailbox.mails == []


@pytest.mark.parametrize(
    ("answer", "is_permanent"), [("451 try later", False), ("554 5.7.1 spam", True), ("421 closing", False)]
)
async def test_the_code_decides_whether_another_try_makes_sense(answer: str, is_permanent: bool) -> None:
    async with smtp_server() as mailbox:
        mailbox.answer = answer
        error = await failure(channel(mailbox.port))
    assert error.permanent is is_permanent
    assert answer in error.message


async def test_refused_recipients_are_named_and_the_others_get_the_mail_once() -> None:
    async with smtp_server() as mailbox:
        mailbox.refused = {"gone@example.org": "550 no such user"}
        error = await failure(channel(mailbox.port, to=("gone@example.org", "ops@example.org")))
        assert "gone@example.org (550 no such user)" in error.message
        # Another try would send it to the others again.
        assert error.permanent
        assert mailbox.recipients == [["ops@example.org"]]
        mailbox.refused = {"gone@example.org": "450 greylisted"}
        assert not (await failure(channel(mailbox.port, to=("gone@example.org",)))).permanent


async def test_a_server_that_is_down_fails_for_now() -> None:
    async with smtp_server() as mailbox:
        port = mailbox.port
    assert not (await failure(channel(port))).permanent


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Never silent for long, and never done."""
    while True:
        writer.write(b"2")
        await writer.drain()
        await asyncio.sleep(0.05)


async def hang_after_the_greeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 here\r\n")
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("serve", "security"), [(hang, "none"), (trickle, "none"), (hang_after_the_greeting, "none"), (hang, "tls")]
)
async def test_a_server_that_hangs_is_given_up_and_its_thread_ends(serve: Any, security: str) -> None:
    async with misbehaving(serve) as port:
        error = await failure(channel(port, security=security), config=HASTY)
        assert (error.message, error.permanent) == ("localhost did not accept the message within 0.5 s", False)
        # All threads are free again, while the server still holds its connections.
        await asyncio.gather(*(failure(channel(port, security=security), config=HASTY) for _ in range(5)))
        async with asyncio.timeout(30):
            loop = asyncio.get_running_loop()
            await asyncio.gather(*(loop.run_in_executor(email.senders, int) for _ in range(8)))


async def talk_for_ever(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"220-" + b"x" * 1000 + b"\r\n")
        await writer.drain()


async def talk_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await writer.drain()


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    return


@pytest.mark.parametrize("serve", [talk_for_ever, talk_nonsense, hang_up])
async def test_a_server_that_talks_nonsense_fails_soon(serve: Any) -> None:
    async with misbehaving(serve) as port:
        error = await failure(channel(port))
    assert not error.permanent
    assert len(error.message) < 500


async def accept_and_hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes the mail, and does not answer QUIT."""
    writer.write(b"220 here\r\n")
    for ending, answer in (
        (b"\r\n", b"250 hello\r\n"), (b"\r\n", b"250 ok\r\n"), (b"\r\n", b"250 ok\r\n"), (b"\r\n", b"354 go\r\n"),
        (b"\r\n.\r\n", b"250 mine\r\n"),
    ):  # fmt: skip
        await reader.readuntil(ending)
        writer.write(answer)
    await asyncio.Event().wait()


async def test_a_mail_that_was_accepted_is_not_sent_again_because_the_server_hangs_then() -> None:
    async with misbehaving(accept_and_hang) as port:
        await send(channel(port), config=HASTY)


async def test_an_address_that_is_not_public_is_refused() -> None:
    error = await failure(channel(25, host="127.0.0.1"), config=Config())
    assert error.permanent
    assert "not public" in error.message


async def test_a_name_that_turns_private_is_refused() -> None:
    async def rebinding(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with smtp_server() as mailbox:
        error = await failure(channel(mailbox.port, host="mail.example.org"), policy=AddressPolicy(Config(), rebinding))
    assert "not public" in error.message
    assert mailbox.mails == []


async def test_a_bad_file_of_authorities_names_the_setting(tmp_path: Path) -> None:
    config = Config(http_allow_private=True, http_ca_file=str(tmp_path / "missing.pem"))
    error = await failure(channel(25), config=config)
    assert "http_ca_file" in error.message
    assert not error.permanent
