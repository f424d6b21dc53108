"""`foliot history`."""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec

from foliot import config
from foliot.archive.destination import open_destination
from foliot.archive.query import all_of, archive_views, format_of, rows_of, write
from foliot.archive.reader import ArchiveReader
from foliot.cli.tables import Cell, clean, table
from foliot.clock import SystemClock
from foliot.errors import Invalid
from foliot.model.archive import KINDS, Kind

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SHOWN_MAX = 1000
LATELY = timedelta(days=30)


@click.group()
def command() -> None:
    """List, query and export history in the archive.

    These commands read the archive itself, with the settings `archive_url` and the like, so they need no server and no
    database. `foliot runs` lists history that is still in the database.
    """


def range_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--until", metavar="DAY", help="Last day, such as 2026-03-31.  [default: today]"),
        click.option("--since", metavar="DAY", help="First day, such as 2026-03-01.  [default: 30 days ago]"),
    ):
        function = option(function)
    return function


@command.command()
@range_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def days(since: str | None, until: str | None, as_json: bool) -> None:
    """List the days in the archive, with their rows and sizes."""
    first, last = days_between(since, until)
    reader = ArchiveReader(open_destination(config.load()))
    found = [one for kind in KINDS for one in reader.days(kind, first, last)]
    if as_json:
        click.echo(msgspec.json.encode({"items": found}))
        return
    headers = ("DAY", "KIND", "ROWS", "OBJECTS", "BYTES")
    rows = [
        [Cell(str(one.day)), Cell(one.kind), Cell("not complete" if one.rows is None else f"{one.rows:,}"),
         Cell(str(one.objects)), Cell(f"{one.bytes:,}")]
        for one in sorted(found, key=lambda one: (one.day, one.kind))
    ]  # fmt: skip
    click.echo(table(headers, rows) or f"The archive has no day between {first} and {last}.")


@command.command()
@click.argument("sql")
@range_options
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=SHOWN_MAX, show_default=True, help="Rows to print.")
@click.option("--json", "form", flag_value="json", help="Print one JSON object for each row.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV.")
def query(sql: str, since: str | None, until: str | None, limit: int, form: str | None) -> None:
    """Run SQL over the archive.

    The tables are runs, attempts, ticks and audit; each also has the columns namespace and day. SQL is that of DuckDB.
    Only the days between --since and --until are read, both included.
    """
    with archive(KINDS, since, until) as session:
        names, rows = rows_of(session, sql, limit)
    show(names, rows[:limit], form)
    if len(rows) > limit:
        click.echo(f"There are more rows than {limit:,}: use --limit, or foliot history export.", err=True)


@command.command()
@click.argument("kind", type=click.Choice(get_args(Kind)))
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@range_options
@click.option("--where", metavar="CONDITION", help="Only rows that fulfil this SQL condition.")
def export(kind: Kind, output: Path, since: str | None, until: str | None, where: str | None) -> None:
    """Write rows of the archive into one file.

    OUTPUT ends in .parquet, .csv, .jsonl or .json, which decides about its format. It is replaced if it exists.
    """
    format_of(output)
    with archive((kind,), since, until, output.resolve()) as session:
        written = write(session, all_of(kind, where), output.resolve())
    click.echo(f"{written:,} rows were written to {output}.", err=True)


@contextmanager
def archive(
    kinds: tuple[Kind, ...], since: str | None, until: str | None, output: Path | None = None
) -> Iterator[DuckDBPyConnection]:
    """The rows of these kinds between two days. Objects of an S3 store are downloaded for as long as it is open."""
    first, last = days_between(since, until)
    reader = ArchiveReader(open_destination(config.load()))
    with tempfile.TemporaryDirectory(prefix="foliot-history-") as directory:
        files = {kind: reader.fetch(kind, first, last, Path(directory)) for kind in kinds}
        with archive_views(files, output) as session:
            yield session


def days_between(since: str | None, until: str | None) -> tuple[date, date]:
    today = SystemClock().now().date()
    first = day_of(since, "since") if since else today - LATELY
    last = day_of(until, "until") if until else today
    if first > last:
        raise Invalid(f"--since: {first} is after {last}", field="since")
    return first, last


def day_of(text: str, field: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Invalid(f"--{field}: {text!r} is not a day; write 2026-03-31", field=field) from None


def show(names: list[str], rows: list[tuple[Any, ...]], form: str | None) -> None:
    if form == "json":
        for row in rows:
            click.echo(msgspec.json.encode(dict(zip(names, row, strict=True)), enc_hook=str))
    elif form == "csv":
        lines = csv.writer(sys.stdout, lineterminator="\n")
        lines.writerow(names)
        lines.writerows(rows)
    else:
        texts = [[Cell(clean("" if value is None else str(value))) for value in row] for row in rows]
        click.echo(table([name.upper() for name in names], texts) or "No rows.")
