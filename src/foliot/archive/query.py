"""SQL over the archive with DuckDB: one view for each kind of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foliot.archive.destination import NEEDS_EXTRA
from foliot.errors import ConfigurationError, Invalid
from foliot.model.archive import COLUMNS, Kind, Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Times are in UTC.
TYPES: Mapping[Type, str] = {
    "id": "varchar", "ids": "varchar[]", "text": "varchar", "number": "bigint", "json": "json", "output": "varchar",
    "time": "timestamp",
}  # fmt: skip
# The formats of an output file, by its ending.
FORMATS = {".parquet": "format parquet", ".csv": "format csv, header", ".jsonl": "format json", ".json": "format json"}


@contextmanager
def archive_views(files: Mapping[Kind, Sequence[Path]], output: Path | None = None) -> Iterator[DuckDBPyConnection]:
    """A session with a view for each kind. It reads these files, writes the output, and reaches nothing else."""
    try:
        import duckdb
    except ImportError:
        raise ConfigurationError(NEEDS_EXTRA.format(setting="foliot history")) from None
    with duckdb.connect() as session:
        for kind, paths in files.items():
            session.execute(f"create view {kind} as {_selected(kind, paths)}")
        allowed = [str(path) for paths in files.values() for path in paths] + ([str(output)] if output else [])
        session.execute("set allowed_paths = " + _list(allowed))
        session.execute("set enable_external_access = false")
        session.execute("set lock_configuration = true")
        try:
            yield session
        except duckdb.Error as error:
            raise Invalid(f"the query failed: {str(error).splitlines()[0]}", field="sql") from None


def rows_of(session: DuckDBPyConnection, sql: str, limit: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of the columns, and the first rows: one more than the limit if there are more."""
    found = session.execute(sql)
    if found.description is None:
        raise Invalid("the query returns no rows: write a SELECT", field="sql")
    return [column[0] for column in found.description], found.fetchmany(limit + 1)


def all_of(kind: Kind, where: str | None) -> str:
    return f"select * from {kind}" + (f" where {where}" if where else "")  # noqa: S608


def write(session: DuckDBPyConnection, sql: str, output: Path) -> int:
    """Writes all rows of a query into a file, and returns their number."""
    form = format_of(output)
    written = session.execute(f"copy ({sql.rstrip().removesuffix(';')}) to {_quoted(str(output))} ({form})").fetchone()
    return int(written[0]) if written else 0


def format_of(output: Path) -> str:
    if output.suffix not in FORMATS:
        raise Invalid(f"{output}: the ending must be one of {', '.join(FORMATS)}", field="output")
    return FORMATS[output.suffix]


def _selected(kind: Kind, paths: Sequence[Path]) -> str:
    columns = COLUMNS[kind]
    chosen = ", ".join(f'cast("{name}" as {TYPES[column]}) as "{name}"' for name, column in columns.items())
    parts = []
    for reader, ending in ((_parquet, ".parquet"), (_json_lines, ".gz")):
        fitting = [str(path) for path in paths if path.suffix == ending]
        if fitting:
            parts.append(f"select {chosen}, namespace, cast(day as date) as day from {reader(kind, fitting)}")  # noqa: S608
    if parts:
        return " union all by name ".join(parts)
    empty = ", ".join(f'cast(null as {TYPES[column]}) as "{name}"' for name, column in columns.items())
    return f"select {empty}, cast(null as varchar) as namespace, cast(null as date) as day where false"


def _parquet(kind: Kind, paths: Sequence[str]) -> str:
    return f"read_parquet({_list(paths)}, hive_partitioning = true, union_by_name = true)"


def _json_lines(kind: Kind, paths: Sequence[str]) -> str:
    columns = ", ".join(f"{_quoted(name)}: {_quoted(TYPES[column])}" for name, column in COLUMNS[kind].items())
    return (
        f"read_json({_list(paths)}, format = 'newline_delimited', columns = {{{columns}}}, hive_partitioning = true, "
        "maximum_object_size = 268435456)"
    )


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
