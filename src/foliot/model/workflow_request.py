"""A workflow as a request describes it: its steps, and the fields of a job that say when it runs."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from foliot.errors import Invalid
from foliot.model.field_rules import Rule, not_given
from foliot.model.job_request import SAYS_WHEN, JobRequest
from foliot.model.map import OnFailure
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.workflow import ParametersField, ParamsField, Step, Workflow

JOB_FIELDS = ("task", "job_type", "command", "payload", "signal")
DELAYED_BY = ("delay_seconds", "schedule_time", "schedule", "unique", "expires_at", "dependencies")


class WorkflowRequest(JobRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A workflow to run now; with the schedule fields of a job, later or repeatedly."""

    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]
    on_failure: OnFailure = "continue"
    parameters: ParametersField = msgspec.field(default_factory=dict)
    params: ParamsField = msgspec.field(default_factory=dict)

    RULES: ClassVar[tuple[Rule, ...]] = (not_given(*JOB_FIELDS), SAYS_WHEN)

    def definition(self) -> Workflow:
        if misplaced := [name for name in JOB_FIELDS if getattr(self, name) is not None]:
            raise Invalid(f"{misplaced[0]}: belongs to a step", field=misplaced[0])
        return Workflow(steps=self.steps, on_failure=self.on_failure, parameters=self.parameters, params=self.params)

    def as_job(self, definition: Workflow) -> JobRequest:
        fields = {name: getattr(self, name) for name in JobRequest.__struct_fields__}
        return JobRequest(**fields | {"task": WORKFLOW_TASK, "payload": msgspec.to_builtins(definition)})

    @property
    def is_immediate(self) -> bool:
        """Whether its steps are stored now, and not by the worker that runs the task `workflow`."""
        return not self.is_recurring and all(getattr(self, name) is None for name in DELAYED_BY)
