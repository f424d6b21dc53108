"""Foliot: a distributed job scheduler on PostgreSQL."""

from foliot.errors import FoliotError, JobFailed
from foliot.model.gates import Circuit
from foliot.model.retry import Backoff
from foliot.sdk.app import App, Task
from foliot.sdk.context import Context
from foliot.sdk.control import Fail, RetryIn, Snooze
from foliot.sdk.handle import Handle
from foliot.sdk.workflow import Workflow
from foliot.sdk.workflow_handle import WorkflowHandle

__version__ = "0.1.0"
__all__ = [
    "App",
    "Backoff",
    "Circuit",
    "Context",
    "Fail",
    "FoliotError",
    "Handle",
    "JobFailed",
    "RetryIn",
    "Snooze",
    "Task",
    "Workflow",
    "WorkflowHandle",
    "__version__",
]
