"""Queries a database of the user, which is not Foliot's: the built-in task `wait_for_row`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg
import msgspec

QUERY_SECONDS = 30.0
CONNECT_SECONDS = 10.0
# Parameters come from JSON. PostgreSQL reads their text as the type that the query expects.
READ_AS_TEXT = ("bool", "date", "float8", "int2", "int4", "int8", "numeric", "time", "timestamp", "timestamptz", "uuid")
# Classes of errors that may be gone the next time: connections, rollbacks, resources, locks, an operator's stop.
PASSING = ("08", "40", "53", "55", "57")


class QueryRefused(Exception):
    """The query can't be run, now or later."""


async def first_row(url: str, query: str, parameters: Sequence[object]) -> Any:
    """The first row of a query as an object. None: there is none. Raises `QueryRefused`.

    It is one statement, because it is prepared, in a read-only transaction.
    """
    settings = {"default_transaction_read_only": "on", "statement_timeout": f"{int(QUERY_SECONDS * 1000)}"}
    connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS, server_settings=settings)
    try:
        for name in READ_AS_TEXT:
            await connection.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=str, format="text")
        async with connection.transaction(readonly=True):
            text = await connection.fetchval(
                f"select to_json(found)::text from (\n{query}\n) as found limit 1",  # noqa: S608
                *map(_text, parameters),
                timeout=QUERY_SECONDS + 1,
            )
    except asyncpg.PostgresError as error:
        if (error.sqlstate or "").startswith(PASSING):
            raise
        raise QueryRefused(f"the query can't be run: {type(error).__name__}: {error}") from error
    except asyncpg.InterfaceError as error:
        raise QueryRefused(f"the parameters do not fit the query: {error}") from error
    finally:
        connection.terminate()
    return None if text is None else msgspec.json.decode(text)


def _text(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
