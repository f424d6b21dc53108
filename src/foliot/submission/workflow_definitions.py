"""Checks the definition of a workflow as a whole, and completes each step with its queue and tags."""

from __future__ import annotations

import msgspec

from foliot.clock import give_way
from foliot.errors import Invalid
from foliot.model.map import MAP_TASK
from foliot.model.namespace import Namespace
from foliot.model.parameters import bind
from foliot.model.payloads import WORKFLOW_TASK, payload_of, within_payload
from foliot.model.workflow import NESTING_MAX, Step, Workflow, check, refuse_many_steps
from foliot.submission.back_pressure import BackPressure
from foliot.submission.known_tasks import KnownTasks
from foliot.submission.payload_checks import PayloadChecks

# The number of steps, or jobs of a batch, that are checked before other requests get a turn.
TURN = 500


class WorkflowDefinitions:
    def __init__(self, *, known_tasks: KnownTasks, payloads: PayloadChecks, back_pressure: BackPressure) -> None:
        self._known_tasks = known_tasks
        self._payloads = payloads
        self._back_pressure = back_pressure

    async def complete(
        self, namespace: Namespace, workflow: Workflow, *, depth: int = 1, has_tick: bool | None = None
    ) -> Workflow:
        """The workflow with the dependencies of teardown steps and all queues filled in. Raises `Invalid`, which
        names the step, or `QueueFull`."""
        await self._known_tasks.refuse_disabled(namespace, WORKFLOW_TASK)
        steps, values = [], workflow.values()
        for index, step in enumerate(check(workflow, has_tick=has_tick)):
            if index % TURN == TURN - 1:
                await give_way()
            try:
                declared = await self._known_tasks.queue_of(namespace, step.task_name())
                step = self._known_tasks.with_declared(namespace, step)
                if step.map is not None:
                    await self._known_tasks.refuse_disabled(namespace, MAP_TASK)
                await self._known_tasks.refuse_disabled_items(namespace, step.task_name(), step.payload)
                await self._check_payload(namespace, step)
                queue = step.queue or declared
                if step.task_name() == WORKFLOW_TASK and step.map is None:
                    inner = await self.of_payload(
                        namespace, bind(step, values).payload, depth=depth + 1, has_tick=has_tick
                    )
                    if step.payload and "params" in step.payload:
                        # They may refer to parameters of this workflow.
                        inner["params"] = step.payload["params"]
                    step = msgspec.structs.replace(step, payload=inner)
            except Invalid as error:
                raise type(error)(f"steps[{index}].{error.detail}", field=f"steps[{index}].{error.field}") from None
            await self._back_pressure.check(namespace, queue)
            steps.append(msgspec.structs.replace(step, queue=queue))
        return msgspec.structs.replace(workflow, steps=tuple(steps))

    async def _check_payload(self, namespace: Namespace, step: Step) -> None:
        task, payload, has_upstream = step.task_name(), step.payload_tree(), bool(step.after)
        if step.map is not None:
            await self._payloads.check_map(namespace, task, payload, step.map, has_upstream=has_upstream)
        elif task != WORKFLOW_TASK:
            await self._payloads.check(namespace, task, payload, has_upstream=has_upstream)

    async def of_payload(
        self, namespace: Namespace, payload: object, *, depth: int = 1, has_tick: bool | None = None
    ) -> dict[str, object]:
        """The completed payload of the task `workflow`. Raises as `complete` does."""
        if depth > NESTING_MAX:
            raise Invalid(f"payload: workflows are nested more than {NESTING_MAX} deep", field="payload")
        if isinstance(payload, dict) and isinstance(steps := payload.get("steps"), list):
            try:
                refuse_many_steps(len(steps))
            except Invalid as error:
                raise Invalid(f"payload.{error.detail}", field=f"payload.{error.field}") from None
        # Decoding one level takes a while.
        await give_way()
        try:
            workflow = payload_of(payload or {}, Workflow)
            complete: dict[str, object] = msgspec.to_builtins(
                await self.complete(namespace, workflow, depth=depth, has_tick=has_tick)
            )
        except Invalid as error:
            raise within_payload(error) from None
        return complete
