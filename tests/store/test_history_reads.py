"""Reads of history for metrics and the doctor look at a bounded number of rows, however many runs have ended today."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.model.ids import first_id_of, not_finished_before
from foliot.store.exports import FIRST_ID
from foliot.store.store import Store
from tests.support.plans import rows_read

ENDED = 20_000
# Ids as they are made: in the order of time. All of them ended on one day, in equal distances.
FILL = """
insert into foliot.history (
    id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, worker_id, state, queue, task,
    options
)
select
    (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
    at, at, at, at, 1, 1, 0, 0, gen_random_uuid(), case when n % 10 = 0 then 'failed' else 'succeeded' end,
    'default', 't', '{"tags": ["metrics"]}'
from generate_series(1, $1::bigint) n, lateral (select $2::timestamptz + n * interval '1 millisecond' as at) as time
"""


@pytest.fixture
async def noon(store: Store, sql: Any) -> datetime:
    """Noon of a day on which many runs have ended in the seconds before."""
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    await sql.execute(FILL, ENDED, noon - timedelta(milliseconds=ENDED))
    await sql.execute("analyze foliot.history")
    await sql.execute("select brin_summarize_new_values(c.oid) from pg_class c where relname like '%finished_at_idx'")
    return noon


async def test_examples_are_read_up_to_their_limit(noon: datetime, sql: Any) -> None:
    for since, most in ((noon - timedelta(hours=1), 60), (noon, 10)):
        first = first_id_of(since)
        read = await rows_read(sql, "metrics", "list_latest", first, not_finished_before(first), 50)
        assert read <= most


async def test_endings_are_looked_through_from_their_place_on(noon: datetime, sql: Any) -> None:
    latest = (noon - timedelta(milliseconds=10), FIRST_ID, noon + timedelta(hours=1), 5_000, "metrics")
    read = await rows_read(sql, "job_series", "list_tagged_endings", *latest)
    # BRIN finds ranges of pages, not rows.
    assert read < ENDED / 4


async def test_last_failures_are_read_up_to_their_limit(noon: datetime, sql: Any) -> None:
    assert await rows_read(sql, "diagnosis", "list_last_failures", 20) <= 60
