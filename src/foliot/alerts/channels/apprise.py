"""Any other service, through Apprise: a URL names the service.

Apprise runs in a process of its own, which is killed at the time limit and may use only so much memory. There it can
connect to checked addresses only, follows no redirect, starts no program and reads no file: see `apprise_process.py`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import msgspec

from foliot.alerts.channels.apprise_process import SENDS
from foliot.alerts.channels.base import ChannelError
from foliot.alerts.channels.posting import without
from foliot.alerts.channels.texts import texts_of
from foliot.alerts.message import AlertMessage
from foliot.config import Config
from foliot.errors import Invalid
from foliot.model.alert_channel import AppriseChannel

MODULE = "foliot.alerts.channels.apprise_process"
INHERITED = ("PATH", "PYTHONPATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR")
ANSWER_MAX_BYTES = 65_536
# Apprise loads more than a hundred services, which takes this long on a busy machine.
START_SECONDS = 25.0
# After its own time limit, to say so. To end it earlier would send a message again that has arrived.
END_SECONDS = 2.0
KINDS = {"critical": "failure", "warning": "warning", "info": "info"}
at_once = asyncio.Semaphore(2)


class Answer(msgspec.Struct, frozen=True):
    error: str = ""
    """Empty: it worked."""
    is_permanent: bool = False


decode_answer = msgspec.json.Decoder(Answer).decode


class Apprise:
    def __init__(self, channel: AppriseChannel, config: Config) -> None:
        self._channel = channel
        self._config = config

    async def send(self, message: AlertMessage, delivery_id: str) -> None:
        texts = texts_of(message, self._channel)
        kind = "success" if message.event == "resolved" else KINDS[message.severity]
        asked = {"title": texts.title, "body": texts.body, "type": kind}
        answer = await in_process(self._channel.url, self._config, asked)
        if answer.error:
            raise ChannelError(answer.error, answer.is_permanent)


async def check_apprise(url: str, config: Config) -> None:
    """Raises `Invalid` for a URL that Apprise does not understand, or that is not allowed here."""
    if find_spec("apprise") is None:
        raise Invalid("kind: apprise needs the extra: pip install 'foliot[alerts]'", field="kind")
    try:
        answer = await in_process(url, config, None)
    except ChannelError as error:
        raise Invalid(f"url: {error}", field="url") from None
    if answer.error:
        raise Invalid(f"url: {answer.error}", field="url")


async def in_process(url: str, config: Config, message: dict[str, str] | None) -> Answer:
    """Sends the message, or only checks the URL. Raises `ChannelError`."""
    if find_spec("apprise") is None:
        raise ChannelError("apprise needs the extra: pip install 'foliot[alerts]'", permanent=False)
    asked = msgspec.json.encode({
        "url": url,
        "message": message,
        "timeout_seconds": config.alert_timeout_seconds,
        "allows_private": config.http_allow_private,
        "allowed_hosts": config.http_allow_hosts,
    })  # fmt: skip
    limit = START_SECONDS
    async with at_once:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", MODULE,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in INHERITED if name in os.environ}, cwd="/", limit=ANSWER_MAX_BYTES,
        )  # fmt: skip
        try:
            async with asyncio.timeout(limit):
                said = await _ask(process, asked)
            if said == SENDS:
                limit = config.alert_timeout_seconds + END_SECONDS
                async with asyncio.timeout(limit):
                    said = await _answer(process)
        except TimeoutError:
            raise ChannelError(f"Apprise did not finish within {limit:g} s", permanent=False) from None
        finally:
            await _end(process)
    try:
        answer = decode_answer(said)
    except msgspec.DecodeError:
        raise ChannelError("Apprise ended without an answer", permanent=False) from None
    return Answer(without(answer.error, (url,)), answer.is_permanent)


async def _ask(process: Any, asked: bytes) -> bytes:
    """Returns the first line, which is the answer unless it says that a message is being sent."""
    with suppress(OSError):
        # The URL is a secret, so it is not an argument, which everybody on this machine could read.
        process.stdin.write(asked)
        await process.stdin.drain()
        process.stdin.close()
    try:
        said: bytes = await process.stdout.readline()
    except ValueError:
        return b"a line without end"
    return said


async def _answer(process: Any) -> bytes:
    said: bytes = await process.stdout.read(ANSWER_MAX_BYTES)
    return said


async def _end(process: Any) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
