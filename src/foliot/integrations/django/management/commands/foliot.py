"""`manage.py foliot`: the `foliot` program with the database and the tasks of the Django project."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from foliot.cli.main import cli

# The parameters of a connection that Django passes on to PostgreSQL's library, and that belong into a URL.
PARAMETERS = ("sslmode", "sslrootcert", "sslcert", "sslkey")


class Command(BaseCommand):
    help = "Runs foliot on the project's default database. `worker` serves the tasks of settings.FOLIOT_APP."
    # Foliot checks its own schema.
    requires_system_checks: list[str] = []  # noqa: RUF012 - as Django declares it

    def run_from_argv(self, argv: list[str]) -> None:
        """Passes every argument on as it is, options too."""
        self.execute(arguments=argv[2:], no_color=False, force_color=False, skip_checks=True)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("arguments", nargs="*", metavar="ARGUMENT")

    def handle(self, *_: Any, arguments: list[str], **__: Any) -> None:
        if "FOLIOT_DATABASE_URL_FILE" not in os.environ:
            os.environ.setdefault("FOLIOT_DATABASE_URL", database_url(settings.DATABASES["default"]))
        cli.main(with_app(arguments, getattr(settings, "FOLIOT_APP", "")), prog_name="manage.py foliot")


def with_app(arguments: list[str], app: str) -> list[str]:
    """Adds the project's tasks to the arguments of a worker."""
    return ["worker", app, *arguments[1:]] if app and arguments[:1] == ["worker"] else arguments


def database_url(database: dict[str, Any]) -> str:
    """The URL of a database of `settings.DATABASES`."""
    if not str(database["ENGINE"]).endswith(("postgresql", "postgis")):
        raise CommandError(f"settings.DATABASES: Foliot needs PostgreSQL, not {database['ENGINE']}")
    user, password = quote(database.get("USER") or "", safe=""), quote(database.get("PASSWORD") or "", safe="")
    host, port = database.get("HOST") or "localhost", database.get("PORT") or 5432
    options = {name: value for name, value in database.get("OPTIONS", {}).items() if name in PARAMETERS}
    if host.startswith("/"):
        options["host"], host = host, ""
    login = f"{user}:{password}@" if password else f"{user}@" if user else ""
    there = f"{login}{host}" + (f":{port}" if host else "")
    query = f"?{urlencode({**options, **({} if host else {'port': port})})}" if options else ""
    return f"postgresql://{there}/{quote(database['NAME'], safe='')}{query}"
