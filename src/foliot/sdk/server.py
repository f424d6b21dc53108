"""Where an app submits its jobs to. Nothing is loaded or connected before the first job is submitted."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foliot.sdk.async_client import AsyncClient
    from foliot.sdk.client import Client


class Server:
    """That of FOLIOT_URL and FOLIOT_TOKEN, unless the app says otherwise. Safe to use from any thread, and after a fork."""

    def __init__(self, url: str | None = None, token: str | None = None, *, client: Client | None = None) -> None:
        """`client` is one of the caller's, used as it is."""
        self._url = url
        self._token = token
        self._given = client
        self._lock = threading.Lock()
        self._clients: dict[tuple[int, str, str], Client] = {}

    def client(self) -> Client:
        """One that keeps its connections. A process that was forked makes its own: a connection can't be shared."""
        if self._given is not None:
            return self._given
        from foliot.sdk.client import Client  # here, because not every program that has tasks submits some

        url, token = self._where()
        with self._lock:
            key = (os.getpid(), url, token)
            if key not in self._clients:
                self._clients[key] = Client(url, token=token)
            return self._clients[key]

    def async_client(self) -> AsyncClient:
        """A new one each time, to be closed: its connections belong to the event loop that it is used on."""
        from foliot.sdk.async_client import AsyncClient

        url, token = self._where()
        return AsyncClient(url, token=token)

    def close(self) -> None:
        with self._lock:
            clients, self._clients = self._clients, {}
        for (process, _, _), client in clients.items():
            if process == os.getpid():
                client.close()

    def _where(self) -> tuple[str, str]:
        from foliot.sdk.wire import DEFAULT_URL

        url = self._url or os.environ.get("FOLIOT_URL") or DEFAULT_URL
        return url, os.environ.get("FOLIOT_TOKEN", "") if self._token is None else self._token
