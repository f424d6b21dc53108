"""Error codes are part of the API. Changing one requires a change here, too."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import foliot
from foliot.errors import FoliotError, Invalid, StoreUnavailable

CODES = {
    "ArchiveUnavailable": "archive_unavailable",
    "FoliotError": "error",
    "Invalid": "invalid",
    "CronError": "invalid_cron",
    "Malformed": "malformed",
    "UnknownTask": "unknown_task",
    "TaskDisabled": "task_disabled",
    "InvalidScheduleError": "invalid_schedule",
    "TooLarge": "too_large",
    "NotFound": "not_found",
    "Unauthenticated": "unauthenticated",
    "Forbidden": "forbidden",
    "ForeignHost": "foreign_host",
    "ForeignOrigin": "foreign_origin",
    "CrossSite": "cross_site",
    "PlainHttp": "plain_http",
    "NotJson": "not_json",
    "Conflict": "conflict",
    "PreconditionFailed": "precondition_failed",
    "JobFailed": "job_failed",
    "Busy": "busy",
    "QueueFull": "queue_full",
    "TooManyRequests": "too_many_requests",
    "TooManyFollowers": "too_many_followers",
    "UnknownWorker": "unknown_worker",
    "ConfigurationError": "configuration",
    "EmbeddedPostgresError": "embedded_postgres",
    "StoreUnavailable": "store_unavailable",
    "Unreachable": "unreachable",
    "SchemaError": "schema",
    "ApplicationError": "application",
}


def all_errors() -> list[type[FoliotError]]:
    for module in pkgutil.walk_packages(foliot.__path__, "foliot."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return [kind for kind in family(FoliotError) if kind.__module__.startswith("foliot.")]


def family(kind: type[FoliotError]) -> Iterator[type[FoliotError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from family(child)


def test_codes_are_stable() -> None:
    assert {kind.__name__: kind.code for kind in all_errors()} == CODES


def test_codes_are_unique_and_each_class_defines_its_own() -> None:
    errors = all_errors()
    assert [kind.__name__ for kind in errors if "code" not in vars(kind)] == []
    assert len({kind.code for kind in errors}) == len(errors)


def test_every_error_has_a_message() -> None:
    for kind in all_errors():
        error = kind("port 8000 is in use", field="port") if issubclass(kind, Invalid) else kind("port 8000 is in use")
        assert (error.detail, str(error)) == ("port 8000 is in use", "port 8000 is in use")


def test_the_fields_of_an_error_survive() -> None:
    assert Invalid("priority: too high", field="priority").field == "priority"
    assert StoreUnavailable("gone", is_doubtful=True).is_doubtful
    assert not StoreUnavailable("gone").is_doubtful
