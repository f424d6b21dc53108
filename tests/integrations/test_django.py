"""Foliot in a real Django project, on a real database. Django can be set up only once, so each test starts a
process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.core.management.base import CommandError

from foliot.integrations.django.management.commands.foliot import database_url as url_in_settings
from foliot.integrations.django.management.commands.foliot import with_app
from foliot.store.store import Store

POSTGRESQL = "django.db.backends.postgresql"
PROJECT = """
import asyncio, json, os, sys
import django
from django.conf import settings
settings.configure(
    DATABASES={"default": json.loads(os.environ["DATABASE"])}, CONN_MAX_AGE=0,
    INSTALLED_APPS=["foliot.integrations.django"], FOLIOT_APP="shop:app",
)
django.setup()
from django.core.management import execute_from_command_line
from django.db import connection, transaction
from foliot.integrations.django import App
from foliot.testing import inline
app = App()

@app.task
def send(customer_id: int = 0): ...
"""


def settings_of(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    host = dict(parse_qsl(parts.query)).get("host", parts.hostname or "")
    given = {
        "NAME": parts.path.removeprefix("/"),
        "USER": parts.username or "",
        "HOST": host,
        "PORT": parts.port or 5432,
    }
    return {"ENGINE": POSTGRESQL, **given}


async def django(url: str, program: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PROJECT + program],
        env=environment | {"DATABASE": json.dumps(settings_of(url))},
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


async def test_a_job_exists_if_the_transaction_of_the_orm_commits(database_url: str, sql: Any, store: Store) -> None:
    await store.workers.announce_tasks({"send": "default"})
    printed = await django(
        database_url,
        """
with transaction.atomic():
    print(send.submit_in(connection, customer_id=7).id)
try:
    with transaction.atomic():
        send.submit_in(connection, customer_id=8)
        raise RuntimeError
except RuntimeError:
    pass
""",
    )
    found = await sql.fetch("select id::text, payload::text from foliot.runs")
    assert [tuple(row) for row in found] == [(printed.strip(), '{"customer_id": 7}')]


async def test_attempts_begin_with_a_working_connection_and_close_theirs(database_url: str) -> None:
    printed = await django(
        database_url,
        """
@app.task
def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return cursor.fetchone()[0]

@app.task
async def backend_async() -> int:
    from asgiref.sync import sync_to_async
    return await sync_to_async(backend.function)()

first = backend()
# The server closes the connection, as a restart of PostgreSQL does.
import psycopg
other = psycopg.connect(connection.connection.info.dsn, autocommit=True)
other.execute("select pg_terminate_backend(%s, 60000)", [first])
try:
    backend()
except django.db.OperationalError:
    print("gone")
# The bench calls plain functions in its event loop.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
with inline(app):
    used = [backend.submit().result(), backend_async.submit().result()]
# Ends only if both attempts have closed their connections.
while other.execute("select count(*) from pg_stat_activity where pid = any(%s)", [used]).fetchone()[0]:
    pass
print(first not in used)
other.close()
""",
    )
    assert printed == "gone\nTrue\n"


async def test_manage_foliot_runs_on_the_database_of_the_project(database_url: str) -> None:
    printed = await django(database_url, 'execute_from_command_line(["manage.py", "foliot", "check", "--json"])')
    assert json.loads(printed)["settings"]["database_url"] == url_in_settings(settings_of(database_url))
    help_of_worker = await django(
        database_url, 'execute_from_command_line(["manage.py", "foliot", "worker", "--help"])'
    )
    assert "Usage: manage.py foliot worker" in help_of_worker


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["worker"], ["worker", "shop:app"]),
        (["worker", "--queue", "mail=5"], ["worker", "shop:app", "--queue", "mail=5"]),
        (["runs", "--json"], ["runs", "--json"]),
        ([], []),
    ],
)
def test_only_a_worker_gets_the_tasks_of_the_project(arguments: list[str], expected: list[str]) -> None:
    assert with_app(arguments, "shop:app") == expected
    assert with_app(arguments, "") == arguments


@pytest.mark.parametrize(
    ("database", "url"),
    [
        ({"NAME": "shop"}, "postgresql://localhost:5432/shop"),
        (
            {"NAME": "sh op", "USER": "a@b", "PASSWORD": "p:/w", "HOST": "db", "PORT": "6000"},
            "postgresql://a%40b:p%3A%2Fw@db:6000/sh%20op",
        ),
        ({"NAME": "shop", "USER": "u", "HOST": "/run/pg"}, "postgresql://u@/shop?host=%2Frun%2Fpg&port=5432"),
        (
            {"NAME": "shop", "HOST": "db", "OPTIONS": {"sslmode": "verify-full", "pool": True}},
            "postgresql://db:5432/shop?sslmode=verify-full",
        ),
    ],
)
def test_settings_of_a_database_become_its_url(database: dict[str, Any], url: str) -> None:
    assert url_in_settings({"ENGINE": POSTGRESQL, **database}) == url


def test_other_databases_are_refused() -> None:
    with pytest.raises(CommandError, match=r"needs PostgreSQL, not django\.db\.backends\.sqlite3"):
        url_in_settings({"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"})
