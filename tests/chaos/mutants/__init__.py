"""Good histories with one fault in each. The checker must report every one, by the invariant that it breaks."""

from tests.chaos.mutants import (
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
from tests.chaos.mutants.mutant import ALL, Mutate

__all__ = [
    "ALL",
    "Mutate",
    "attempts",
    "dependencies",
    "durable",
    "gates",
    "liveness",
    "order",
    "recovery",
    "schedules",
    "submissions",
    "workflows",
]
