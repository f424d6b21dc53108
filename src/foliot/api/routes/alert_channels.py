"""`/v1/alert-channels`: where the messages of alerts go."""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.alerts.channels.base import ChannelError
from foliot.alerts.channels.checks import check_destination
from foliot.alerts.channels.stored import StoredChannels
from foliot.alerts.message import AlertMessage
from foliot.api.openapi.operations import CREATE_ONLY, IF_NONE_MATCH, described
from foliot.api.requests.bodies import read_json
from foliot.api.requests.etags import Version, if_match_of, is_create_only, tagged
from foliot.api.requests.idempotency import answered
from foliot.api.requests.names import stored_name
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import Busy, Conflict, Invalid, NotFound, PreconditionFailed
from foliot.model.alert_channel import HIDDEN, AlertChannel, StoredChannel, check_channel, secrets_of
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.store.store import Store

CHANNELS_MAX = 200
TESTS_AT_ONCE = 4


class AlertChannelShown(msgspec.Struct, frozen=True):
    name: str
    version: int
    created_at: datetime
    updated_at: datetime
    channel: AlertChannel
    """With `***` in place of each stored secret."""


class AlertChannelList(msgspec.Struct, frozen=True):
    items: list[AlertChannelShown]


class AlertChannelTest(msgspec.Struct, frozen=True):
    is_delivered: bool
    error: str | None


class AlertSecretsSealed(msgspec.Struct, frozen=True):
    changed: int
    """Channels whose secrets were encrypted with an older key."""


EXAMPLES = {
    "email": {
        "kind": "email", "host": "smtp.example.org", "from": "foliot@example.org", "to": ["ops@example.org"],
    },
    "own texts": {
        "kind": "email", "host": "smtp.example.org", "from": "foliot@example.org", "to": ["ops@example.org"],
        "title": "{{ severity }}: {{ title }}", "body": "{{ summary }} Since {{ since | format \"%H:%M\" }}.",
    },
}  # fmt: skip
decoder: msgspec.json.Decoder[AlertChannel] = msgspec.json.Decoder(AlertChannel)


class AlertChannelRoutes:
    def __init__(self, *, store: Store, config: Config, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        self._channels = StoredChannels(store=store, config=config, clock=clock)
        self._testing = 0
        self.router = APIRouter(tags=["alerts"], route_class=PermissionRoute)
        add, path, one = self.router.add_api_route, "/v1/alert-channels", "/v1/alert-channels/{name}"
        add(path, self.list_alert_channels, methods=["GET"], openapi_extra=described(200, AlertChannelList))
        shows = described(200, AlertChannelShown, problems=(404, 422), tagged=True)
        add(one, self.get_alert_channel, methods=["GET"], openapi_extra=shows)
        puts = described(
            200, AlertChannelShown, body=AlertChannel, examples=EXAMPLES, problems=(409,), matched=True,
            headers=(CREATE_ONLY,),
        )  # fmt: skip
        add(one, self.put_alert_channel, methods=["PUT"], openapi_extra=puts)
        deletes = described(204, problems=(404, 409, 422))
        add(one, self.delete_alert_channel, methods=["DELETE"], status_code=204, openapi_extra=deletes)
        tests = described(200, AlertChannelTest, problems=(404, 422))
        add(f"{one}/test", self.test_alert_channel, methods=["POST"], openapi_extra=tests)
        seals = described(200, AlertSecretsSealed, problems=(409,))
        add(f"{path}/seal", self.seal_alert_channels, methods=["POST"], openapi_extra=seals)

    @requires(Permission.VIEW)
    async def list_alert_channels(self, namespace: Within) -> Response:
        """Lists all channels by name, without their secrets."""
        found = await self._store.alert_channels.list_channels(namespace)
        return answered(AlertChannelList([shown(one) for one in found]))

    @requires(Permission.VIEW)
    async def get_alert_channel(self, name: str, request: Request, namespace: Within) -> Response:
        """Shows a channel without its secrets. References to secrets, such as `env:NAME`, are shown."""
        found = await self._find(namespace, name)
        return tagged(request, shown(found), version_of(found))

    @requires(Permission.OPERATE)
    async def put_alert_channel(self, name: str, request: Request, namespace: Within) -> Response:
        """Creates a channel, or changes it. `***` as a secret keeps the stored one, as long as the destination stays.

        `If-None-Match: *` only creates, and If-Match only changes the matching version; otherwise the answer is 412.
        """
        channel = await read_json(request, decoder, max_bytes=self._config.body_max_bytes)
        stored = stored_name(namespace, name)
        if_match, is_new = if_match_of(request), is_create_only(request)
        if is_new and if_match is not None:
            raise Invalid("If-None-Match: give either it or If-Match", field=IF_NONE_MATCH)
        check_channel(channel)
        before = await self._store.alert_channels.get_channel(stored)
        if if_match is not None:
            if_match.check(f"alert channel {name!r}", None if before is None else version_of(before))
        if before is None:
            await self._check_number(namespace)
        hidden, sealed = self._channels.secrets.hidden(stored, channel, before)
        await check_destination(channel, self._config)
        # A change at the same time may have changed the secret that `***` keeps.
        keeps = any(value == HIDDEN for _, value in secrets_of(channel))
        only = before if if_match is not None or keeps else None
        saved = await self._store.alert_channels.put_channel(stored, hidden, sealed, only=only, is_new=is_new)
        if saved is None:
            raise PreconditionFailed(
                f"there is an alert channel {name!r} already; leave out If-None-Match to change it"
                if is_new
                else f"the alert channel {name!r} was changed or deleted at the same time; GET it again"
            )
        return tagged(request, shown(saved), version_of(saved))

    @requires(Permission.OPERATE)
    async def delete_alert_channel(self, name: str, namespace: Within) -> Response:
        """Deletes a channel that no rule names. Messages that still wait for it fail."""
        found = await self._find(namespace, name)
        if not await self._store.alert_channels.delete_channel(found.name):
            for rule in await self._store.alert_rules.list_alert_rules(namespace):
                if name in rule.rule.channels:
                    raise Conflict(
                        f"the alert rule {bare(rule.name)!r} names the channel {name!r}; change the rule first"
                    )
        return Response(status_code=204)

    @requires(Permission.OPERATE)
    async def test_alert_channel(self, name: str, namespace: Within, caller: Calling) -> Response:
        """Sends a test message by a channel, from this server, and says whether the other side accepted it."""
        found = await self._find(namespace, name)
        if self._testing >= TESTS_AT_ONCE:
            raise Busy("this server tests other channels right now; try again in a moment", retry_after=5)
        self._testing += 1
        try:
            async with asyncio.timeout(2 * self._config.alert_timeout_seconds + 10):
                channel = await self._channels.opened(found)
                message = self._test_message(namespace, bare(found.name), caller.name)
                await channel.send(message, message.alert_id)
        except ChannelError as error:
            return answered(AlertChannelTest(False, error.message))
        except TimeoutError:
            return answered(AlertChannelTest(False, "the test did not finish in time"))
        finally:
            self._testing -= 1
        return answered(AlertChannelTest(True, None))

    @requires(Permission.OPERATE)
    async def seal_alert_channels(self, namespace: Within) -> Response:
        """Encrypts the secrets of all channels with the first key of `secret_key`, so that older keys can go."""
        changed = 0
        for one in await self._store.alert_channels.list_channels(namespace):
            try:
                sealed = self._channels.secrets.sealed_again(one)
            except ChannelError as error:
                raise Conflict(f"the alert channel {bare(one.name)!r}: {error.message}") from None
            if sealed is not None:
                changed += await self._store.alert_channels.seal_channel_again(one, sealed)
        return answered(AlertSecretsSealed(changed))

    async def _find(self, namespace: Namespace, name: str) -> StoredChannel:
        found = None if "\0" in name else await self._store.alert_channels.get_channel(namespace.qualified(name))
        if found is None:
            raise NotFound(f"there is no alert channel {name!r}")
        return found

    async def _check_number(self, namespace: Namespace) -> None:
        if len(await self._store.alert_channels.list_channels(namespace)) >= CHANNELS_MAX:
            raise Conflict(f"name: there are {CHANNELS_MAX} alert channels already; delete one first")

    def _test_message(self, namespace: Namespace, name: str, caller: str) -> AlertMessage:
        return AlertMessage(
            alert_id=f"test-{new_id()}",
            event="test",
            severity="info",
            namespace=namespace.name,
            rule="test",
            title=f"The channel {name} works",
            summary=f"{caller} tested the alert channel {name}. Nothing is wrong.",
            since=self._clock.now(),
            resolved_at=None,
            count=0,
            subjects=(),
            log_tail="",
            link="",
        )


def version_of(stored: StoredChannel) -> Version:
    return Version(stored.version, stored.created_at)


def shown(stored: StoredChannel) -> AlertChannelShown:
    return AlertChannelShown(bare(stored.name), stored.version, stored.created_at, stored.updated_at, stored.channel)
