"""A real SMTP server, aiosmtpd, and servers that misbehave."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "foliot", "sEcReT-password"


@dataclass
class Mailbox:
    """The mails that the server has accepted, and its answers."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    arrived_at: list[datetime] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Recipients, and the answer to each."""
    answer: str = "250 OK"
    is_encrypted: list[bool] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        if self.answer.startswith("2"):
            mail = message_from_bytes(envelope.content, policy=policy.default)
            assert isinstance(mail, EmailMessage)
            self.mails.append(mail)
            self.arrived_at.append(datetime.now(UTC))
            self.recipients.append(list(envelope.rcpt_tos))
            transport = server.transport
            assert isinstance(transport, asyncio.Transport)
            self.is_encrypted.append(transport.get_extra_info("ssl_object") is not None)
        return self.answer

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append(mechanism)
        is_right = (data.login.decode(), data.password.decode()) == (USER, PASSWORD)
        return AuthResult(success=is_right, handled=is_right)


@asynccontextmanager
async def smtp_server(
    *, starttls: ssl.SSLContext | None = None, tls: ssl.SSLContext | None = None, requires_login: bool = False
) -> AsyncIterator[Mailbox]:
    mailbox, sessions = Mailbox(), list[SMTP]()

    def session() -> SMTP:
        # It does not know that the connection is encrypted from its beginning.
        with warnings.catch_warnings(action="ignore"):
            made = _session()
        sessions.append(made)
        return made

    def _session() -> SMTP:
        return SMTP(
            mailbox,
            hostname="mail.test",
            tls_context=starttls,
            require_starttls=starttls is not None,
            authenticator=mailbox.authenticate,
            auth_required=requires_login,
            auth_require_tls=starttls is not None,
        )

    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0, ssl=tls)
    mailbox.port = server.sockets[0].getsockname()[1]
    try:
        yield mailbox
    finally:
        server.close()
        for one in sessions:
            if isinstance(one.transport, asyncio.Transport):
                one.transport.abort()
            if (task := one._handler_coroutine) is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task
        await server.wait_closed()


@asynccontextmanager
async def misbehaving(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """The port of a server that does as `serve` says."""
    tasks = set[asyncio.Task[None]]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(OSError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.transport.abort()
        tasks.discard(task)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
