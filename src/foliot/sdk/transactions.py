"""Submits a job in the caller's transaction, so that the job exists if and only if the transaction commits.

Calls the SQL function `foliot.submit` on the caller's connection. The type of the connection determines the driver, so
none is imported here.
"""

from __future__ import annotations

import inspect
from typing import Any

from foliot.submission.storable_json import encode_jsonb

# Cast from text, so that the caller's codecs for jsonb do not apply.
NUMBERED = "select foliot.submit($1::text::jsonb)"
PERCENT = "select foliot.submit(%s::text::jsonb)"
NAMED = "select foliot.submit(cast(cast(:job as text) as jsonb))"
KNOWN = "an asyncpg or psycopg connection, a connection or session of SQLAlchemy, or a connection of Django"


def submit_in(connection: Any, job: dict[str, Any]) -> str:
    """Submits the job and returns its id."""
    text, driver = encode_jsonb(job), driver_of(connection)
    if driver == "psycopg":
        from psycopg.rows import tuple_row

        with connection.cursor(row_factory=tuple_row) as cursor:
            return str(cursor.execute(PERCENT, (text,)).fetchone()[0])
    if driver == "sqlalchemy":
        from sqlalchemy import text as statement

        return str(connection.execute(statement(NAMED), {"job": text}).scalar_one())
    if driver == "django":
        with connection.cursor() as cursor:
            cursor.execute(PERCENT, [text])
            return str(cursor.fetchone()[0])
    raise TypeError(f"submit_in needs a synchronous connection, not {_described(connection)}; use submit_in_async")


async def submit_in_async(connection: Any, job: dict[str, Any]) -> str:
    """Submits the job and returns its id."""
    text, driver = encode_jsonb(job), driver_of(connection)
    if driver == "asyncpg":
        return str(await connection.fetchval(NUMBERED, text))
    if driver == "async psycopg":
        from psycopg.rows import tuple_row

        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(PERCENT, (text,))
            return str((await cursor.fetchone())[0])
    if driver == "async sqlalchemy":
        from sqlalchemy import text as statement

        return str((await connection.execute(statement(NAMED), {"job": text})).scalar_one())
    raise TypeError(f"submit_in_async needs an async connection, not {_described(connection)}; use submit_in")


def driver_of(connection: Any) -> str:
    """The driver of a connection, from the modules of its class and base classes. Raises `TypeError` if unknown."""
    modules = [kind.__module__ for kind in type(connection).__mro__]
    packages = {module.partition(".")[0] for module in modules}
    if "asyncpg" in packages and hasattr(connection, "fetchval"):
        return "asyncpg"
    if "psycopg" in packages and hasattr(connection, "cursor"):
        return "async psycopg" if inspect.iscoroutinefunction(connection.commit) else "psycopg"
    if "django" in packages and hasattr(connection, "ensure_connection"):
        return "django"
    if "sqlalchemy" in packages and hasattr(connection, "execute"):
        return (
            "async sqlalchemy"
            if any(module.startswith("sqlalchemy.ext.asyncio") for module in modules)
            else "sqlalchemy"
        )
    raise TypeError(f"{_described(connection)} is not {KNOWN}")


def _described(connection: Any) -> str:
    kind = type(connection)
    return f"a {kind.__module__}.{kind.__qualname__}"
