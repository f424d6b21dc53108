"""Writes measurements into docs/performance.md, between its marks: `python -m benchmarks --document`.

The text outside of the marks stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import capacity
from benchmarks.report import heading, shown

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
MARK = re.compile(r"<!-- measured: (\w+) -->\n.*?<!-- end -->", re.DOTALL)
NOT_MEASURED = "Not measured yet: `make bench`, then `python -m benchmarks --document`.\n"
Results = Sequence[Mapping[str, Any]]


def write(results: Path, page: Path = PAGE) -> None:
    page.write_text(filled(page.read_text(), json.loads(results.read_text())))


def filled(text: str, results: Results) -> str:
    """The page with its marked parts replaced."""
    parts = {"host": host, "goals": goals, "tables": tables, "plan": plan}

    def made(found: re.Match[str]) -> str:
        return f"<!-- measured: {found[1]} -->\n\n{parts[found[1]](results) or NOT_MEASURED}\n<!-- end -->"

    return MARK.sub(made, text)


def host(results: Results) -> str:
    found = next((one for one in results if one["scenario"] == "environment"), None)
    if found is None:
        return ""
    postgres = ", ".join(f"{name} {value}" for name, value in found["postgres"].items() if name != "server_version")
    return (
        f"Measured at {found['measured_at']} from commit {found['commit']}, in {found['size']} size: "
        f"{found['cores']} cores of {found['processor']}, {found['memory_gb']} GB of memory, Linux {found['kernel']}, "
        f"a disk that does {shown(found['fdatasync_per_second'])} `fdatasync` a second; Python {found['python']}, "
        f"PostgreSQL "
        f"{found['postgres']['server_version']} ({postgres}). PostgreSQL, workers and clients share the machine.\n"
    )


def goals(results: Results) -> str:
    rows = [
        [f"`{one['scenario']}`", goal["what"], shown(goal["value"]), _others(goal), goal["wanted"], goal["verdict"]]
        for one in results
        for goal in one.get("goals", ())
    ]
    return _table(["scenario", "goal", "measured", "other tries", "wanted", ""], rows) if rows else ""


def _others(goal: Mapping[str, Any]) -> str:
    return ", ".join(shown(value) for value in goal.get("other_tries", ()))


def tables(results: Results) -> str:
    return "\n".join(_scenario(one) for one in results if "rows" in one)


def plan(results: Results) -> str:
    cost = capacity.costs(results)
    return (
        "" if cost is None else _table(["quantity", "computation", "value"], [list(row) for row in capacity.plan(cost)])
    )


def _scenario(found: Mapping[str, Any]) -> str:
    columns = list(dict.fromkeys(name for row in found["rows"] for name in row if name != "name"))
    rows = [[row["name"], *(shown(row[name]) if name in row else "" for name in columns)] for row in found["rows"]]
    said = [f"{heading(name)} {shown(value)}" for name, value in found["settings"].items()]
    said += [
        *found["notes"],
        f"{found['size']} size, {found['measured_at'][:10]}; others on the machine kept "
        f"{shown(found['cores_of_others'])} cores busy",
    ]
    table = _table(["", *map(heading, columns)], rows)
    return (
        f"### {found['scenario']}\n\n{found['title'][0].upper()}{found['title'][1:]}.\n\n{table}\n{'; '.join(said)}.\n"
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
