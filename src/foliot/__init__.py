"""Foliot: a distributed job scheduler on PostgreSQL."""

from foliot.errors import FoliotError
from foliot.model.retry import Backoff
from foliot.sdk.app import App, Task

__version__ = "0.1.0"
__all__ = ["App", "Backoff", "FoliotError", "Task", "__version__"]
