"""Sends the requests of channels: to checked addresses, within a time limit, without redirects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import httpx
import msgspec

from foliot.alerts.channels.base import ChannelError
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import ConfigurationError, Invalid
from foliot.model.alert_channel import HIDDEN
from foliot.outbound.addresses import AddressPolicy, AddressRefused, HostNotFound
from foliot.outbound.requests import Request, Response, retry_after, send, url_of

ANSWER_MAX_BYTES = 16_384
SHOWN_MAX = 300
WORTH_ANOTHER_TRY = frozenset({408, 409, 423, 425, 429})
# It logs the URL of each request, and the URLs of many channels are secrets.
logging.getLogger("httpx").setLevel(logging.WARNING)


class Poster:
    def __init__(self, config: Config, clock: Clock, policy: AddressPolicy | None = None) -> None:
        self.policy = policy or AddressPolicy(config)
        self.timeout_seconds = config.alert_timeout_seconds
        self._trusted = config.http_ca_file
        self.clock = clock

    async def post(
        self, url: str, content: bytes, headers: Mapping[str, str], *, secrets: tuple[str, ...] = ()
    ) -> Response:
        """The answer, which is a success. Raises `ChannelError`, without the secrets and without the URL."""
        try:
            asked = url_of(url)
        except Invalid:
            raise ChannelError("its URL can't be read; it must begin with https://", permanent=True) from None
        host = asked.host
        sent = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "foliot", **headers}
        try:
            async with asyncio.timeout(self.timeout_seconds):
                response = await send(
                    Request("POST", asked, sent, content), self.policy, ANSWER_MAX_BYTES, self._trusted
                )
        except TimeoutError:
            raise ChannelError(f"{host} gave no complete answer within {self.timeout_seconds:g} s", False) from None
        except ConfigurationError as error:
            raise ChannelError(error.detail, permanent=False) from None
        except AddressRefused as error:
            raise ChannelError(str(error), permanent=True) from None
        except HostNotFound as error:
            raise ChannelError(str(error), permanent=False) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise ChannelError(without(f"{host}: {error or type(error).__name__}", secrets), False) from None
        if 200 <= response.status < 300:
            return response
        raise self._refusal(host, response, secrets)

    async def post_json(self, url: str, document: object, *, secrets: tuple[str, ...] = ()) -> Response:
        headers = {"content-type": "application/json"}
        return await self.post(url, msgspec.json.encode(document), headers, secrets=secrets)

    def _refusal(self, host: str, response: Response, secrets: tuple[str, ...]) -> ChannelError:
        if 300 <= response.status < 400:
            return ChannelError(
                f"{host} answered {response.status}: it redirects, which is not followed; give the final URL", True
            )
        said = " ".join(response.body.decode("utf-8", "replace").split())
        said = "".join(one if one.isprintable() else "�" for one in said)[:SHOWN_MAX]
        text = without(f"{host} answered {response.status} {response.phrase}{f': {said}' if said else ''}", secrets)
        is_temporary = response.status >= 500 or response.status in WORTH_ANOTHER_TRY
        return ChannelError(text, not is_temporary, retry_after(response.headers, self.clock) if is_temporary else None)


def without(text: str, secrets: tuple[str, ...]) -> str:
    """The text with the secrets hidden: a far end may repeat them."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text
