"""The recorded steps and waits of a durable function, as `foliot runs show` shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from foliot.cli.columns import Column
from foliot.cli.tables import away, table
from foliot.sdk.operations import Operations

HEADERS = (
    Column("STEP", "text"),
    "KIND",
    "STATUS",
    Column("ATTEMPT", leaves=2),
    Column("STARTED", leaves=1),
    Column("TOOK", leaves=3),
    Column("RESULT", "text"),
)
SHOWN_MAX = 1000
RESULT_MAX = 60


def checkpoints_of(client: Operations, run_id: str) -> list[dict[str, Any]]:
    """The first ones."""
    found: list[dict[str, Any]] = []
    after = ""
    while len(found) < SHOWN_MAX:
        page = client.list_checkpoints(run_id, after=after).document
        found += page["items"]
        if page["next"] is None:
            break
        after = page["next"]
    return found[:SHOWN_MAX]


def checkpoint_table(checkpoints: list[dict[str, Any]], now: datetime) -> str:
    rows = [
        (
            one["name"], one["kind"], "unused" if one["is_unused"] else one["status"], str(one["attempt"]),
            away(one["started_at"], now), took(one), outcome(one, now),
        )
        for one in checkpoints
    ]  # fmt: skip
    unused = [one["name"] for one in checkpoints if one["is_unused"]]
    note = "\nThe function did not ask for the unused steps. Were they renamed or removed?" if unused else ""
    return table(HEADERS, rows) + note if rows else ""


def took(one: dict[str, Any]) -> str:
    if one["finished_at"] is None:
        return ""
    seconds = (datetime.fromisoformat(one["finished_at"]) - datetime.fromisoformat(one["started_at"])).total_seconds()
    return f"{seconds:.3f} s"


def outcome(one: dict[str, Any], now: datetime) -> str:
    if one["error"] is not None:
        return f"{one['error']['kind']}: {one['error']['message']}"
    if one["status"] == "waiting":
        until = f"until {away(one['until'], now)}" if one["until"] else ""
        return f"run {one['run_id']}" if one["run_id"] else until
    if one["result"] is None or one["kind"] == "sleep":
        return ""
    text = str(one["result"])
    return text if len(text) <= RESULT_MAX else f"{text[: RESULT_MAX - 1]}…"


def waits_of(awaits: dict[str, Any] | None, now: datetime) -> str | None:
    """The events that would resume a suspended function, in a few words."""
    if awaits is None:
        return None
    parts = [f"signal {name}" for name in awaits.get("signals", [])[:3]]
    parts += [f"run {run_id} ({name})" for name, run_id in list(awaits.get("children", {}).items())[:3]]
    if until := awaits.get("until"):
        parts.append(f"until {away(until, now)}")
    return ", ".join(parts)
