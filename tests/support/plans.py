"""Counts the rows and blocks that a statement reads."""

from __future__ import annotations

import json
from typing import Any

from foliot.store import queries


async def rows_read(sql: Any, family: str, name: str, *arguments: object) -> float:
    """Table rows that a named query reads with its generic plan."""
    await sql.execute("set plan_cache_mode = force_generic_plan")
    statement = await sql.prepare(queries.load(family)[name].sql)
    (explained,) = await statement.explain(*arguments, analyze=True)
    return _rows_read(explained["Plan"])


async def blocks_read(sql: Any, statement: str, *arguments: object) -> int:
    """Blocks that a statement reads, including the functions that it calls."""
    (explained,) = json.loads(await sql.fetchval(f"explain (analyze, buffers, format json) {statement}", *arguments))
    plan = explained["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _rows_read(node: dict[str, Any]) -> float:
    own = 0.0
    if "Relation Name" in node and node["Node Type"] != "ModifyTable":
        own = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return float(own + sum(_rows_read(child) for child in node.get("Plans", ())))
