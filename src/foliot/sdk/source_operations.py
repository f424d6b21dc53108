"""Sources of jobs over the API, for the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foliot.sdk.http_protocol import Answer, path_of
from foliot.sdk.operations import Operations

SOURCES = "/v1/sources"


class SourceOperations(Operations):
    def list_sources(self) -> Answer:
        return self._answer("GET", SOURCES)

    def get_source(self, name: str) -> Answer:
        """Returns a source. Its `etag` is for `put_source`."""
        return self._answer("GET", _path(name))

    def put_source(self, name: str, definition: Mapping[str, Any], *, if_match: str = "") -> Answer:
        """Creates a source, or replaces it. With `if_match`, only if nobody has changed it meanwhile."""
        return self._answer("PUT", _path(name), definition, if_match=if_match)

    def delete_source(self, name: str) -> None:
        self._send("DELETE", _path(name))

    def list_dead_messages(self, name: str, *, after: str = "") -> Answer:
        """Lists a page of dead messages, the newest first."""
        return self._answer("GET", _path(name, "/dead-messages"), query={"after": after} if after else None)

    def retry_dead_message(self, name: str, message_id: str) -> Answer:
        return self._answer("POST", _path(name, f"/dead-messages/{message_id}/retry"))

    def delete_dead_message(self, name: str, message_id: str) -> None:
        self._send("DELETE", _path(name, f"/dead-messages/{message_id}"))


def _path(name: str, rest: str = "") -> str:
    return path_of(name, rest, root=SOURCES, kind="source")
