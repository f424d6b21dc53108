"""`Client`: Foliot's HTTP API, called from plain synchronous code.

    with Client.from_environment() as client:
        job = client.create_job({"task": "send_invoice", "payload": {"customer_id": 7}}).document
        client.wait_for_job(job["id"])

A refusal of the server is raised as the same error that the server raised. An answer that never came is `Unreachable`;
its `is_doubtful` says whether the request may have been carried out all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import httpx
import msgspec

from foliot.clock import SystemClock, block
from foliot.config import from_environment
from foliot.errors import Busy, FoliotError, StoreUnavailable, Unreachable
from foliot.sdk.default_connection import Server
from foliot.sdk.http_protocol import (
    ANSWER_SECONDS,
    DEFAULT_URL,
    Answer,
    Document,
    Wire,
    batch_of,
    given,
    made_of,
    path_of,
    pauses_for,
)
from foliot.sdk.jobs import Alike, Made

PAGE = 200
# Worth another look in a moment, when nothing but looking is asked for.
PASSING = (Unreachable, StoreUnavailable, Busy)
ENDED = frozenset({"completed", "failed", "cancelled", "skipped"})
# A server that is restarted or fails over is back by then.
PATIENCE_SECONDS = 30.0
FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 0.05, 1.0


class Page(msgspec.Struct, frozen=True):
    """Items are handed on as they are, so that no number loses a digit on the way."""

    items: list[msgspec.Raw]
    next: str | None = None


class Client:
    """Use as a context manager; it keeps its connection from one request to the next."""

    def __init__(
        self, url: str = DEFAULT_URL, *, token: str = "", namespace: str = "", answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self._wire = Wire(url, token=token, namespace=namespace, answer_seconds=answer_seconds)
        self._http = httpx.Client(**self._wire.settings)

    @classmethod
    def from_environment(cls, *, answer_seconds: float = ANSWER_SECONDS) -> Self:
        """The server that FOLIOT_URL names, with the token in FOLIOT_TOKEN and in the namespace FOLIOT_NAMESPACE if
        there are such.

        FOLIOT_URL_FILE and FOLIOT_TOKEN_FILE name files that hold them instead.
        """
        url, token, namespace = (
            from_environment("FOLIOT_URL"),
            from_environment("FOLIOT_TOKEN"),
            os.environ.get("FOLIOT_NAMESPACE", ""),
        )
        return cls(url or DEFAULT_URL, token=token, namespace=namespace, answer_seconds=answer_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    @property
    def server(self) -> Server:
        """The same server, for what is submitted through this client."""
        return Server(self._wire.url, self._wire.token, self._wire.namespace, client=self)

    def create_job(self, job: Mapping[str, Any]) -> Answer:
        """Creates a job of the API's own fields, one-off or recurring. With an idempotency key, a lost answer is asked
        for again."""
        return self._repeated("/v1/jobs", job)

    def check_job(self, job: Mapping[str, Any]) -> Answer:
        """What a job would become, or what is wrong with it. Nothing is stored."""
        return self._answer("POST", "/v1/jobs/check", job)

    def create_jobs(self, jobs: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None) -> Answer:
        """Creates up to 10,000 one-off jobs, all of them or none."""
        return self._repeated("/v1/jobs/batch", batch_of(jobs, idempotency_key))

    def create_alike(self, jobs: Alike, *, idempotency_key: str | None = None) -> list[Made]:
        """The same for jobs that differ in their payloads alone."""
        return made_of(self.create_jobs(jobs, idempotency_key=idempotency_key))

    def get_job(self, reference: str) -> Answer:
        return self._answer("GET", path_of(reference))

    def list_jobs(self, *, tag: str | None = None) -> Answer:
        """All recurring jobs, or those with a tag, by name, in the shape of one page."""
        items = [item for page in self._pages(tag) for item in page.items]
        return self._wire.understood(msgspec.json.encode(Page(items)))

    def change_job(self, reference: str, fields: Mapping[str, Any]) -> Answer:
        """Changes these fields of a recurring job, and no others."""
        return self._answer("PATCH", path_of(reference), fields)

    def delete_job(self, reference: str) -> None:
        self._send("DELETE", path_of(reference))

    def pause_job(self, reference: str, *, reason: str | None = None, until: str | None = None) -> Answer:
        return self._answer("POST", path_of(reference, "/pause"), given(reason=reason, until=until))

    def resume_job(self, reference: str) -> Answer:
        return self._answer("POST", path_of(reference, "/resume"))

    def pause_jobs(self, group: Mapping[str, Any]) -> Answer:
        """Pauses the recurring jobs that fit `name` (a pattern), `task` and `queue`; with `dry_run`, only says
        which."""
        return self._answer("POST", "/v1/jobs/pause", group)

    def resume_jobs(self, group: Mapping[str, Any]) -> Answer:
        return self._answer("POST", "/v1/jobs/resume", group)

    def trigger_jobs(self, group: Mapping[str, Any]) -> Answer:
        """Runs those that fit once now; `expected` says how many they are. With an idempotency key, a lost answer is
        asked for again."""
        return self._repeated("/v1/jobs/trigger", group)

    def delete_jobs(self, group: Mapping[str, Any]) -> Answer:
        """Deletes those that fit; `expected` says how many they are."""
        return self._answer("POST", "/v1/jobs/delete", group)

    def pause_gate(self, gate: str, *, reason: str | None = None, until: str | None = None) -> Answer:
        """Pauses `/queues/NAME`, `/tasks/NAME`, or `/`: everything."""
        return self._answer("POST", f"/v1{gate.rstrip('/')}/pause", given(reason=reason, until=until))

    def resume_gate(self, gate: str) -> Answer:
        return self._answer("POST", f"/v1{gate.rstrip('/')}/resume")

    def trigger_job(self, reference: str) -> Answer:
        return self._answer("POST", path_of(reference, "/trigger"))

    def backfill_job(self, reference: str, backfill: Mapping[str, Any]) -> Answer:
        """Runs the ticks `from` one instant `to` another; with `dry_run`, only says which."""
        return self._answer("POST", path_of(reference, "/backfill"), backfill)

    def cancel_run(self, run_id: str, *, reason: str | None = None, force: bool = False) -> Answer:
        return self._answer("POST", path_of(run_id, "/cancel"), given(force=force, reason=reason))

    def create_workflow(self, workflow: Mapping[str, Any]) -> Answer:
        """Creates a workflow of the API's own fields. With an idempotency key, a lost answer is asked for again."""
        return self._repeated("/v1/workflows", workflow)

    def check_workflow(self, workflow: Mapping[str, Any]) -> Answer:
        """What a workflow would become, or what is wrong with it. Nothing is stored."""
        return self._answer("POST", "/v1/workflows/check", workflow)

    def get_workflow(self, workflow_id: str) -> Answer:
        return self._answer("GET", path_of(workflow_id, kind="workflow"))

    def cancel_workflow(self, workflow_id: str, *, reason: str | None = None, force: bool = False) -> Answer:
        return self._answer("POST", path_of(workflow_id, "/cancel", kind="workflow"), given(reason=reason, force=force))

    def redrive_workflow(self, workflow_id: str) -> Answer:
        """Runs again what failed or was cancelled, and what follows from it."""
        return self._answer("POST", path_of(workflow_id, "/redrive", kind="workflow"))

    def signal_run(self, run_id: str, payload: Any = None, *, approved: bool = True, message: str = "") -> Answer:
        """Lets a run start that waits for a signal, or makes it fail."""
        body = {"payload": payload, "approved": approved, "message": message}
        return self._answer("POST", path_of(run_id, "/signal", kind="run"), body)

    def wait_for_workflow(self, workflow_id: str, timeout: float | None = None) -> str:
        """Its status once it has ended, well or not."""
        while (now := self.get_workflow(workflow_id).document)["status"] not in ENDED:
            # Its run is less to look at than all its steps; a redrive that comes in between gives it another one.
            self.wait_for_job(now["run_id"], timeout)
        return str(now["status"])

    def wait_for_steps(self, workflow_id: str, timeout: float | None = None) -> Answer:
        """The workflow once it has begun, and its steps are runs; or ended without."""
        patience = Patience(workflow_id, timeout, what="workflow", done="begun")
        while True:
            try:
                answer = self.get_workflow(workflow_id)
            except PASSING as error:
                patience.lost(error)
            else:
                if patience.is_over(answer.document) or answer.document["steps"][0]["id"] is not None:
                    return answer
            block(patience.pause())

    def list_ticks(self, reference: str, *, limit: int) -> Answer:
        """The latest ticks with what became of each, latest first."""
        return self._answer("GET", path_of(reference, "/ticks"), query={"limit": limit})

    def next_ticks(self, reference: str, *, count: int) -> Answer:
        return self._answer("GET", path_of(reference, "/next"), query={"count": count})

    def wait_for_job(self, job_id: str, timeout: float | None = None) -> Answer:
        """The one-off job once it has ended, well or not. A server that is away for a while is waited for, too.

        Raises `TimeoutError` when it has not ended so many seconds later.
        """
        patience = Patience(job_id, timeout)
        while True:
            try:
                answer = self.get_job(job_id)
            except PASSING as error:
                patience.lost(error)
            else:
                if patience.is_over(answer.document):
                    return answer
            block(patience.pause())

    def _repeated(self, path: str, body: Mapping[str, Any]) -> Answer:
        for pause in pauses_for(body):
            try:
                return self._answer("POST", path, body)
            except (Unreachable, StoreUnavailable):
                block(pause)
        return self._answer("POST", path, body)

    def _pages(self, tag: str | None) -> Iterator[Page]:
        after: str | None = ""
        while after is not None:
            content = self._send("GET", "/v1/jobs", query={"after": after, "limit": PAGE, **given(tag=tag)})
            try:
                page = msgspec.json.decode(content, type=Page)
            except (msgspec.DecodeError, RecursionError):
                raise self._wire.foreign("something else than a list of jobs") from None
            yield page
            after = page.next

    def _answer(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str | int] | None = None,
    ) -> Answer:
        return self._wire.understood(self._send(method, path, body, query))

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str | int] | None = None,
    ) -> bytes:
        """The body of a good answer. Everything else is raised."""
        sent = self._wire.request(body, query)
        try:
            answer = self._http.request(method, path, **sent)
        except httpx.HTTPError as error:
            raise self._wire.failure(error, is_reading=method == "GET") from None
        return self._wire.content_of(answer)


class Patience:
    """When to look again at what is waited for, and when to stop."""

    def __init__(self, job_id: str, timeout: float | None, *, what: str = "job", done: str = "ended") -> None:
        self._clock = SystemClock()
        self._late = f"{what} {job_id} has not {done} within"
        self._timeout = timeout
        self._began_at = self._clock.monotonic()
        self._lost_at: float | None = None
        self._pause = FIRST_LOOK_SECONDS

    def lost(self, error: FoliotError) -> None:
        """The server did not answer. Raises its error when that has been so for too long."""
        now = self._clock.monotonic()
        self._lost_at = now if self._lost_at is None else self._lost_at
        if now - self._lost_at > PATIENCE_SECONDS:
            raise error

    def is_over(self, job: Document) -> bool:
        self._lost_at = None
        return job["status"] in ENDED

    def pause(self) -> float:
        """How long to wait before the next look. Raises `TimeoutError` when there is no time left."""
        pause, self._pause = self._pause, min(self._pause * 1.5, LAST_LOOK_SECONDS)
        if self._timeout is None:
            return pause
        left = self._began_at + self._timeout - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self._late} {self._timeout:g} s")
        return min(pause, left)
