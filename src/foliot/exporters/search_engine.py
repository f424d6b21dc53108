"""Speaks to an OpenSearch or an Elasticsearch: its templates, its policy, and documents in bulk.

Each request has a time limit, redirects are not followed, and an answer is read up to a bound. So a search engine that
is dead, hung or lying costs one service a few seconds and nothing else.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from foliot.config import Config
from foliot.exporters.search_documents import Document, ilm_policy, ism_policy, template_of
from foliot.outbound.requests import read, tls

REQUEST_SECONDS = 30.0
ANSWER_MAX_BYTES = 4_194_304
WHY_MAX = 300
BULK = "/_bulk?filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason"
# The document is right, and the index can't take it now.
PASSING = ("validation_exception", "index_closed_exception", "cluster_block_exception")
NO_POLICY = (400, 403, 404, 405, 501)


class EngineUnavailable(Exception):
    """The search engine did not take a request. It may take a later one."""


class Reason(msgspec.Struct, frozen=True):
    type: str = ""
    reason: str | None = None

    def __str__(self) -> str:
        return f"{self.type}: {self.reason or ''}"[:WHY_MAX]


class Result(msgspec.Struct, frozen=True):
    status: int
    error: Reason | None = None


class Item(msgspec.Struct, frozen=True):
    index: Result


class BulkAnswer(msgspec.Struct, frozen=True):
    items: list[Item]


class Version(msgspec.Struct, frozen=True):
    number: str
    distribution: str = "elasticsearch"


class About(msgspec.Struct, frozen=True):
    version: Version


class StoredPolicy(msgspec.Struct, frozen=True):
    seq_no: int = msgspec.field(name="_seq_no")
    primary_term: int = msgspec.field(name="_primary_term")


@dataclass(frozen=True, slots=True)
class Taken:
    """The answer to a bulk request. The engine has the documents that it does not name."""

    refused: Sequence[tuple[Document, str]]
    """Documents that the engine will never take, each with the reason."""
    waiting: Sequence[Document]
    """Documents that the engine did not take this time."""
    why: str = ""
    """Of one that waits."""


class SearchEngine:
    def __init__(self, config: Config) -> None:
        self._url = config.search_url.rstrip("/")
        self._prefix = config.search_prefix
        self._keep_days = config.search_keep_days
        self._headers = {"user-agent": "foliot", "accept-encoding": "identity", **_authorization(config)}
        self._ca_file = config.http_ca_file
        self._client: httpx.AsyncClient | None = None

    async def prepare(self) -> str:
        """Stores the templates and the policy. Returns why there is no policy, or nothing."""
        about = self._decoded(await self._asked("GET", "/"), About)
        is_opensearch = about.version.distribution == "opensearch"
        missing = await (self._put_ism_policy() if is_opensearch else self._put_ilm_policy())
        settings = {} if is_opensearch or missing else {"index.lifecycle.name": self._prefix}
        for kind in ("runs", "logs"):
            path = f"/_index_template/{self._prefix}-{kind}"
            self._decoded(await self._asked("PUT", path, template_of(kind, self._prefix, settings)), dict)
        return missing

    async def send(self, documents: Sequence[Document]) -> Taken:
        """Raises `EngineUnavailable`."""
        status, body = await self._request("POST", BULK, b"".join(one.lines for one in documents))
        if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            return await self._send_in_halves(documents)
        items = self._decoded((status, body), BulkAnswer).items
        if len(items) != len(documents):
            raise EngineUnavailable(f"the answer is about {len(items)} of {len(documents)} documents")
        refused, waiting, why = [], [], ""
        for document, item in zip(documents, items, strict=True):
            result = item.index
            reason = result.error or Reason()
            if result.status == httpx.codes.BAD_REQUEST and reason.type not in PASSING:
                refused.append((document, str(reason)))
            elif not 200 <= result.status < 300:
                waiting.append(document)
                why = f"{result.status} {reason}"
        return Taken(refused, waiting, why)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _send_in_halves(self, documents: Sequence[Document]) -> Taken:
        if len(documents) == 1:
            return Taken([(documents[0], f"a document of {len(documents[0].lines)} bytes is too large")], [])
        middle = len(documents) // 2
        first, second = await self.send(documents[:middle]), await self.send(documents[middle:])
        return Taken([*first.refused, *second.refused], [*first.waiting, *second.waiting], first.why or second.why)

    async def _put_ilm_policy(self) -> str:
        answer = await self._asked("PUT", f"/_ilm/policy/{self._prefix}", ilm_policy(self._keep_days))
        return self._missing(answer)

    async def _put_ism_policy(self) -> str:
        path = f"/_plugins/_ism/policies/{self._prefix}"
        # Replacing an existing policy needs its version.
        found = await self._asked("GET", path)
        if found[0] == httpx.codes.OK:
            stored = self._decoded(found, StoredPolicy)
            path += f"?if_seq_no={stored.seq_no}&if_primary_term={stored.primary_term}"
        answer = await self._asked("PUT", path, ism_policy(self._prefix, self._keep_days))
        # Another process has just stored it.
        return "" if answer[0] == httpx.codes.CONFLICT else self._missing(answer)

    def _missing(self, answer: tuple[int, bytes]) -> str:
        if answer[0] in NO_POLICY:
            return f"the search engine refused a policy with {answer[0]}, so its indexes are never deleted"
        self._decoded(answer, dict)
        return ""

    def _decoded(self, answer: tuple[int, bytes], expected: type[Any]) -> Any:
        status, body = answer
        if not 200 <= status < 300:
            raise EngineUnavailable(f"the search engine answers {status}")
        try:
            return msgspec.json.decode(body, type=expected)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise EngineUnavailable("the answer is not that of a search engine") from None

    async def _asked(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        return await self._request(method, path, None if content is None else msgspec.json.encode(content))

    async def _request(self, method: str, path: str, content: bytes | None) -> tuple[int, bytes]:
        if self._client is None:
            self._client = httpx.AsyncClient(
                verify=tls(self._ca_file), trust_env=False, timeout=REQUEST_SECONDS, follow_redirects=False
            )
        kind = "application/x-ndjson" if path == BULK else "application/json"
        headers = self._headers if content is None else self._headers | {"content-type": kind}
        try:
            async with (
                asyncio.timeout(REQUEST_SECONDS),
                self._client.stream(method, self._url + path, content=content, headers=headers) as answer,
            ):
                body, is_whole = await read(answer, ANSWER_MAX_BYTES)
        except TimeoutError:
            raise EngineUnavailable(f"no answer within {REQUEST_SECONDS:g} s") from None
        except httpx.HTTPError as error:
            raise EngineUnavailable(f"{type(error).__name__}: {error}") from None
        if not is_whole:
            raise EngineUnavailable("the answer is too long to be that of a search engine")
        return answer.status_code, body


def _authorization(config: Config) -> dict[str, str]:
    if config.search_api_key:
        return {"authorization": f"ApiKey {config.search_api_key}"}
    if config.search_username:
        pair = f"{config.search_username}:{config.search_password}".encode()
        return {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}
