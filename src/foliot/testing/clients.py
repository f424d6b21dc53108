"""Clients of a bench, which replace those of a server while tasks run inline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from foliot.api.openapi.schemas import BatchCreated, JobCreated, shown, submitted
from foliot.errors import FoliotError
from foliot.model.run import SubmittedRun
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.client import Client
from foliot.sdk.default_connection import Server
from foliot.sdk.http_protocol import ANSWER_SECONDS, DEFAULT_URL, Answer, Wire

if TYPE_CHECKING:
    from foliot.testing.bench import Bench, Job


class InlineServer(Server):
    def __init__(self, bench: Bench) -> None:
        super().__init__(DEFAULT_URL)
        self._bench = bench

    def client(self) -> Client:
        return InlineClient(self._bench)

    def async_client(self) -> AsyncClient:
        return InlineAsyncClient(self._bench)


class _Answers:
    """The responses of both clients."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._wire = Wire(DEFAULT_URL, token="", answer_seconds=ANSWER_SECONDS)

    def made(self, job: Mapping[str, Any]) -> Answer:
        return self._answer(_created(*self._bench.submit(job)))

    def made_all(self, jobs: Sequence[Mapping[str, Any]], key: str | None) -> Answer:
        keys = [{} if key is None else {"idempotency_key": f"{key} {index}"} for index in range(len(jobs))]
        made = [_created(*self._bench.submit({**job, **own})) for job, own in zip(jobs, keys, strict=True)]
        return self._answer(BatchCreated(made, created=all(job.created for job in made)))

    def job(self, job_id: str) -> Answer:
        return self._answer(shown(self._bench.find(job_id).view()))

    def ended(self, job_id: str) -> Answer:
        job = self._bench.find(job_id)
        if job.is_open:
            raise TimeoutError(
                f"job {job_id} has not ended: it waits for {', '.join(sorted(job.durability.awaited))}"
                if job.durability.awaited
                else f"job {job_id} has not ended: it is due at {job.due_at.isoformat()}; advance the clock with "
                f"advance()"
            )
        return self.job(job_id)

    def _answer(self, document: object) -> Answer:
        return self._wire.understood(msgspec.json.encode(document))


class InlineClient(Client):
    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._answers = _Answers(bench)

    def close(self) -> None:
        """Does nothing: there are no connections."""

    def create_job(self, job: Mapping[str, Any]) -> Answer:
        return self._answers.made(job)

    def create_jobs(self, jobs: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None) -> Answer:
        return self._answers.made_all(jobs, idempotency_key)

    def get_job(self, reference: str) -> Answer:
        return self._answers.job(reference)

    def wait_for_job(self, job_id: str, timeout: float | None = None) -> Answer:
        self._bench.run()
        return self._answers.ended(job_id)

    def _answer(self, method: str, path: str, *_: object, **__: object) -> NoReturn:
        raise _missing(method, path)

    def _send(self, method: str, path: str, *_: object, **__: object) -> NoReturn:
        raise _missing(method, path)


class InlineAsyncClient(AsyncClient):
    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._answers = _Answers(bench)

    async def __aexit__(self, *_: object) -> None:
        """Does nothing: there are no connections."""

    async def create_job(self, job: Mapping[str, Any]) -> Answer:
        return self._answers.made(job)

    async def create_jobs(self, jobs: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None) -> Answer:
        return self._answers.made_all(jobs, idempotency_key)

    async def get_job(self, reference: str) -> Answer:
        return self._answers.job(reference)

    async def wait_for_job(self, job_id: str, timeout: float | None = None) -> Answer:
        await self._bench.run_async()
        return self._answers.ended(job_id)


def _created(job: Job, is_new: bool) -> JobCreated:
    run = job.run
    return submitted(
        SubmittedRun(
            run.id,
            run.name,
            run.task,
            run.queue,
            run.priority,
            job.state,
            job.attempt,
            job.due_at,
            job.created_at,
            is_new,
        )
    )


def _missing(method: str, path: str) -> FoliotError:
    return FoliotError(f"{method} {path}: not available while tasks run inline; use submit, status, wait and result")
