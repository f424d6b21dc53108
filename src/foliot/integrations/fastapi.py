"""Foliot in FastAPI: a connection as long as the application lives, a dependency, and answers to Foliot's errors.

app = FastAPI(lifespan=lifespan())
answer_errors(app)

@app.get("/jobs/{job_id}")
async def job(job_id: UUID, foliot: Foliot) -> dict[str, str]:
    return {"status": await foliot.status_async(str(job_id))}
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse

from foliot.errors import Busy, FoliotError, Unreachable
from foliot.sdk.connection import Connection, connect

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def lifespan(url: str | None = None, *, token: str | None = None, namespace: str | None = None) -> Lifespan:
    """A lifespan that holds a connection, with the arguments of `foliot.connect`, and closes it at the end."""

    @asynccontextmanager
    async def connected(app: FastAPI) -> AsyncIterator[None]:
        async with connect(url, token=token, namespace=namespace) as connection:
            app.state.foliot = connection
            yield

    return connected


def connection_of(request: Request) -> Connection:
    """The connection of the application that answers the request."""
    connection = getattr(request.app.state, "foliot", None)
    if not isinstance(connection, Connection):
        raise TypeError("the application has no connection to Foliot; pass lifespan=lifespan() to FastAPI()")
    return connection


Foliot = Annotated[Connection, Depends(connection_of)]
"""The type of an argument that receives the application's connection."""


def answer_errors(app: FastAPI) -> None:
    """Answers 429 if Foliot is busy and 503 if it does not answer, both with `Retry-After`."""
    app.add_exception_handler(Busy, _answered)
    app.add_exception_handler(Unreachable, _answered)


async def _answered(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FoliotError)  # noqa: S101 - registered for these only
    status, seconds = (429, error.retry_after) if isinstance(error, Busy) else (503, 1)
    return JSONResponse({"detail": error.detail, "code": error.code}, status, headers={"Retry-After": str(seconds)})
