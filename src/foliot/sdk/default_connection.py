"""Where an app submits its jobs to. Nothing is loaded or connected before the first job is submitted."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True)
class Where:
    url: str
    token: str
    namespace: str

    @property
    def is_database(self) -> bool:
        return self.url.startswith(DATABASE_SCHEMES)


class Server:
    """That of FOLIOT_URL, FOLIOT_TOKEN and FOLIOT_NAMESPACE, unless the app says otherwise; or a database, by its URL.

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
        """`client` is one of the caller's, used as it is."""
        self._url = url
        self._token = token
        self._namespace = namespace
        self._given = client
        self._lock = threading.Lock()
        self._clients: dict[tuple[int, Where], Client] = {}
        self._databases: dict[tuple[int, Where], DatabaseClient] = {}

    def jobs(self) -> Jobs:
        """For jobs that run once: whatever is there, a server or a database."""
        return self._database() if self._given is None and self._where().is_database else self.client()

    def async_jobs(self) -> AsyncJobs:
        """To be used as an async context manager, as `async_client` is."""
        return self._database().twin() if self._where().is_database else self.async_client()

    def client(self) -> Client:
        """One that keeps its connections. A process that was forked makes its own: a connection can't be shared."""
        if self._given is not None:
            return self._given
        from foliot.sdk.client import Client  # here, because not every program that has tasks submits some

        where = self._http()
        with self._lock:
            key = (os.getpid(), where)
            if key not in self._clients:
                self._clients[key] = Client(where.url, token=where.token, namespace=where.namespace)
            return self._clients[key]

    def async_client(self) -> AsyncClient:
        """A new one each time, to be closed: its connections belong to the event loop that it is used on."""
        from foliot.sdk.async_client import AsyncClient

        where = self._http()
        return AsyncClient(where.url, token=where.token, namespace=where.namespace)

    def operations(self) -> Operations:
        """A client of its own for all that the API can do, to be closed."""
        from foliot.sdk.operations import Operations

        where = self._http()
        return Operations(where.url, token=where.token, namespace=where.namespace)

    def close(self) -> None:
        with self._lock:
            clients, databases = self._clients, self._databases
            self._clients, self._databases = {}, {}
        opened: list[tuple[int, Jobs]] = [(process, client) for (process, _), client in clients.items()]
        opened += [(process, client) for (process, _), client in databases.items()]
        for process, client in opened:
            if process == os.getpid():
                client.close()

    def _database(self) -> DatabaseClient:
        from foliot.sdk.direct_client import DatabaseClient

        where = self._where()
        with self._lock:
            key = (os.getpid(), where)
            if key not in self._databases:
                self._databases[key] = DatabaseClient(where.url, where.namespace)
            return self._databases[key]

    def namespace_field(self) -> dict[str, str]:
        """What tells the function in the database in which namespace a job is to be."""
        namespace = self._where().namespace
        return {} if namespace in ("", DEFAULT) else {"namespace": namespace}

    def _http(self) -> Where:
        where = self._where()
        if where.is_database:
            raise ConfigurationError(
                f"{without_password(where.url)} is a database, and this needs a server: connect to http://... "
                "(of jobs that run once, a database can submit, show, wait for and cancel)"
            )
        return where

    def _where(self) -> Where:
        from foliot.sdk.http_protocol import DEFAULT_URL

        return Where(
            self._url or from_environment("FOLIOT_URL") or DEFAULT_URL,
            from_environment("FOLIOT_TOKEN") if self._token is None else self._token,
            os.environ.get("FOLIOT_NAMESPACE", "") if self._namespace is None else self._namespace,
        )
