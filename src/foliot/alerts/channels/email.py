"""Email by SMTP, with STARTTLS or TLS and a login.

smtplib blocks, so each message is sent in a thread of a small pool. The time limit closes the connection, which ends
the thread whatever the server does. The server's words are bounded, and it is connected by a checked address.
"""

from __future__ import annotations

import asyncio
import io
import smtplib
import socket
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from functools import partial

from foliot.alerts.channels.base import ChannelError
from foliot.alerts.channels.posting import without
from foliot.alerts.channels.texts import texts_of
from foliot.alerts.message import AlertMessage
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import ConfigurationError
from foliot.model.alert_channel import EmailChannel
from foliot.outbound.addresses import AddressPolicy, AddressRefused, HostNotFound
from foliot.outbound.requests import tls

PORTS = {"starttls": 587, "tls": 465, "none": 25}
REPLIES_MAX_BYTES = 65_536
"""Of all that a server says in one connection."""
SAID_MAX = 300
senders = ThreadPoolExecutor(max_workers=4, thread_name_prefix="alert email")


class Email:
    def __init__(self, channel: EmailChannel, config: Config, clock: Clock, policy: AddressPolicy) -> None:
        self._channel = channel
        self._config = config
        self._clock = clock
        self._policy = policy

    async def send(self, message: AlertMessage, delivery_id: str) -> None:
        channel, limit = self._channel, self._config.alert_timeout_seconds
        mail = mail_of(message, channel, delivery_id)
        mail["Date"] = format_datetime(self._clock.now())
        port = channel.port or PORTS[channel.security]
        try:
            context = tls(self._config.http_ca_file)
        except ConfigurationError as error:
            raise ChannelError(error.detail, permanent=False) from None
        connection = Connection(channel, port, context, limit)
        try:
            async with asyncio.timeout(limit):
                addresses = await self._policy.addresses_of(channel.host, port)
                work = partial(connection.deliver, addresses, mail)
                await asyncio.get_running_loop().run_in_executor(senders, work)
        except TimeoutError:
            if not connection.has_accepted:
                raise ChannelError(f"{channel.host} did not accept the message within {limit:g} s", False) from None
        except AddressRefused as error:
            raise ChannelError(str(error), permanent=True) from None
        except HostNotFound as error:
            raise ChannelError(str(error), permanent=False) from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise self._failure(error) from None
        finally:
            connection.cut()

    def _failure(self, error: Exception) -> ChannelError:
        text, is_permanent = _reason(error)
        secrets = () if self._channel.password is None else (self._channel.password,)
        return ChannelError(without(f"{self._channel.host}: {text}", secrets), is_permanent)


def _reason(error: Exception) -> tuple[str, bool]:
    """The reason in words, and whether another try would fail too."""
    match error:
        case smtplib.SMTPRecipientsRefused():
            codes = [code for code, _ in error.recipients.values()]
            return f"refused {_refused(error.recipients)}", all(code >= 500 for code in codes)
        case smtplib.SMTPResponseException():
            return f"{error.smtp_code} {_said(error.smtp_error)}", error.smtp_code >= 500
        case smtplib.SMTPNotSupportedError():
            return f"{error}", True
    return f"{error or type(error).__name__}", False


def _refused(recipients: dict[str, tuple[int, bytes]]) -> str:
    return ", ".join(f"{address} ({code} {_said(said)})" for address, (code, said) in recipients.items())


def _said(said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return "".join(one if one.isprintable() else " " for one in text)[:SAID_MAX]


def mail_of(message: AlertMessage, channel: EmailChannel, delivery_id: str) -> EmailMessage:
    texts = texts_of(message, channel)
    mail = EmailMessage()
    mail["Subject"] = texts.title
    mail["From"] = _address(channel.sender)
    mail["To"] = [_address(one) for one in channel.to]
    # The same at every try, so that a mail server may drop a repetition. Mail programs group by the second header.
    mail["Message-ID"] = f"<{_id_text(delivery_id)}@foliot>"
    mail["References"] = f"<{_id_text(message.alert_id)}@foliot>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Foliot-Alert"] = _id_text(message.alert_id)
    mail["X-Foliot-Event"] = message.event
    if message.severity == "critical" and message.event == "opened":
        mail["Importance"] = "high"
    mail.set_content(f"{texts.body}\n")
    return mail


def _address(text: str) -> Address:
    return Address(addr_spec=text)


def _id_text(text: str) -> str:
    return "".join(one if one.isascii() and (one.isalnum() or one in "-_.") else "_" for one in text)[:200]


class Connection:
    """One SMTP connection. `cut` ends it from another thread."""

    def __init__(self, channel: EmailChannel, port: int, context: ssl.SSLContext, limit: float) -> None:
        self._channel = channel
        self._port = port
        self._context = context
        self._limit = limit
        self._smtp: Smtp | None = None
        self._is_cut = False
        self.has_accepted = False
        """After this another try would send the message twice, even if the connection fails now."""

    def deliver(self, addresses: Iterable[str], mail: EmailMessage) -> None:
        channel = self._channel
        smtp = self._connected(list(addresses))
        try:
            if channel.security == "starttls":
                smtp.starttls(context=self._context)
            if channel.username is not None and channel.password is not None:
                smtp.login(channel.username, channel.password)
            refused = smtp.send_message(mail)
            self.has_accepted = True
            with suppress(smtplib.SMTPException, OSError):
                smtp.quit()
        finally:
            smtp.close()
        if refused:
            # The others have it, so another try would repeat it to them.
            raise smtplib.SMTPResponseException(550, f"the others have it, but it refused {_refused(refused)}")

    def _connected(self, addresses: list[str]) -> Smtp:
        for address in addresses:
            if self._is_cut:
                break
            smtp = Smtp(self._context if self._channel.security == "tls" else None, self._limit)
            self._smtp = smtp
            try:
                smtp.connect_to(self._channel.host, address, self._port)
            except OSError:
                if address == addresses[-1]:
                    raise
                continue
            return smtp
        raise OSError("the connection was cut")

    def cut(self) -> None:
        self._is_cut = True
        if self._smtp is not None:
            self._smtp.cut()


class Smtp(smtplib.SMTP):
    """Connects to an address that was checked, while TLS verifies the name of the host."""

    def __init__(self, context: ssl.SSLContext | None, timeout: float) -> None:
        self._direct = context
        self._address = ""
        # A second descriptor of the connection, which no change to TLS touches.
        self._handle: socket.socket | None = None
        name = socket.gethostname()
        super().__init__(timeout=timeout, local_hostname=name if "." in name else "[127.0.0.1]")

    def connect_to(self, host: str, address: str, port: int) -> None:
        # The name that STARTTLS verifies.
        self._host = host
        self._address = address
        code, said = self.connect(host, port)
        if code != 220:
            self.close()
            raise smtplib.SMTPConnectError(code, said)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        made = socket.create_connection((self._address, port), timeout)
        self._handle = made.dup()
        return made if self._direct is None else self._direct.wrap_socket(made, server_hostname=host)

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = Bounded(self.sock.makefile("rb"))
        return super().getreply()

    def cut(self) -> None:
        """Ends whatever the thread waits for."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)
            handle.close()


class Bounded:
    """The replies of a server, up to a limit: a lying one could go on for ever."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self._left = REPLIES_MAX_BYTES

    def readline(self, limit: int) -> bytes:
        line = self._file.readline(limit)
        self._left -= len(line)
        if self._left < 0:
            raise OSError(f"the server said more than {REPLIES_MAX_BYTES} bytes")
        return line

    def close(self) -> None:
        self._file.close()
