"""Every error that Foliot raises. `code` is stable: it is the API's problem code and an anchor in the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class FoliotError(Exception):
    """The base class. `detail` says what is wrong, where, and what to do about it."""

    code = "error"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Invalid(FoliotError):
    """The request is invalid; `field` names the field at fault."""

    code = "invalid"

    def __init__(self, detail: str, *, field: str = "") -> None:
        super().__init__(detail)
        self.field = field


class Malformed(Invalid):
    """The request can't be read: its body is not JSON, or a header that may appear once appears twice."""

    code = "malformed"


class UnknownTask(Invalid):
    """No worker has ever registered a task of this name, so the job could never run."""

    code = "unknown_task"


class TaskDisabled(Invalid):
    """The task is disabled in this namespace."""

    code = "task_disabled"


class InvalidScheduleError(Invalid):
    """The schedule of a `JobDefinition` is neither a cron expression nor an ISO 8601 time."""

    code = "invalid_schedule"


class TooLarge(Invalid):
    """The request is larger than the limit."""

    code = "too_large"


class NotFound(FoliotError):
    """Nothing has this id or name."""

    code = "not_found"


class UnknownWorker(NotFound):
    """No worker is registered under this id with this token. Its lease has expired, or it has left."""

    code = "unknown_worker"


class Unauthenticated(FoliotError):
    """The request has no token, or its token is wrong, expired or revoked."""

    code = "unauthenticated"


class Forbidden(FoliotError):
    """The caller is known but lacks the permission."""

    code = "forbidden"


class ForeignHost(Forbidden):
    """The request names a host other than this machine's loopback interface."""

    code = "foreign_host"


class ForeignOrigin(Forbidden):
    """A web page of another origin sent the request."""

    code = "foreign_origin"


class CrossSite(Forbidden):
    """A request with a session cookie does not come from a page of this server, or lacks the header Foliot-CSRF."""

    code = "cross_site"


class PlainHttp(Forbidden):
    """Signing in is refused, because the connection is not encrypted."""

    code = "plain_http"


class NotJson(FoliotError):
    """The request's content type is not JSON."""

    code = "not_json"


class Conflict(FoliotError):
    """The request conflicts with the current state: the name is taken, or the change comes too late."""

    code = "conflict"


class PreconditionFailed(FoliotError):
    """The resource does not match the request's If-Match or If-None-Match."""

    code = "precondition_failed"


class Busy(FoliotError):
    """A limit is reached for the moment. `retry_after` is the number of seconds to wait before the next try."""

    code = "busy"

    def __init__(self, detail: str, *, retry_after: int = 1) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class QueueFull(Busy):
    """The queue has reached its maximum depth."""

    code = "queue_full"


class TooManyRequests(Busy):
    """The caller exceeds the request rate, or has sent too many wrong tokens."""

    code = "too_many_requests"


class TooManyFollowers(Busy):
    """The server has reached its limit of log or event streams: per token, per namespace or in total."""

    code = "too_many_followers"


class JobFailed(FoliotError):
    """The job has no result: it failed, or was cancelled or skipped."""

    code = "job_failed"

    def __init__(self, detail: str, *, status: str = "failed", error: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.error = error or {}
        """The error of the last attempt: kind, message and, for Python code, traceback."""


class ConfigurationError(FoliotError):
    """A setting is unknown, of the wrong type, or contradicts another."""

    code = "configuration"


class EmbeddedPostgresError(FoliotError):
    """The embedded PostgreSQL can't be found, started or stopped."""

    code = "embedded_postgres"


class StoreUnavailable(FoliotError):
    """PostgreSQL does not answer, or is read-only. If `is_doubtful`, the statement may have been executed anyway."""

    code = "store_unavailable"

    def __init__(self, detail: str, *, is_doubtful: bool = False) -> None:
        super().__init__(detail)
        self.is_doubtful = is_doubtful


class Unreachable(FoliotError):
    """The server can't be reached or does not answer. If `is_doubtful`, it may have carried out the request anyway."""

    code = "unreachable"

    def __init__(self, detail: str, *, is_doubtful: bool = False) -> None:
        super().__init__(detail)
        self.is_doubtful = is_doubtful


class SchemaError(FoliotError):
    """The database's schema does not fit this version of Foliot."""

    code = "schema"
    exit_code = 3
    """The exit code of a process that ends with this error. Starting it again does not help."""


class ApplicationError(FoliotError):
    """The user's `module:app` can't be loaded."""

    code = "application"
