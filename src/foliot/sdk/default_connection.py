"""`Server`: the server or database that an app submits to. Loads and connects nothing until the first use."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from foliot.config import from_environment, without_password
from foliot.errors import ConfigurationError
from foliot.model.namespace import DEFAULT

if TYPE_CHECKING:
    from foliot.sdk.async_client import AsyncClient
    from foliot.sdk.client import Client
    from foliot.sdk.direct_client import DatabaseClient
    from foliot.sdk.jobs import AsyncJobs, Jobs
    from foliot.sdk.operations import Operations

DATABASE_SCHEMES = ("postgresql://", "postgres://")


class Address(NamedTuple):
    """A URL with the token and namespace to use there."""

    url: str
    token: str
    namespace: str

    @property
    def is_database(self) -> bool:
        return self.url.startswith(DATABASE_SCHEMES)


class Server:
    """A server or database, by default that of FOLIOT_URL, FOLIOT_TOKEN and FOLIOT_NAMESPACE.

    Safe to use from any thread, and after a fork.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        namespace: str | None = None,
        *,
        client: Client | None = None,
    ) -> None:
        """With `client`, all requests use that client."""
        self._url = url
        self._token = token
        self._namespace = namespace
        self._given = client
        self._lock = threading.Lock()
        self._clients: dict[tuple[int, Address], Client] = {}
        self._databases: dict[tuple[int, Address], DatabaseClient] = {}

    def jobs(self) -> Jobs:
        """A client for one-off jobs, of the server or the database."""
        if self._given is None and (address := self._address()).is_database:
            return self._database(address)
        return self.client()

    def async_jobs(self) -> AsyncJobs:
        """An async client for one-off jobs. Use it as an async context manager."""
        address = self._address()
        return self._database(address).twin() if address.is_database else self.async_client()

    def client(self) -> Client:
        """A shared client. A forked process gets its own, because processes can't share connections."""
        if self._given is not None:
            return self._given
        from foliot.sdk.client import Client  # Lazy: many programs define tasks but submit none.

        address = self._http()
        with self._lock:
            key = (os.getpid(), address)
            if key not in self._clients:
                self._clients[key] = Client(address.url, token=address.token, namespace=address.namespace)
            return self._clients[key]

    def async_client(self) -> AsyncClient:
        """A new async client, to be closed. Its connections belong to the current event loop."""
        from foliot.sdk.async_client import AsyncClient

        address = self._http()
        return AsyncClient(address.url, token=address.token, namespace=address.namespace)

    def operations(self) -> Operations:
        """A new client of the whole API, to be closed."""
        from foliot.sdk.operations import Operations

        address = self._http()
        return Operations(address.url, token=address.token, namespace=address.namespace)

    def close(self) -> None:
        with self._lock:
            clients, databases = self._clients, self._databases
            self._clients, self._databases = {}, {}
        opened: list[tuple[int, Jobs]] = [(process, client) for (process, _), client in clients.items()]
        opened += [(process, client) for (process, _), client in databases.items()]
        for process, client in opened:
            if process == os.getpid():
                client.close()

    def _database(self, address: Address) -> DatabaseClient:
        key = (os.getpid(), address)
        if (found := self._databases.get(key)) is not None:
            return found
        from foliot.sdk.direct_client import DatabaseClient

        with self._lock:
            if key not in self._databases:
                self._databases[key] = DatabaseClient(address.url, address.namespace)
            return self._databases[key]

    def namespace_field(self) -> dict[str, str]:
        """The namespace field for the SQL function `foliot.submit`."""
        namespace = self._address().namespace
        return {} if namespace in ("", DEFAULT) else {"namespace": namespace}

    def _http(self) -> Address:
        address = self._address()
        if address.is_database:
            raise ConfigurationError(
                f"{without_password(address.url)} is a database, and this operation needs a server; use an http:// URL "
                "(a database supports only one-off jobs: submit, status, wait and cancel)"
            )
        return address

    def _address(self) -> Address:
        url = self._url or from_environment("FOLIOT_URL") or _default_url()
        namespace = os.environ.get("FOLIOT_NAMESPACE", "") if self._namespace is None else self._namespace
        if url.startswith(DATABASE_SCHEMES):
            # No token is used there. Each look into the environment takes as long as a tenth of a submission.
            return Address(url, "", namespace)
        return Address(url, from_environment("FOLIOT_TOKEN") if self._token is None else self._token, namespace)


def _default_url() -> str:
    from foliot.sdk.http_protocol import DEFAULT_URL

    return DEFAULT_URL
