"""`Client`: a synchronous client of the HTTP API.

    with Client.from_environment() as client:
        job = client.create_job({"task": "send_invoice", "payload": {"customer_id": 7}}).document
        client.wait_for_job(job["id"])

If the server rejects a request, the client raises the same error as the server (`foliot.errors`). If no answer arrives,
it raises `Unreachable`, whose `is_doubtful` says whether the server may have processed the request.
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
# Errors that usually pass, so that a read can be retried.
TRANSIENT_ERRORS = (Unreachable, StoreUnavailable, Busy)
ENDED = frozenset({"completed", "failed", "cancelled", "skipped"})
# Enough for a server to restart or fail over.
PATIENCE_SECONDS = 30.0
FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 0.05, 1.0


class Page(msgspec.Struct, frozen=True):
    """A page of a list. Items stay encoded, so that no number loses a digit."""

    items: list[msgspec.Raw]
    next: str | None = None


class Client:
    """A synchronous client of the HTTP API. Use it as a context manager; it reuses its connections.

    Methods return an `Answer`: `answer.document` is the decoded JSON, `answer.content` the response body.
    """

    def __init__(
        self, url: str = DEFAULT_URL, *, token: str = "", namespace: str = "", answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self._wire = Wire(url, token=token, namespace=namespace, answer_seconds=answer_seconds)
        self._http = httpx.Client(**self._wire.settings)

    @classmethod
    def from_environment(cls, *, answer_seconds: float = ANSWER_SECONDS) -> Self:
        """Creates a client for FOLIOT_URL with FOLIOT_TOKEN and FOLIOT_NAMESPACE.

        FOLIOT_URL_FILE and FOLIOT_TOKEN_FILE can name files that contain the values.
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
        """The server of this client, for `Workflow.submit(client)`."""
        return Server(self._wire.url, self._wire.token, self._wire.namespace, client=self)

    def create_job(self, job: Mapping[str, Any]) -> Answer:
        """Creates a one-off or recurring job with the fields of the API.

        A job with an idempotency key is sent again if the answer is lost.
        """
        return self._repeated("/v1/jobs", job)

    def check_job(self, job: Mapping[str, Any]) -> Answer:
        """Checks a job without storing it."""
        return self._answer("POST", "/v1/jobs/check", job)

    def create_jobs(self, jobs: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None) -> Answer:
        """Creates up to 10,000 one-off jobs in one transaction."""
        return self._repeated("/v1/jobs/batch", batch_of(jobs, idempotency_key))

    def create_alike(self, jobs: Alike, *, idempotency_key: str | None = None) -> list[Made]:
        """Creates one-off jobs that differ only in their payloads."""
        return made_of(self.create_jobs(jobs, idempotency_key=idempotency_key))

    def get_job(self, reference: str) -> Answer:
        """Returns a recurring job by name or id, or a one-off job by id. Raises `NotFound`."""
        return self._answer("GET", path_of(reference))

    def find_ids(self, prefix: str) -> Answer:
        """Finds the runs, workflows and recurring jobs whose ids begin with `prefix`."""
        return self._answer("GET", path_of(prefix, root="/v1/ids"))

    def list_jobs(self, *, tag: str | None = None, paused: bool = False) -> Answer:
        """Lists all recurring jobs, those with a tag, or the paused ones, by name, as a single page."""
        items = [item for page in self._pages(given(tag=tag, paused=1 if paused else None)) for item in page.items]
        return self._wire.understood(msgspec.json.encode(Page(items)))

    def change_job(self, reference: str, fields: Mapping[str, Any]) -> Answer:
        """Changes the given fields of a recurring job."""
        return self._answer("PATCH", path_of(reference), fields)

    def delete_job(self, reference: str) -> None:
        """Deletes a recurring job. Its finished runs stay in the history."""
        self._send("DELETE", path_of(reference))

    def list_job_versions(self, reference: str, *, limit: int = 50) -> Answer:
        """Lists the versions of a recurring job, or of a deleted one, the latest first."""
        return self._answer("GET", path_of(reference, "/versions"), query={"limit": limit})

    def restore_job(self, reference: str, version: int | None = None) -> Answer:
        """Makes a version of a recurring job current again, or makes a deleted job again."""
        return self._answer("POST", path_of(reference, "/restore"), given(version=version))

    def list_deleted_jobs(self) -> Answer:
        """Lists recurring jobs that were deleted lately and can be restored."""
        return self._answer("GET", "/v1/deleted-jobs")

    def pause_job(self, reference: str, *, reason: str | None = None, until: str | None = None) -> Answer:
        """Pauses a recurring job, optionally until an ISO 8601 time."""
        return self._answer("POST", path_of(reference, "/pause"), given(reason=reason, until=until))

    def resume_job(self, reference: str) -> Answer:
        """Resumes a recurring job with its next tick from now on."""
        return self._answer("POST", path_of(reference, "/resume"))

    def pause_jobs(self, group: Mapping[str, Any]) -> Answer:
        """Pauses the recurring jobs that match `name` (a pattern), `task` and `queue`; with `dry_run`, lists them."""
        return self._answer("POST", "/v1/jobs/pause", group)

    def resume_jobs(self, group: Mapping[str, Any]) -> Answer:
        """Resumes the recurring jobs that match, as in `pause_jobs`."""
        return self._answer("POST", "/v1/jobs/resume", group)

    def trigger_jobs(self, group: Mapping[str, Any]) -> Answer:
        """Runs all matching recurring jobs now. Fails unless exactly `expected` jobs match.

        A request with an idempotency key is sent again if the answer is lost.
        """
        return self._repeated("/v1/jobs/trigger", group)

    def delete_jobs(self, group: Mapping[str, Any]) -> Answer:
        """Deletes all matching recurring jobs. Fails unless exactly `expected` jobs match."""
        return self._answer("POST", "/v1/jobs/delete", group)

    def pause_gate(self, gate: str, *, reason: str | None = None, until: str | None = None) -> Answer:
        """Pauses `/queues/NAME`, `/tasks/NAME`, or everything (`/`)."""
        return self._answer("POST", f"/v1{gate.rstrip('/')}/pause", given(reason=reason, until=until))

    def resume_gate(self, gate: str) -> Answer:
        """Resumes a queue, a task or everything, as in `pause_gate`."""
        return self._answer("POST", f"/v1{gate.rstrip('/')}/resume")

    def explain(self, reference: str) -> Answer:
        """Explains why a run, a workflow, a recurring job or a queue is not running."""
        return self._answer("GET", path_of(reference, root="/v1/explain"))

    def list_pauses(self) -> Answer:
        """Lists all that is paused: queues, tasks, recurring jobs and everything."""
        return self._answer("GET", "/v1/pauses")

    def list_circuits(self) -> Answer:
        """Lists the tasks whose last run failed, and until when their circuits are open."""
        return self._answer("GET", "/v1/circuits")

    def close_circuit(self, task: str) -> Answer:
        """Closes the circuit of a task, so that its runs start again."""
        return self._answer("POST", path_of(task, "/close", root="/v1/circuits"))

    def trigger_job(self, reference: str) -> Answer:
        """Runs a recurring job now, in addition to its schedule."""
        return self._answer("POST", path_of(reference, "/trigger"))

    def backfill_job(self, reference: str, backfill: Mapping[str, Any]) -> Answer:
        """Runs the past ticks between `from` and `to`; with `dry_run`, lists them."""
        return self._answer("POST", path_of(reference, "/backfill"), backfill)

    def cancel_run(self, run_id: str, *, reason: str | None = None, force: bool = False) -> Answer:
        return self._answer("POST", path_of(run_id, "/cancel"), given(force=force, reason=reason))

    def create_workflow(self, workflow: Mapping[str, Any]) -> Answer:
        """Creates a workflow with the fields of the API. With an idempotency key, a lost request is sent again."""
        return self._repeated("/v1/workflows", workflow)

    def check_workflow(self, workflow: Mapping[str, Any]) -> Answer:
        """Checks a workflow without storing it."""
        return self._answer("POST", "/v1/workflows/check", workflow)

    def get_workflow(self, workflow_id: str) -> Answer:
        return self._answer("GET", path_of(workflow_id, kind="workflow"))

    def cancel_workflow(self, workflow_id: str, *, reason: str | None = None, force: bool = False) -> Answer:
        return self._answer("POST", path_of(workflow_id, "/cancel", kind="workflow"), given(reason=reason, force=force))

    def redrive_workflow(self, workflow_id: str) -> Answer:
        """Runs the failed and cancelled steps again, and the steps that depend on them."""
        return self._answer("POST", path_of(workflow_id, "/redrive", kind="workflow"))

    def signal_run(
        self,
        run_id: str,
        payload: Any = None,
        *,
        approved: bool = True,
        message: str = "",
        name: str | None = None,
    ) -> Answer:
        """Signals a waiting run: it starts or continues, or fails with `approved=False`.

        Args:
            name: The signal that a durable function waits for, or will wait for.
        """
        body = {"payload": payload, "approved": approved, "message": message} | ({"name": name} if name else {})
        return self._answer("POST", path_of(run_id, "/signal", kind="run"), body)

    def wait_for_workflow(self, workflow_id: str, timeout: float | None = None) -> str:
        """Waits for a workflow to end and returns its status. Raises `TimeoutError` after `timeout` seconds."""
        while (now := self.get_workflow(workflow_id).document)["status"] not in ENDED:
            # Poll the run, which is cheaper than the workflow with all its steps. A redrive creates another run.
            self.wait_for_job(now["run_id"], timeout)
        return str(now["status"])

    def wait_for_steps(self, workflow_id: str, timeout: float | None = None) -> Answer:
        """Waits until the steps of a workflow have runs, or the workflow has ended."""
        patience = Patience(workflow_id, timeout, what="workflow", done="begun")
        while True:
            try:
                answer = self.get_workflow(workflow_id)
            except TRANSIENT_ERRORS as error:
                patience.lost(error)
            else:
                if patience.is_over(answer.document) or answer.document["steps"][0]["id"] is not None:
                    return answer
            block(patience.pause())

    def list_ticks(self, reference: str, *, limit: int) -> Answer:
        """Lists the latest ticks and their outcomes, newest first."""
        return self._answer("GET", path_of(reference, "/ticks"), query={"limit": limit})

    def next_ticks(self, reference: str, *, count: int) -> Answer:
        """Lists the next ticks of a recurring job."""
        return self._answer("GET", path_of(reference, "/next"), query={"count": count})

    def wait_for_job(self, job_id: str, timeout: float | None = None) -> Answer:
        """Waits for a one-off job to end. Keeps trying for a while if the server can't be reached.

        Raises `TimeoutError` after `timeout` seconds.
        """
        patience = Patience(job_id, timeout)
        while True:
            try:
                answer = self.get_job(job_id)
            except TRANSIENT_ERRORS as error:
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

    def _pages(self, filters: Mapping[str, Any]) -> Iterator[Page]:
        after: str | None = ""
        while after is not None:
            content = self._send("GET", "/v1/jobs", query={"after": after, "limit": PAGE, **filters})
            try:
                page = msgspec.json.decode(content, type=Page)
            except (msgspec.DecodeError, RecursionError):
                raise self._wire.foreign("a response that is not a list of jobs") from None
            yield page
            after = page.next

    def _answer(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str | int] | None = None,
        if_match: str = "",
    ) -> Answer:
        response = self._exchange(method, path, body, query, if_match)
        return self._wire.understood(self._wire.content_of(response), response.headers.get("ETag", ""))

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str | int] | None = None,
    ) -> bytes:
        """Returns the body of a successful response. Raises all errors."""
        return self._wire.content_of(self._exchange(method, path, body, query))

    def _exchange(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str | int] | None = None,
        if_match: str = "",
    ) -> httpx.Response:
        try:
            return self._http.request(method, path, **self._wire.request(body, query, if_match))
        except httpx.HTTPError as error:
            raise self._wire.failure(error, is_reading=method == "GET") from None


class Patience:
    """Decides when to poll again, and when to give up."""

    def __init__(self, job_id: str, timeout: float | None, *, what: str = "job", done: str = "ended") -> None:
        self._clock = SystemClock()
        self._late = f"{what} {job_id} has not {done} within"
        self._timeout = timeout
        self._began_at = self._clock.monotonic()
        self._lost_at: float | None = None
        self._pause = FIRST_POLL_SECONDS

    def lost(self, error: FoliotError) -> None:
        """Notes a failed poll. Raises the error if the server has been failing for too long."""
        now = self._clock.monotonic()
        self._lost_at = now if self._lost_at is None else self._lost_at
        if now - self._lost_at > PATIENCE_SECONDS:
            raise error

    def is_over(self, job: Document) -> bool:
        self._lost_at = None
        return job["status"] in ENDED

    def pause(self) -> float:
        """Returns the time to the next poll. Raises `TimeoutError` after the timeout."""
        pause, self._pause = self._pause, min(self._pause * 1.5, LONGEST_POLL_SECONDS)
        if self._timeout is None:
            return pause
        left = self._began_at + self._timeout - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self._late} {self._timeout:g} s")
        return min(pause, left)
