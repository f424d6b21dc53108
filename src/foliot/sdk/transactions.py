"""Submitting inside the caller's own transaction: the job is there if that commits, and never was if it does not.

One call of the SQL function `foliot.submit`, over whatever connection the caller has. No driver is loaded here: which
one it is, the connection itself says.
"""

from __future__ import annotations

import inspect
from typing import Any

from foliot.submission.storable_json import encode_jsonb

# Through text, so that no codec which the caller has set up for jsonb is applied to it.
NUMBERED = "select foliot.submit($1::text::jsonb)"
PERCENT = "select foliot.submit(%s::text::jsonb)"
NAMED = "select foliot.submit(cast(cast(:job as text) as jsonb))"
KNOWN = "an asyncpg or psycopg connection, or a connection or session of SQLAlchemy"


def submit_in(connection: Any, job: dict[str, Any]) -> str:
    """The id of the run."""
    text, driver = encode_jsonb(job), driver_of(connection)
    if driver == "psycopg":
        from psycopg.rows import tuple_row

        with connection.cursor(row_factory=tuple_row) as cursor:
            return str(cursor.execute(PERCENT, (text,)).fetchone()[0])
    if driver == "sqlalchemy":
        from sqlalchemy import text as statement

        return str(connection.execute(statement(NAMED), {"job": text}).scalar_one())
    raise TypeError(
        f"submit_in needs a plain connection, not {_described(connection)}; for async ones there is submit_in_async"
    )


async def submit_in_async(connection: Any, job: dict[str, Any]) -> str:
    """The id of the run."""
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
    raise TypeError(
        f"submit_in_async needs an async connection, not {_described(connection)}; for plain ones there is submit_in"
    )


def driver_of(connection: Any) -> str:
    """By the modules of its class and of those it is derived from. Raises `TypeError` for what is no connection that we
    know."""
    modules = [kind.__module__ for kind in type(connection).__mro__]
    packages = {module.partition(".")[0] for module in modules}
    if "asyncpg" in packages and hasattr(connection, "fetchval"):
        return "asyncpg"
    if "psycopg" in packages and hasattr(connection, "cursor"):
        return "async psycopg" if inspect.iscoroutinefunction(connection.commit) else "psycopg"
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
