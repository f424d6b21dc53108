"""Settings of the database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from foliot.config.sections.types import Seconds


def data_home() -> str:
    return str(Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "foliot")


class DatabaseSettings(msgspec.Struct, frozen=True, kw_only=True):
    database_url: Annotated[str, Meta(description="URL of your PostgreSQL. Empty: the embedded server in `data`.")] = ""
    database_direct_url: Annotated[
        str,
        Meta(
            description="URL that bypasses a pooler such as PgBouncer, for wake-ups. "
            "Empty behind a pooler: polling only."
        ),
    ] = ""
    database_url_file: Annotated[
        str,
        Meta(
            description="File that contains `database_url`, such as a mounted secret, or `fd:3` for an inherited "
            "file descriptor."
        ),
    ] = ""
    database_direct_url_file: Annotated[str, Meta(description="The same for `database_direct_url`.")] = ""
    database_pool_size: Annotated[int, Meta(ge=2, le=500, description="Most connections that a process opens.")] = 10
    database_connect_seconds: Annotated[Seconds, Meta(description="Timeout of connecting.")] = 5
    database_statement_seconds: Annotated[Seconds, Meta(description="Timeout of a statement.")] = 5
    database_lock_seconds: Annotated[Seconds, Meta(description="How long a statement may wait for a lock.")] = 2
    database_idle_in_transaction_seconds: Annotated[
        Seconds, Meta(description="How long a transaction may sit idle before PostgreSQL ends it.")
    ] = 10
    database_retry_seconds: Annotated[
        Seconds, Meta(description="How long a statement is retried while PostgreSQL is unavailable.")
    ] = 10
    data: Annotated[str, Meta(description="Directory of the embedded PostgreSQL.")] = msgspec.field(
        default_factory=data_home
    )
    pg_bin: Annotated[
        str, Meta(description="Directory of PostgreSQL binaries for the embedded server. Empty: Foliot finds them.")
    ] = ""
