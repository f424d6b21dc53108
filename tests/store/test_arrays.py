"""Arrays for batch statements arrive in PostgreSQL as they were."""

from __future__ import annotations

from typing import Any

from foliot.model.ids import new_id
from foliot.store.arrays import array_text, columns, ids_text, json_array, optional_column


async def test_array_literals_are_read_back_by_postgresql(sql: Any) -> None:
    ids = [new_id() for _ in range(3)]
    assert await sql.fetchval("select $1::text::uuid[]", ids_text(ids)) == ids
    assert await sql.fetchval("select $1::text::uuid[]", ids_text([])) == []
    assert await sql.fetchval("select $1::text::bigint[]", array_text([1, None, -2])) == [1, None, -2]
    texts = ['{"a": 1}', None, '"x"']
    rows = await sql.fetch("select value::text as value from json_array_elements($1::text::json)", json_array(texts))
    assert [row["value"] for row in rows] == ['{"a": 1}', "null", '"x"']


def test_rows_become_columns() -> None:
    assert columns([(1, "a"), (2, "b")], 2) == [[1, 2], ["a", "b"]]
    assert columns([], 2) == [[], []]
    assert optional_column([None, None]) == []
    assert optional_column([None, 1]) == [None, 1]
