from __future__ import annotations

from importlib import resources
from typing import Any

import pytest

from foliot.store import queries
from foliot.store.store import Store
from tests.support.queries import query_named

FAMILIES = [entry.name.removesuffix(".sql") for entry in (resources.files("foliot.store") / "sql").iterdir()]


@pytest.mark.parametrize("family", FAMILIES)
async def test_every_query_prepares_against_the_real_schema(sql: Any, family: str) -> None:
    for query in queries.load(family).values():
        await sql.prepare(query.sql)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_query_says_why_in_a_comment(family: str) -> None:
    for query in queries.load(family).values():
        assert query.sql.startswith("-- "), query.name


@pytest.mark.parametrize("family", FAMILIES)
def test_no_line_of_sql_is_longer_than_120_characters(family: str) -> None:
    text = (resources.files("foliot.store") / "sql" / f"{family}.sql").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if len(line) > 120] == []


def test_a_named_parameter_becomes_positional_in_the_declared_order() -> None:
    found = queries.parsed(
        """
-- name: sample(later, sooner)
-- Why: :later.
select :sooner::text, 'a :b ''c'' :d', "x"::text, -- :e
    :later::bigint, :sooner
""",
        "sample.sql",
    )["sample"]
    assert found.parameters == ("later", "sooner")
    assert found.sql.splitlines()[0] == "-- Why: :later."
    assert found.sql.splitlines()[1:] == [
        """select $2::text, 'a :b ''c'' :d', "x"::text, -- :e""",
        "    $1::bigint, $2",
    ]
    assert found.arranged({"sooner": 1, "later": 2}) == [2, 1]
    for wrong in ({}, {"sooner": 1}, {"sooner": 1, "late": 2}, {"sooner": 1, "later": 2, "more": 3}):
        with pytest.raises(TypeError, match="sample takes later, sooner"):
            found.arranged(wrong)


@pytest.mark.parametrize("wrong", ["sample(a, b)\nselect :a", "sample\nselect :a", "sample(a, a)\nselect :a"])
def test_a_query_uses_exactly_the_parameters_that_it_declares(wrong: str) -> None:
    with pytest.raises(ValueError, match="sample declares"):
        queries.parsed(f"-- name: {wrong}\n", "sample.sql")


def test_a_fragment_replaces_its_mark() -> None:
    found = queries.parsed(
        "-- fragment: part\n-- Why.\n1 + :a\n\n-- name: sample(\n--     a\n-- )\n-- Why.\nselect {{part}}\n",
        "sample.sql",
    )
    assert found["sample"].sql == "-- Why.\nselect 1 + $1"
    assert list(found) == ["sample"]


async def test_two_statements_become_one(sql: Any) -> None:
    await sql.execute("create temporary table kept (a int, b text)")
    asked = queries.query_of(
        "asked",
        ("one", "two"),
        "-- Why.\nwith summed as (\n    select :two::int + :one::int as sum\n)\nselect sum, :one::int as one from "
        "summed",
    )
    beside = queries.query_of("beside", ("a", "b"), "-- Why else.\ninsert into kept select :a::int, :b::text")
    both = queries.together(asked, beside)
    assert both.name == "asked and beside"
    assert [tuple(row) for row in await sql.fetch(both.sql, 1, 2, 3, "b")] == [(3, 1)]
    assert [tuple(row) for row in await sql.fetch("select a, b from kept")] == [(3, "b")]
    with pytest.raises(ValueError, match="beside does not begin with a WITH"):
        queries.together(beside, asked)
    with pytest.raises(ValueError, match="declares one, two, one, two"):
        queries.together(asked, asked)


async def plan(sql: Any, name: str, *arguments: object) -> str:
    """The generic plan, which PostgreSQL uses after some executions of a prepared statement."""
    await sql.execute("set plan_cache_mode = force_generic_plan")
    statement = await sql.prepare(query_named(name).sql)
    return str(await statement.explain(*arguments))


class TestIndexUse:
    """Hot statements use their indexes with many runs in the table, and with statistics from when it was empty."""

    @pytest.fixture
    async def many_runs(self, store: Store, sql: Any) -> None:
        await sql.execute("analyze foliot.runs")
        await sql.execute(
            """
            insert into foliot.runs (id, created_at, due_at, rank, state, queue, task)
            select gen_random_uuid(), now(), now(), n, (array['ready', 'scheduled', 'waiting'])[n % 3 + 1],
                'q' || n % 5, 't'
            from generate_series(1, 20000) n
            """
        )

    @pytest.mark.usefixtures("many_runs")
    async def test_claim(self, sql: Any) -> None:
        found = await plan(sql, "claim_runs", ["q1"], [100], ["t"], None, None, False, [])
        assert "runs_ready" in found
        assert "Seq Scan on foliot.runs" not in found
        assert "Sort" not in found

    @pytest.mark.usefixtures("many_runs")
    async def test_promote(self, sql: Any) -> None:
        found = await plan(sql, "promote_due_runs", 100, None)
        assert "runs_scheduled" in found
        assert "Seq Scan" not in found

    @pytest.mark.usefixtures("many_runs")
    async def test_seconds_until_due(self, sql: Any) -> None:
        assert "runs_scheduled" in await plan(sql, "seconds_until_due", None)

    @pytest.mark.usefixtures("many_runs")
    async def test_lose(self, sql: Any) -> None:
        found = await plan(sql, "lose_runs", 100, 3, None, "")
        assert "runs_running" in found
        assert "Seq Scan on foliot.runs" not in found
