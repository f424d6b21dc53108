"""The built-in tasks that wait for a file, a URL or a row, without a slot between two looks.

Each is a durable function that polls. Without a setting that allows it, a worker looks at no file and at no database.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
from msgspec import UNSET

from foliot.config import Config
from foliot.errors import Invalid
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.payloads import HttpPayload, payload_of
from foliot.model.wait_payloads import PollFields, WaitForFilePayload, WaitForRowPayload, WaitForUrlPayload
from foliot.outbound.addresses import AddressPolicy, AddressRefused, HostNotFound
from foliot.sdk.context import Context
from foliot.sdk.task_exceptions import Fail, PollTimeout
from foliot.store.user_database import QueryRefused, first_row
from foliot.worker.executors.base import Executor, invalid_payload
from foliot.worker.executors.http import follow, result_of
from foliot.worker.executors.python import succeeded
from foliot.worker.executors.task_errors import classify_error_off_loop

W = TypeVar("W", bound=PollFields)
Look = Callable[[], Any]


def wait_for_file(config: Config) -> Executor:
    directories = [
        os.path.realpath(one) for part in config.wait_for_file_directories.split(",") if (one := part.strip())
    ]

    def looks(asked: WaitForFilePayload) -> Look:
        return lambda: file_at(asked, directories)

    return polling(WaitForFilePayload, looks, config)


def file_at(asked: WaitForFilePayload, directories: list[str]) -> dict[str, Any] | None:
    path = os.path.realpath(asked.path)
    if not any(os.path.commonpath([path, directory]) == directory for directory in directories):
        raise Fail(f"{asked.path} is in no directory of this worker's setting wait_for_file_directories")
    try:
        found = Path(path).stat(follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_size < asked.min_bytes:
        return None
    modified_at = datetime.fromtimestamp(found.st_mtime, UTC)
    return {"path": asked.path, "bytes": found.st_size, "modified_at": modified_at.isoformat()}


def wait_for_url(config: Config, policy: AddressPolicy | None = None) -> Executor:
    checked, limit, trusted = policy or AddressPolicy(config), config.http_body_max_bytes, config.http_ca_file

    def looks(asked: WaitForUrlPayload) -> Look:
        request = HttpPayload(
            asked.url,
            asked.method,
            asked.headers,
            UNSET,
            asked.expected_status,
            asked.timeout_seconds,
            asked.redirects,
        )

        async def look() -> dict[str, Any] | None:
            try:
                async with asyncio.timeout(asked.timeout_seconds):
                    response = await follow(request, checked, limit, trusted)
            except (Invalid, AddressRefused) as error:
                raise Fail(str(error)) from error
            except (TimeoutError, HostNotFound, httpx.TransportError, OSError):
                return None
            return result_of(response) if request.expects(response.status) else None

        return look

    return polling(WaitForUrlPayload, looks, config)


def wait_for_row(config: Config) -> Executor:
    def looks(asked: WaitForRowPayload) -> Look:
        async def look() -> Any:
            return await row_of(asked, config.wait_for_row_url)

        return look

    return polling(WaitForRowPayload, looks, config)


async def row_of(asked: WaitForRowPayload, url: str) -> Any:
    if not url:
        raise Fail("this worker has no setting wait_for_row_url, so it queries no database")
    try:
        return await first_row(url, asked.query, asked.parameters)
    except QueryRefused as error:
        raise Fail(str(error)) from error


def polling(kind: type[W], looks: Callable[[W], Look], config: Config) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, kind)
        except Invalid as error:
            return invalid_payload(error)
        try:
            found = await context.poll(
                "look",
                looks(asked),
                every=asked.every_seconds,
                at_most=asked.at_most_seconds,
                timeout=asked.within_seconds,
            )
        except asyncio.CancelledError:
            raise
        except PollTimeout:
            why = f"it did not come within {asked.within_seconds:g} s"
            return Attempted(Ending.FAILED, error=error_of("WaitTimeout", why), is_retryable=False)
        except BaseException as error:
            return await classify_error_off_loop(error)
        return succeeded(found, config.result_max_bytes)

    return execute
