"""Runs held by a condition: reads the values that the condition needs, and stores the decision."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

import msgspec

from foliot.model.conditions import RESULT_MAX_BYTES, Condition, Decision, StepOutcome
from foliot.model.failure_fingerprint import error_pattern
from foliot.model.ids import not_finished_before
from foliot.model.outcome import error_of
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database

KINDS = {"skip": ("skipped", "condition", "ConditionFalse"), "fail": ("failed", "error", "ConditionError")}
decode_condition = msgspec.json.Decoder(Condition).decode


class Conditions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("conditions")

    async def list_conditions(self, limit: int) -> dict[UUID, Condition]:
        """The conditions of the runs that are held by one, oldest first."""
        rows = await self._database.fetch(self._queries["list_conditions"], limit=limit)
        return {row[0]: _condition(row[1]) for row in rows}

    async def read_outcomes(self, run_ids: Collection[UUID]) -> dict[UUID, StepOutcome]:
        """How far the given runs are. A run that is not known any more is left out."""
        if not run_ids:
            return {}
        rows = await self._database.fetch(
            self._queries["read_outcomes"],
            ids=list(run_ids),
            finished_from=min(map(not_finished_before, run_ids)),
            max_bytes=RESULT_MAX_BYTES,
        )
        return {
            row[0]: StepOutcome(RunState(row[1]), None if row[2] is None else msgspec.json.decode(row[2]), row[3])
            for row in rows
        }

    async def pass_conditions(self, run_ids: Collection[UUID]) -> list[tuple[str, RunState]]:
        """Lets runs go on whose conditions are true. Returns the queue and the state of each."""
        rows = await self._database.fetch(
            self._queries["pass_conditions"], ids=list(run_ids), now=self._database.clock.sql_now()
        )
        return [(row[0], RunState(row[1])) for row in rows]

    async def close_conditional(self, decisions: Mapping[UUID, Decision]) -> int:
        """Ends runs whose conditions are false or have no value. Returns how many it ended."""
        found = []
        for run_id, decision in decisions.items():
            state, reason, kind = KINDS[decision.verdict]
            error = msgspec.json.encode(error_of(kind, decision.message)).decode()
            found.append((run_id, state, reason, error, error_pattern(error) if state == "failed" else ""))
        ids, states, reasons, errors, patterns = (list(column) for column in zip(*found, strict=True))
        return int(
            await self._database.fetch_value(
                self._queries["close_conditional"],
                ids=ids,
                states=states,
                reasons=reasons,
                errors=errors,
                patterns=patterns,
                now=self._database.clock.sql_now(),
            )
        )


def _condition(text: str) -> Condition:
    """A condition that SQL has stored may be unreadable. Then its run fails, and the others go on."""
    try:
        return decode_condition(text)
    except msgspec.DecodeError:
        return Condition(when=text)
