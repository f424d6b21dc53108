"""etcd 3.4 or newer, through its JSON gateway.

A member is the key `<prefix>/members/<id>` with a lease. Two tasks serve a session: one keeps the lease alive, the
other follows a watch of all members. A watch that breaks, or may have broken, is opened again, and says so as a change.
A worker is the key `<prefix>/workers/<id>` with a lease, and follows no watch.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from typing import Any
from uuid import UUID

import httpx

from foliot.clock import Clock
from foliot.config import place_of
from foliot.coordination.base import (
    ANSWER_SECONDS,
    Coordinator,
    CoordinatorUnavailable,
    Presence,
    Session,
    SessionLost,
    node_of,
)
from foliot.errors import ConfigurationError
from foliot.service import own_task

RETRY_SECONDS = 0.3
DEFAULT_PORT = 2379
# Codes of gRPC, in the answers of the gateway.
INVALID, NOT_FOUND, DENIED, NO_AUTHENTICATION, UNKNOWN_TOKEN = 3, 5, 7, 9, 16


class Refused(Exception):
    """etcd answered, with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class EtcdCoordinator(Coordinator):
    name = "etcd"

    def __init__(self, *, url: str, prefix: str, session_seconds: float, clock: Clock) -> None:
        place = place_of(url)
        self._bases = [f"{place.scheme}://{with_port(host)}" for host in place.hosts]
        self._credentials = {"name": place.user, "password": place.password} if place.user else None
        self._token = ""
        self._prefix = prefix
        self._session_seconds = round(session_seconds)
        self._clock = clock
        self._http = httpx.AsyncClient(
            timeout=ANSWER_SECONDS,
            trust_env=False,
            verify=ssl.create_default_context(),
        )

    async def connect(self) -> None:
        await self.call("kv/range", {"key": encoded(f"{self._prefix}/members/"), "count_only": True})

    async def join(self, node: UUID, label: str) -> Session:
        members = f"{self._prefix}/members/"
        lease, seconds = await self._put(f"{members}{node}", label)
        return EtcdSession(self, lease, node, members, f"{self._prefix}/shards/{node}", seconds, self._clock)

    async def appear(self, presence_id: UUID, label: str) -> Presence:
        key = f"{self._workers}{presence_id}"
        lease, _ = await self._put(key, label)
        return EtcdPresence(self, lease, key)

    async def present(self) -> frozenset[UUID]:
        try:
            answer = await self.call("kv/range", all_below(self._workers) | {"keys_only": True})
        except Refused as error:
            raise CoordinatorUnavailable(f"etcd: {error}") from error
        return nodes_in(answer, self._workers)

    @property
    def _workers(self) -> str:
        return f"{self._prefix}/workers/"

    async def _put(self, key: str, label: str) -> tuple[str, float]:
        """Writes a key that lasts as long as its lease, and returns the lease and its length."""
        try:
            granted = await self.call("lease/grant", {"TTL": self._session_seconds})
            await self.call("kv/put", {"key": encoded(key), "value": encoded(label), "lease": granted["ID"]})
            return granted["ID"], float(granted["TTL"])
        except (Refused, KeyError) as error:
            raise CoordinatorUnavailable(f"etcd: {error}") from error

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Asks each host in turn, the one that answered last first."""
        for _ in self._bases[1:]:
            try:
                return await self._call(path, body)
            except CoordinatorUnavailable:
                self._bases.append(self._bases.pop(0))
        return await self._call(path, body)

    @property
    def base(self) -> str:
        """The URL of the host that is asked first."""
        return self._bases[0]

    def request(self, path: str, body: dict[str, Any]) -> httpx.Request:
        headers = {"Authorization": self._token} if self._token else {}
        return self._http.build_request("POST", f"{self.base}/v3/{path}", json=body, headers=headers)

    async def open_stream(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """An answer without an end. The caller closes it."""
        request = self.request(path, body)
        request.extensions["timeout"] = httpx.Timeout(ANSWER_SECONDS, read=None).as_dict()
        return await self._http.send(request, stream=True)

    async def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if self._credentials and not self._token:
            await self._authenticate()
        try:
            return await self._ask(path, body)
        except Refused as refusal:
            if refusal.code != UNKNOWN_TOKEN or not self._credentials:
                raise self._explained(refusal) from None
        # Tokens expire, and end when etcd restarts.
        await self._authenticate()
        try:
            return await self._ask(path, body)
        except Refused as refusal:
            raise self._explained(refusal) from None

    async def _authenticate(self) -> None:
        self._token = ""
        try:
            answer = await self._ask("auth/authenticate", self._credentials or {})
        except Refused as refusal:
            if refusal.code != NO_AUTHENTICATION:
                raise self._explained(refusal) from None
            return
        self._token = str(answer.get("token", ""))

    async def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await self._http.send(self.request(path, body))
        except httpx.HTTPError as error:
            # An etcd that was wiped waits until it knows the token, which is for ever.
            self._token = ""
            raise CoordinatorUnavailable(f"etcd: {type(error).__name__}: {error}") from error
        try:
            found = json.loads(answer.text.partition("\n")[0])
            if answer.is_success and isinstance(found, dict):
                return found
            raise Refused(int(found["code"]), str(found["message"]))
        except (ValueError, KeyError, TypeError):
            if answer.status_code >= 500:
                raise CoordinatorUnavailable(f"etcd: status {answer.status_code}") from None
            raise ConfigurationError(
                f"coordination_url: {self.base} does not answer as etcd 3.4 or newer does (status {answer.status_code})"
            ) from None

    def _explained(self, refusal: Refused) -> Exception:
        if refusal.code in (INVALID, DENIED, UNKNOWN_TOKEN):
            return ConfigurationError(f"coordination_url: etcd refuses the user or password: {refusal}")
        if refusal.code == NOT_FOUND:
            return refusal
        return CoordinatorUnavailable(f"etcd: {refusal}")


class EtcdSession(Session):
    def __init__(
        self, etcd: EtcdCoordinator, lease: str, node: UUID, members: str, shards: str, seconds: float, clock: Clock
    ) -> None:
        self._etcd = etcd
        self._lease = lease
        self._node = node
        self._members = members
        self._shards = shards
        self._seconds = seconds
        self._clock = clock
        self._news = asyncio.Event()
        self._why_lost = ""
        self._watched = etcd.base
        self._keeping = own_task(self._keep_alive(), name="keep the lease alive")
        self._watching = own_task(self._watch(), name="watch the members")

    async def members(self) -> frozenset[UUID]:
        self._news.clear()
        self._check()
        found = nodes_in(await self._asked("kv/range", all_below(self._members) | {"keys_only": True}), self._members)
        if self._node not in found:
            self._lose("etcd has forgotten this node")
            self._check()
        return found

    async def changed(self) -> None:
        await self._news.wait()
        self._check()

    async def publish(self, shards: str) -> None:
        self._check()
        body = {"key": encoded(self._shards), "value": encoded(shards), "lease": self._lease}
        await self._asked("kv/put", body)

    async def end(self) -> None:
        for task in (self._keeping, self._watching):
            task.cancel()
        await asyncio.wait([self._keeping, self._watching])
        if not self._why_lost:
            try:
                await self._etcd.call("lease/revoke", {"ID": self._lease})
            except (CoordinatorUnavailable, ConfigurationError, Refused):
                return

    async def _asked(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """A call that is repeated while the session may last."""
        while True:
            try:
                return await self._etcd.call(path, body)
            except CoordinatorUnavailable:
                self._check()
                await self._clock.sleep(RETRY_SECONDS)
            except (ConfigurationError, Refused) as error:
                self._lose(str(error))
            self._check()

    async def _keep_alive(self) -> None:
        """The lease lasts from before the last request that renewed it."""
        until = self._clock.monotonic() + self._seconds
        pause = self._seconds / 3
        while not self._why_lost:
            await self._clock.sleep(pause)
            asked_at = self._clock.monotonic()
            try:
                answer = await self._etcd.call("lease/keepalive", {"ID": self._lease})
            except CoordinatorUnavailable as error:
                # The watch may hang as well, without an error.
                self._watch_again()
                pause = RETRY_SECONDS
                if self._clock.monotonic() >= until:
                    self._lose(str(error))
                continue
            except (ConfigurationError, Refused) as error:
                self._lose(str(error))
                return
            if not int(answer.get("result", {}).get("TTL", 0)):
                self._lose("the lease in etcd has expired")
                return
            if self._watched != self._etcd.base:
                self._watch_again()
            until, pause = asked_at + self._seconds, self._seconds / 3

    async def _watch(self) -> None:
        while not self._why_lost:
            self._watched = self._etcd.base
            try:
                answer = await self._etcd.open_stream("watch", {"create_request": all_below(self._members)})
                try:
                    async for _ in answer.aiter_lines():
                        # The first line says that the watch has begun; what happened before is news, too.
                        self._news.set()
                finally:
                    await answer.aclose()
            except httpx.HTTPError:
                pass
            self._news.set()
            await self._clock.sleep(RETRY_SECONDS)

    def _watch_again(self) -> None:
        self._watching.cancel()
        self._watching = own_task(self._watch(), name="watch the members")

    def _lose(self, why: str) -> None:
        self._why_lost = self._why_lost or why
        self._news.set()

    def _check(self) -> None:
        if self._why_lost:
            raise SessionLost(self._why_lost)


class EtcdPresence(Presence):
    def __init__(self, etcd: EtcdCoordinator, lease: str, key: str) -> None:
        self._etcd = etcd
        self._lease = lease
        self._key = encoded(key)

    async def renew(self) -> bool:
        """A lease outlives a key that somebody deletes, so the key is read, too."""
        try:
            answer = await self._etcd.call("lease/keepalive", {"ID": self._lease})
            if not int(answer.get("result", {}).get("TTL", 0)):
                return False
            found = await self._etcd.call("kv/range", {"key": self._key, "count_only": True})
        except (Refused, ConfigurationError):
            return False
        return int(found.get("count", 0)) == 1

    async def end(self) -> None:
        try:
            await self._etcd.call("lease/revoke", {"ID": self._lease})
        except (CoordinatorUnavailable, ConfigurationError, Refused):
            return


def all_below(path: str) -> dict[str, str]:
    """All keys that begin with this path: up to the next text of the same length."""
    return {"key": encoded(path), "range_end": encoded(f"{path[:-1]}{chr(ord(path[-1]) + 1)}")}


def nodes_in(answer: dict[str, Any], path: str) -> frozenset[UUID]:
    names = [decoded(one["key"]).removeprefix(path) for one in answer.get("kvs", ())]
    return frozenset(node for name in names if (node := node_of(name)) is not None)


def with_port(host: str) -> str:
    return host if host.rpartition("]")[2].count(":") or host.count(":") == 1 else f"{host}:{DEFAULT_PORT}"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decoded(text: str) -> str:
    return base64.b64decode(text).decode("utf-8", "replace")
