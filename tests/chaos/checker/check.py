"""Checks a history against every invariant."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

# Importing a module declares its invariants.
from tests.chaos.checker import (
    attempts,
    dependencies,
    durable,
    gates,
    liveness,
    order,
    recovery,
    schedules,
    submissions,
    workflows,
)
from tests.chaos.checker.history import History
from tests.chaos.checker.invariant import ALL, Invariant

FAMILIES = (submissions, schedules, attempts, durable, workflows, dependencies, gates, liveness, order, recovery)
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Breach:
    invariant: Invariant
    faults: list[str]
    """The first few."""


def invariants() -> list[Invariant]:
    return sorted(ALL, key=lambda one: one.number)


def breaches(history: History) -> list[Breach]:
    """The broken invariants; none when all is well."""
    found = ((one, list(islice(one.find(history), SHOWN))) for one in invariants())
    return [Breach(one, faults) for one, faults in found if faults]
