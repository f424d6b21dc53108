"""Every error Foliot raises, in one tree. `code` is stable: it is the API's problem code and an anchor in the
documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class FoliotError(Exception):
    """The root. `detail` says what was wrong, where, and what to do about it."""

    code = "error"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Invalid(FoliotError):
    """What was asked for makes no sense; `field` names the part that does not."""

    code = "invalid"

    def __init__(self, detail: str, *, field: str = "") -> None:
        super().__init__(detail)
        self.field = field


class Malformed(Invalid):
    """The request can't be read: its body is not JSON, or a header that may be there once is there twice."""

    code = "malformed"


class UnknownTask(Invalid):
    """No worker has ever announced a task of this name, so the job could never run."""

    code = "unknown_task"


class TaskDisabled(Invalid):
    """The task is turned off in this namespace."""

    code = "task_disabled"


class InvalidScheduleError(Invalid):
    """Of a `JobDefinition`: neither a cron expression nor an ISO 8601 time."""

    code = "invalid_schedule"


class TooLarge(Invalid):
    """The request is bigger than the limit for such requests."""

    code = "too_large"


class NotFound(FoliotError):
    """There is nothing of that id or name."""

    code = "not_found"


class Unauthenticated(FoliotError):
    """Nobody knows who asks: there is no token, or it is wrong, expired or revoked."""

    code = "unauthenticated"


class Forbidden(FoliotError):
    """It is known who asks, and they may not."""

    code = "forbidden"


class ForeignHost(Forbidden):
    """The request was sent to a name that is not that of this machine's loopback interface."""

    code = "foreign_host"


class ForeignOrigin(Forbidden):
    """A web page of another origin sent it."""

    code = "foreign_origin"


class NotJson(FoliotError):
    """The request's body says that it is something else than JSON."""

    code = "not_json"


class Conflict(FoliotError):
    """What was asked for clashes with what is there: a name that is taken, a change that came too late."""

    code = "conflict"


class PreconditionFailed(FoliotError):
    """What the request was made for, as its If-Match or If-None-Match names it, is not, or no longer, what is there."""

    code = "precondition_failed"


class Busy(FoliotError):
    """There is too much of something just now. `retry_after`: seconds after which it is worth trying again."""

    code = "busy"

    def __init__(self, detail: str, *, retry_after: int = 1) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class QueueFull(Busy):
    """The queue is as deep as it may be."""

    code = "queue_full"


class TooManyRequests(Busy):
    """This caller asks more often than anybody may, or has been wrong too often."""

    code = "too_many_requests"


class TooManyFollowers(Busy):
    """This server streams as many logs or events as it may: to this token, to this namespace, or altogether."""

    code = "too_many_followers"


class JobFailed(FoliotError):
    """A job whose result was asked for has none: it failed, or was cancelled or skipped."""

    code = "job_failed"

    def __init__(self, detail: str, *, status: str = "failed", error: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.error = error or {}
        """Of the last attempt: kind, message and, for Python code, traceback."""


class ConfigurationError(FoliotError):
    """A setting is unknown, of the wrong type, or contradicts another."""

    code = "configuration"


class EmbeddedPostgresError(FoliotError):
    """The embedded PostgreSQL can't be found, started or stopped."""

    code = "embedded_postgres"


class StoreUnavailable(FoliotError):
    """PostgreSQL does not answer, or only reads. `is_doubtful`: what was asked may have been done all the same."""

    code = "store_unavailable"

    def __init__(self, detail: str, *, is_doubtful: bool = False) -> None:
        super().__init__(detail)
        self.is_doubtful = is_doubtful


class Unreachable(FoliotError):
    """The server can't be reached or does not answer. `is_doubtful`: what was asked may have been done all the same."""

    code = "unreachable"

    def __init__(self, detail: str, *, is_doubtful: bool = False) -> None:
        super().__init__(detail)
        self.is_doubtful = is_doubtful


class SchemaError(FoliotError):
    """The database's schema does not fit this version of Foliot."""

    code = "schema"
    exit_code = 3
    """Of a process that ends for it: to start it again would not help."""


class ApplicationError(FoliotError):
    """The user's `module:app` can't be loaded."""

    code = "application"
