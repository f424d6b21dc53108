"""`WorkflowHandle`: a submitted workflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foliot.errors import Conflict, NotFound
from foliot.sdk.default_connection import Server
from foliot.sdk.handle import plain, result_of

Shown = dict[str, Any]
ENDED = frozenset({"completed", "failed", "cancelled", "skipped"})


class WorkflowHandle:
    """A submitted workflow, as returned by `Workflow.submit`. Each method has an async variant: `wait_async`, ..."""

    __slots__ = ("_server", "id", "is_new")

    def __init__(self, workflow_id: str, *, server: Server, is_new: bool | None = None) -> None:
        self.id = workflow_id
        self.is_new = is_new
        """False if an idempotency key matched an existing workflow."""
        self._server = server

    def __repr__(self) -> str:
        return f"<workflow {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkflowHandle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def status(self) -> str:
        """Returns the status: scheduled, pending, running, completed, failed or cancelled."""
        return str(self.show()["status"])

    def show(self) -> Shown:
        """Returns the workflow with the fields of the API: `progress`, `steps`, `error`, ..."""
        return shown(self._server.client().get_workflow(self.id).document)

    def steps(self) -> dict[str, Shown]:
        """Returns the steps by key, each with `status`, `reason`, `result`, `error`, the `id` of its run, ..."""
        return steps_of(self.show())

    def wait(self, timeout: float | None = None) -> str:
        """Waits for the workflow to end and returns its status. Raises `TimeoutError` after `timeout` seconds."""
        return self._server.client().wait_for_workflow(self.id, timeout)

    def result(self, step: str, timeout: float | None = None) -> Any:
        """Waits for a step and returns its result.

        Raises:
            foliot.JobFailed: The step did not complete.
            TimeoutError: The step did not end within `timeout` seconds.
        """
        client = self._server.client()
        found = step_of(self.show(), step)
        if found["id"] is None and found["status"] not in ENDED:
            client.wait_for_steps(self.id, timeout)
            found = step_of(self.show(), step)
        return result_of(found if found["id"] is None else client.wait_for_job(found["id"], timeout).document)

    def cancel(self, reason: str | None = None, *, force: bool = False) -> str:
        """Cancels the workflow and returns its status.

        Steps that always run, such as teardown, still run; with `force`, they are cancelled too.
        """
        return str(self._server.client().cancel_workflow(self.id, reason=reason, force=force).document["status"])

    def redrive(self) -> None:
        """Runs the failed and cancelled steps again, and the steps that depend on them.

        Raises:
            foliot.errors.Conflict: There is no such step.
        """
        self._server.client().redrive_workflow(self.id)

    def signal(self, step: str, payload: Any = None, *, approved: bool = True, message: str = "") -> None:
        """Signals a waiting step: it starts, or fails with `approved=False`. An early signal is kept."""
        client = self._server.client()
        client.signal_run(run_of(step_of(self.show(), step)), payload, approved=approved, message=message)

    async def status_async(self) -> str:
        return str((await self.show_async())["status"])

    async def show_async(self) -> Shown:
        async with self._server.async_client() as client:
            return shown((await client.get_workflow(self.id)).document)

    async def steps_async(self) -> dict[str, Shown]:
        return steps_of(await self.show_async())

    async def wait_async(self, timeout: float | None = None) -> str:
        async with self._server.async_client() as client:
            return await client.wait_for_workflow(self.id, timeout)

    async def result_async(self, step: str, timeout: float | None = None) -> Any:
        async with self._server.async_client() as client:
            found = step_of(await self.show_async(), step)
            if found["id"] is None and found["status"] not in ENDED:
                await client.wait_for_steps(self.id, timeout)
                found = step_of(await self.show_async(), step)
            return result_of(
                found if found["id"] is None else (await client.wait_for_job(found["id"], timeout)).document
            )

    async def cancel_async(self, reason: str | None = None, *, force: bool = False) -> str:
        async with self._server.async_client() as client:
            return str((await client.cancel_workflow(self.id, reason=reason, force=force)).document["status"])

    async def redrive_async(self) -> None:
        async with self._server.async_client() as client:
            await client.redrive_workflow(self.id)

    async def signal_async(self, step: str, payload: Any = None, *, approved: bool = True, message: str = "") -> None:
        run_id = run_of(step_of(await self.show_async(), step))
        async with self._server.async_client() as client:
            await client.signal_run(run_id, payload, approved=approved, message=message)


def shown(document: Mapping[str, Any]) -> Shown:
    found: Shown = plain(document)
    return found


def steps_of(workflow: Shown) -> dict[str, Shown]:
    return {step["key"]: step for step in workflow["steps"]}


def step_of(workflow: Shown, key: str) -> Shown:
    steps = steps_of(workflow)
    if key not in steps:
        raise NotFound(
            f"the workflow {workflow['id']} has no step {key!r}; it has {', '.join(map(repr, list(steps)[:20]))}"
        )
    return steps[key]


def run_of(step: Shown) -> str:
    if step["id"] is None:
        raise Conflict(f"step {step['key']!r} can't be signalled yet: its workflow has not started")
    return str(step["id"])
