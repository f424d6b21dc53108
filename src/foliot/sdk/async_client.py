"""`AsyncClient`: an async client of the HTTP API, for submitting jobs and workflows and waiting for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import httpx

from foliot.clock import SystemClock
from foliot.errors import StoreUnavailable, Unreachable
from foliot.sdk.client import ENDED, TRANSIENT_ERRORS, Patience
from foliot.sdk.default_connection import Server
from foliot.sdk.http_protocol import (
    ANSWER_SECONDS,
    DEFAULT_URL,
    Answer,
    Wire,
    batch_of,
    given,
    made_of,
    path_of,
    pauses_for,
)
from foliot.sdk.jobs import Alike, Made


class AsyncClient:
    """An async client of the HTTP API. Use it as an async context manager; it reuses its connections.

    The methods are the same as those of `Client`.
    """

    def __init__(
        self, url: str = DEFAULT_URL, *, token: str = "", namespace: str = "", answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self._wire = Wire(url, token=token, namespace=namespace, answer_seconds=answer_seconds)
        self._http = httpx.AsyncClient(**self._wire.settings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    @property
    def server(self) -> Server:
        """The server of this client, for `Workflow.submit_async(client)`."""
        return Server(self._wire.url, self._wire.token, self._wire.namespace)

    async def create_job(self, job: Mapping[str, Any]) -> Answer:
        return await self._repeated("/v1/jobs", job)

    async def create_jobs(self, jobs: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None) -> Answer:
        return await self._repeated("/v1/jobs/batch", batch_of(jobs, idempotency_key))

    async def create_alike(self, jobs: Alike, *, idempotency_key: str | None = None) -> list[Made]:
        return made_of(await self.create_jobs(jobs, idempotency_key=idempotency_key))

    async def get_job(self, reference: str) -> Answer:
        return await self._answer("GET", path_of(reference))

    async def cancel_run(self, run_id: str, *, reason: str | None = None, force: bool = False) -> Answer:
        return await self._answer("POST", path_of(run_id, "/cancel"), given(force=force, reason=reason))

    async def wait_for_job(self, job_id: str, timeout: float | None = None) -> Answer:
        """Waits for a one-off job to end. Raises `TimeoutError` after `timeout` seconds."""
        patience = Patience(job_id, timeout)
        while True:
            try:
                answer = await self.get_job(job_id)
            except TRANSIENT_ERRORS as error:
                patience.lost(error)
            else:
                if patience.is_over(answer.document):
                    return answer
            await SystemClock().sleep(patience.pause())

    async def create_workflow(self, workflow: Mapping[str, Any]) -> Answer:
        return await self._repeated("/v1/workflows", workflow)

    async def get_workflow(self, workflow_id: str) -> Answer:
        return await self._answer("GET", path_of(workflow_id, kind="workflow"))

    async def cancel_workflow(self, workflow_id: str, *, reason: str | None = None, force: bool = False) -> Answer:
        return await self._answer(
            "POST", path_of(workflow_id, "/cancel", kind="workflow"), given(reason=reason, force=force)
        )

    async def redrive_workflow(self, workflow_id: str) -> Answer:
        return await self._answer("POST", path_of(workflow_id, "/redrive", kind="workflow"))

    async def signal_run(
        self,
        run_id: str,
        payload: Any = None,
        *,
        approved: bool = True,
        message: str = "",
        name: str | None = None,
    ) -> Answer:
        body = {"payload": payload, "approved": approved, "message": message} | ({"name": name} if name else {})
        return await self._answer("POST", path_of(run_id, "/signal", kind="run"), body)

    async def wait_for_workflow(self, workflow_id: str, timeout: float | None = None) -> str:
        while (now := (await self.get_workflow(workflow_id)).document)["status"] not in ENDED:
            await self.wait_for_job(now["run_id"], timeout)
        return str(now["status"])

    async def wait_for_steps(self, workflow_id: str, timeout: float | None = None) -> Answer:
        patience = Patience(workflow_id, timeout, what="workflow", done="begun")
        while True:
            try:
                answer = await self.get_workflow(workflow_id)
            except TRANSIENT_ERRORS as error:
                patience.lost(error)
            else:
                if patience.is_over(answer.document) or answer.document["steps"][0]["id"] is not None:
                    return answer
            await SystemClock().sleep(patience.pause())

    async def _repeated(self, path: str, body: Mapping[str, Any]) -> Answer:
        for pause in pauses_for(body):
            try:
                return await self._answer("POST", path, body)
            except (Unreachable, StoreUnavailable):
                await SystemClock().sleep(pause)
        return await self._answer("POST", path, body)

    async def _answer(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        sent = self._wire.request(body)
        try:
            answer = await self._http.request(method, path, **sent)
        except httpx.HTTPError as error:
            raise self._wire.failure(error, is_reading=method == "GET") from None
        return self._wire.understood(self._wire.content_of(answer))
