from __future__ import annotations

from importlib import resources
from typing import Any

import pytest

from foliot.store import queries
from foliot.store.queries import Query
from foliot.store.store import Store

FAMILIES = [entry.name.removesuffix(".sql") for entry in (resources.files("foliot.store") / "sql").iterdir()]


@pytest.mark.parametrize("family", FAMILIES)
async def test_every_query_prepares_against_the_real_schema(sql: Any, family: str) -> None:
    for query in queries.load(family).values():
        await sql.prepare(query.sql)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_query_says_why_in_a_comment(family: str) -> None:
    for query in queries.load(family).values():
        assert query.sql.startswith("-- "), query.name


async def test_two_statements_become_one(sql: Any) -> None:
    await sql.execute("create temporary table kept (a int, b text)")
    asked = Query(
        "asked",
        "-- Why.\nwith summed as (\n    select $2::int + $1::int as sum\n)\nselect sum, $1::int as one from summed",
    )
    beside = Query("beside", "-- Why else.\ninsert into kept select $1::int, $2::text")
    both = queries.together(asked, beside)
    assert both.name == "asked and beside"
    assert [tuple(row) for row in await sql.fetch(both.sql, 1, 2, 3, "b")] == [(3, 1)]
    assert [tuple(row) for row in await sql.fetch("select a, b from kept")] == [(3, "b")]
    with pytest.raises(ValueError, match="beside does not begin with a WITH"):
        queries.together(beside, asked)


async def plan(sql: Any, name: str, *arguments: object) -> str:
    """The plan that is used for any arguments, as after a few executions of the prepared statement."""
    await sql.execute("set plan_cache_mode = force_generic_plan")
    statement = await sql.prepare(queries.load("runs")[name].sql)
    return str(await statement.explain(*arguments))


class TestTheHotStatementsUseTheirIndexes:
    """With many runs in the table, and with statistics from when it was empty."""

    @pytest.fixture
    async def many_runs(self, store: Store, sql: Any) -> None:
        await sql.execute("analyze foliot.runs")
        await sql.execute(
            """
            insert into foliot.runs (id, created_at, due_at, rank, state, queue, task)
            select gen_random_uuid(), now(), now(), n, (array['ready', 'scheduled', 'waiting'])[n % 3 + 1], 'q' || n % 5, 't'
            from generate_series(1, 20000) n
            """
        )

    @pytest.mark.usefixtures("many_runs")
    async def test_claim(self, sql: Any) -> None:
        found = await plan(sql, "claim_runs", ["q1"], [100], ["t"], None, None, False)
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
