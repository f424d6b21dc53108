"""Foliot: a distributed job scheduler on PostgreSQL."""

from foliot.errors import FoliotError, InvalidScheduleError, JobFailed
from foliot.model.backoff import Backoff
from foliot.model.circuit_breaker import Circuit
from foliot.sdk.app import App, Task
from foliot.sdk.connection import Connection, connect
from foliot.sdk.context import Context
from foliot.sdk.durable_context import step_key
from foliot.sdk.handle import Handle
from foliot.sdk.job_scheduler import JobDefinition, JobScheduler, add_job
from foliot.sdk.task_exceptions import (
    ChildFailed,
    Fail,
    PollTimeout,
    Rejected,
    RetryIn,
    SignalTimeout,
    Skip,
    Snooze,
    StepError,
    Suspended,
)
from foliot.sdk.workflow import Workflow
from foliot.sdk.workflow_handle import WorkflowHandle

__version__ = "0.1.0"
__all__ = [
    "App",
    "Backoff",
    "ChildFailed",
    "Circuit",
    "Connection",
    "Context",
    "Fail",
    "FoliotError",
    "Handle",
    "InvalidScheduleError",
    "JobDefinition",
    "JobFailed",
    "JobScheduler",
    "PollTimeout",
    "Rejected",
    "RetryIn",
    "SignalTimeout",
    "Skip",
    "Snooze",
    "StepError",
    "Suspended",
    "Task",
    "Workflow",
    "WorkflowHandle",
    "__version__",
    "add_job",
    "connect",
    "step_key",
]
