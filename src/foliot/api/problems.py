"""Turns errors into RFC 9457 problem documents with a stable `code` and, if known, the `field` that is wrong."""

from __future__ import annotations

from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Send

from foliot.api.openapi.document import methods_of
from foliot.errors import (
    Busy,
    Conflict,
    FoliotError,
    Forbidden,
    Invalid,
    Malformed,
    NotFound,
    NotJson,
    PreconditionFailed,
    StoreUnavailable,
    TaskDisabled,
    TooLarge,
    Unauthenticated,
)
from foliot.triggers.cron_fields import CronError

STATUS: dict[type[FoliotError], int] = {
    TooLarge: 413,
    Malformed: 400,
    TaskDisabled: 403,
    Invalid: 422,
    NotFound: 404,
    Unauthenticated: 401,
    Forbidden: 403,
    NotJson: 415,
    Conflict: 409,
    PreconditionFailed: 412,
    Busy: 429,
    StoreUnavailable: 503,
}
REQUEST_ID = "foliot.request_id"
RETRY_AFTER_SECONDS = "2"
DETAIL_MAX, FIELD_MAX = 2_000, 500
# Codes for errors that the web framework raises.
FRAMEWORK_CODES = {404: "not_found", 405: "method_not_allowed"}


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    field: str = "",
    place: tuple[int, int] | None = None,
    headers: dict[str, str] | None = None,
    request: Request | None = None,
) -> Response:
    detail, field = _shortened(detail, DETAIL_MAX), _shortened(field, FIELD_MAX)
    document: dict[str, Any] = {
        "type": f"urn:foliot:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if field:
        document["field"] = field
    if place is not None:
        document["start"], document["end"] = place
    if request is not None and REQUEST_ID in request.scope:
        document["request_id"] = request.scope[REQUEST_ID]
    return Response(msgspec.json.encode(document), status, headers, media_type="application/problem+json")


def _shortened(text: str, most: int) -> str:
    """Cuts long texts: a detail quotes the request, which may hold a name of a megabyte."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def problem_of(error: FoliotError, request: Request | None = None) -> Response:
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    field = error.field if isinstance(error, Invalid) else ""
    place = (error.start, error.end) if isinstance(error, CronError) and error.start < error.end else None
    headers = {"Retry-After": RETRY_AFTER_SECONDS} if status == 503 else None
    if isinstance(error, Busy):
        headers = {"Retry-After": str(error.retry_after)}
    if isinstance(error, Unauthenticated):
        headers = {"WWW-Authenticate": 'Bearer realm="foliot"'}
    # PostgreSQL's message goes to the log, not to the caller.
    detail = "the database is not available; try again" if status == 503 else error.detail
    return problem(status, error.code, detail, field=field, place=place, headers=headers, request=request)


def answer_to(error: Exception, request: Request) -> Response:
    """The problem document for any error."""
    if isinstance(error, FoliotError):
        return problem_of(error, request)
    return problem(500, "internal", "internal error; see the server's log", request=request)


async def serve(answering: Awaitable[Response], request: Request, send: Send) -> None:
    """Sends the answer, or a problem document. Raises unexpected errors again, so that the server logs them."""
    try:
        answer = await answering
    except FoliotError as error:
        answer = problem_of(error, request)
    except Exception as error:
        await answer_to(error, request)(request.scope, request.receive, send)
        raise
    await answer(request.scope, request.receive, send)


def install(app: FastAPI) -> None:
    async def on_error(request: Request, error: Exception) -> Response:
        return answer_to(error, request)

    async def on_http_exception(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = {name.lower(): value for name, value in (getattr(error, "headers", None) or {}).items()}
        detail = HTTPStatus(status).phrase
        if status == 405 and (methods := methods_of(app.openapi(), request.url.path)):
            # The framework lists the methods of the first matching route only.
            headers["allow"] = ", ".join(methods)
            detail = f"{request.method} is not allowed here; use {headers['allow']}"
        return problem(status, FRAMEWORK_CODES.get(status, "error"), detail, headers=headers, request=request)

    async def on_bad_parameter(request: Request, error: Exception) -> Response:
        first = error.errors()[0] if isinstance(error, RequestValidationError) else {"loc": ("",), "msg": ""}
        field = str(first["loc"][-1])
        return problem_of(Invalid(f"{field}: {first['msg']}", field=field), request)

    app.add_exception_handler(FoliotError, on_error)
    app.add_exception_handler(RequestValidationError, on_bad_parameter)
    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_exception_handler(Exception, on_error)
