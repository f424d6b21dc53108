"""Rules about the shape of the code that import-linter can't check: file sizes, where SQL lives, dead queries, and the
cost of `import foliot`."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

import foliot
from foliot.store import queries
from tests.support.mirror import COVERED_BY

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path(foliot.__file__).parent
STORE = SOURCE / "store"
MOST_LINES = {"src": 400, "tools": 400, "benchmarks": 400, "tests": 500}
LONGER_FILES = {
    "src/foliot/store/schema.sql": "generated from the migrations",
    "src/foliot/store/migrations/0001_first.sql": "the whole schema, grouped by subject",
}
SERVER_LIBRARIES = {"fastapi", "starlette", "uvicorn", "asyncpg", "pydantic"}
# Each runs alone, and also inside a longer transaction: a firing that waits for its instant, and a claim from a queue
# with a limit.
USED_TWICE = {"fire_ticks", "claim_runs"}
# Matches a whole statement, not a sentence that contains the same words.
TABLE = r"[\w.{}]+"
AFTER_TABLE = r"""(?: \s* (?: ; | [,()] .* )?
    | \s+ (?: (?: as \s+ )? \w+ \s+ )? (?: as | where | order | group | limit | union | for | join | left | using |
        returning ) \b .*
)"""
STATEMENT = re.compile(
    rf"""
    \s* (?: with \s+ (?: recursive \s+ )? \w+ \s+ as \s* \( .* )?
    (?:
        select \s .* \s from \s+ (?: \( .* | {TABLE} {AFTER_TABLE} )
      | insert \s+ into \s+ {TABLE} \s* (?: \( | values \b | select \b | default \b ) .*
      | update \s+ {TABLE} (?: \s+ (?: as \s+ )? \w+ )? \s+ set \s+ {TABLE} \s* = .*
      | delete \s+ from \s+ {TABLE} {AFTER_TABLE}
    )
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def texts_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string of a module except docstrings. An f-string is one text, with {} for each value."""
    not_code = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
            not_code.update(id(part) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in not_code:
            yield node.lineno, node.value


@pytest.mark.parametrize(
    "text",
    [
        "select id from foliot.runs",
        "SELECT count(*) FROM runs;",
        "select id from foliot.runs r where r.id = $1",
        "select queue from unnest($1::text[]) as q (queue)",
        "select 1 from (select 2) as two",
        "select id\n from foliot.runs\n where state = 'ready'",
        "with gone as (delete from foliot.runs returning *) select count(*) from gone",
        "insert into foliot.runs (id) values ($1)",
        "Insert Into {} select 1",
        "update foliot.runs set state = 'ready'",
        "update foliot.runs r set state = 'ready' from held",
        "delete from foliot.workers where id = $1",
        "DELETE FROM {}",
    ],
)
def test_statement_pattern_matches_sql(text: str) -> None:
    assert STATEMENT.fullmatch(text)


@pytest.mark.parametrize(
    "text",
    [
        "Select a queue from the list of known queues",
        "select one from these: mail, default",
        "Update the settings and set the port",
        "update it, set nothing",
        "insert into the database all rows",
        "delete from here on",
        "jobs are taken with `select ... from foliot.runs`",
    ],
)
def test_statement_pattern_ignores_prose(text: str) -> None:
    assert not STATEMENT.fullmatch(text)


def test_texts_of_joins_f_strings_and_skips_docstrings() -> None:
    tree = ast.parse('"""select a from b"""\nx = f"select a from {table}"\ny = ["delete from b"]')
    assert list(texts_of(tree)) == [(2, "select a from {}"), (3, "delete from b")]


# SQL for DuckDB, over the files of the archive.
OTHER_SQL = SOURCE / "archive" / "query.py"


def test_only_the_store_contains_sql() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text[:60]}"
        for path in SOURCE.rglob("*.py")
        if STORE not in path.parents and path != OTHER_SQL
        for line, text in texts_of(ast.parse(path.read_text()))
        if STATEMENT.fullmatch(text)
    ]
    assert found == []


def imports_of(path: Path) -> set[str]:
    """The modules that a module imports, by both forms of the statement."""
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def test_only_the_store_imports_asyncpg() -> None:
    users = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py") if "asyncpg" in imports_of(path)}
    assert users == {"store"}


def test_every_named_query_is_used_once() -> None:
    named = [name for path in (STORE / "sql").glob("*.sql") for name in queries.load(path.stem)]
    assert len(named) == len(set(named)), "two files use the same query name"
    used = Counter(
        node.slice.value
        for path in STORE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in named
    )
    assert used == {name: 2 if name in USED_TWICE else 1 for name in named}


def test_api_and_submission_find_runs_and_jobs_only_by_namespace() -> None:
    """That is, through `store/lookup.py`."""
    lookups = re.compile(r"\b(?:runs\.get_run|(?:jobs|_jobs)\.get_job)\(")
    packages = (SOURCE / "api", SOURCE / "submission")
    paths = [path for package in packages for path in package.rglob("*.py")]
    assert [path.name for path in paths if lookups.search(path.read_text())] == []


def test_only_the_application_imports_routes() -> None:
    importers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if any(name.startswith("foliot.api.routes") for name in imports_of(path))
    }
    assert importers == {"api/app.py"}


def test_import_foliot_loads_no_server_library_and_no_http_client() -> None:
    code = "import sys, foliot; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    ).stdout.split()
    assert "foliot" in loaded
    assert (SERVER_LIBRARIES | {"httpx"}) & set(loaded) == set()


def test_files_stay_short() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): (len(path.read_text().splitlines()), most)
        for place, most in MOST_LINES.items()
        for suffix in ("py", "sql")
        for path in (ROOT / place).rglob(f"*.{suffix}")
    }
    too_long = {name: length for name, (length, most) in lengths.items() if length > most and name not in LONGER_FILES}
    assert too_long == {}, "split these files, one responsibility each"


def has_behaviour(path: Path) -> bool:
    """Whether a function of the module has a body: interfaces, types and constants need no test of their own."""
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return any(len(node.body) > 1 or not isinstance(node.body[0], ast.Expr) for node in functions)


def mirrors(module: str) -> bool:
    """Whether `tests/` has `test_<module>.py`, `test_<module>_<aspect>.py`, or a directory of the module's name."""
    path = ROOT / "tests" / module
    found = (path.parent / f"test_{path.name}.py").exists() or any(path.parent.glob(f"test_{path.name}_*.py"))
    return found or any(path.glob("test_*.py"))


def test_every_module_has_a_test_of_its_name_or_says_which_file_tests_it() -> None:
    """The most exact pattern of `COVERED_BY` counts."""
    modules = {
        path.relative_to(SOURCE).with_suffix("").as_posix()
        for path in SOURCE.rglob("*.py")
        if not path.name.startswith("__") and has_behaviour(path)
    }
    missing = {module for module in modules if not mirrors(module)}
    matched = {
        module: [
            pattern for pattern in COVERED_BY if pattern.count("/") == module.count("/") and fnmatch(module, pattern)
        ]
        for module in missing
    }
    assert {module for module, patterns in matched.items() if not patterns} == set(), "write a test with this name"
    used = {max(patterns, key=lambda pattern: len(pattern.rstrip("*"))) for patterns in matched.values()}
    assert set(COVERED_BY) - used == set(), "these modules have tests of their name; remove the pattern"
    assert [test for test in COVERED_BY.values() if not (ROOT / "tests" / test).exists()] == []


def test_architecture_page_names_only_existing_files_and_functions() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = re.findall(r"`([\w/.]+(?:/|\.(?:py|sql|md|svg)))(?:::(\w+))?`", page)
    assert len(named) > 80
    missing = []
    for path, name in named:
        found = next((place / path for place in (SOURCE, ROOT) if (place / path).exists()), None)
        definition = rf"(?:def |class |-- name: |function foliot\.){name}\b"
        if found is None or (name and not re.search(definition, found.read_text())):
            missing.append(f"{path}::{name}" if name else path)
    assert missing == []


def test_architecture_page_names_one_file_for_each_change() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("## Where do I change")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) >= 25
    assert [row for row in rows if row.count("`") != 2] == []
