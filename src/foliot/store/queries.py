"""Loads `sql/*.sql` into named queries.

A block begins with `-- name: claim_runs(queues, slots, ...)` and holds one statement. In the statement a parameter is
written `:queues`; PostgreSQL receives `$1`, by its place in the parentheses. A block that begins with
`-- fragment: given_runs` holds a part of statements, and replaces `{{given_runs}}` in the blocks after it. Fragments
in `fragments.sql` are for every file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

BLOCK = re.compile(r"^-- (name|fragment): (\w+)(?:\(([^)]*)\))?\n", re.MULTILINE)
FRAGMENT = re.compile(r"\{\{(\w+)\}\}")
# Strings, comments and casts come first, so that a colon in them begins no parameter.
PARAMETER = re.compile(r"'(?:[^']|'')*'|--[^\n]*|::|:([a-z]\w*)")


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    sql: str
    """The text that PostgreSQL receives."""
    parameters: tuple[str, ...] = ()
    source: str = ""
    """The text in the file, with named parameters."""

    def arranged(self, arguments: Mapping[str, object]) -> list[object]:
        """Puts arguments given by name into the order of the parameters."""
        if len(arguments) != len(self.parameters) or not all(name in arguments for name in self.parameters):
            raise TypeError(f"{self.name} takes {', '.join(self.parameters)}, not {', '.join(arguments)}")
        return [arguments[name] for name in self.parameters]


@cache
def load(family: str) -> dict[str, Query]:
    """The named queries of one file."""
    fragments: dict[str, str] = {}
    if family != "fragments":
        parsed(_text("fragments"), "fragments.sql", fragments)
    return parsed(_text(family), f"{family}.sql", fragments)


def _text(family: str) -> str:
    return (resources.files("foliot.store") / "sql" / f"{family}.sql").read_text(encoding="utf-8")


def parsed(text: str, place: str, fragments: dict[str, str] | None = None) -> dict[str, Query]:
    """The queries of a text. Adds its fragments to the given ones."""
    # Splitting by a pattern with groups yields the text before the first block, then kind, name, parameters and body
    # of each block.
    pieces = BLOCK.split(text)[1:]
    found: dict[str, Query] = {}
    fragments = {} if fragments is None else fragments
    for kind, name, listed, body in zip(pieces[::4], pieces[1::4], pieces[2::4], pieces[3::4], strict=True):
        if name in found or name in fragments:
            raise ValueError(f"{place} has two blocks named {name}")
        source = FRAGMENT.sub(lambda mark: fragments[mark[1]], body.strip())
        if kind == "fragment":
            fragments[name] = _without_comment(source)
        else:
            found[name] = query_of(name, tuple(re.findall(r"\w+", listed or "")), source)
    return found


def query_of(name: str, parameters: tuple[str, ...], source: str) -> Query:
    """The query with positional parameters. Raises `ValueError` unless it uses exactly the declared ones."""
    used: set[str] = set()

    def positional(token: re.Match[str]) -> str:
        if token[1] is None:
            return token[0]
        used.add(token[1])
        return f"${parameters.index(token[1]) + 1}" if token[1] in parameters else token[0]

    sql = PARAMETER.sub(positional, source)
    if used != set(parameters) or len(set(parameters)) < len(parameters):
        raise ValueError(f"{name} declares {', '.join(parameters)} and uses {', '.join(sorted(used))}")
    return Query(name, sql, parameters, source)


@cache
def together(query: Query, beside: Query) -> Query:
    """Both queries as one statement, in one round trip and with one commit.

    `beside` writes, and its rows are not read. Its parameters follow those of `query`, and have other names. `query`
    must begin with a WITH, because PostgreSQL allows a data-modifying statement only in the outermost one.
    """
    why, has_with, rest = f"\n{query.source}".partition("\nwith ")
    if not has_with:
        raise ValueError(f"{query.name} does not begin with a WITH")
    source = f"{why}\nwith beside as (\n{beside.source}\n), {rest}"
    return query_of(f"{query.name} and {beside.name}", (*query.parameters, *beside.parameters), source)


def _without_comment(source: str) -> str:
    """A fragment without the comment at its head, which would stand in the middle of a statement."""
    lines = source.split("\n")
    while lines and lines[0].startswith("--"):
        del lines[0]
    return "\n".join(lines)
