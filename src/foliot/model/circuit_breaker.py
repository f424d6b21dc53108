"""The circuit breaker of a task.

The query `record_failures` (store/sql/circuit_breaker.sql) counts failures in a row and opens the circuit at
`failures`. Claims skip the task while its circuit is open. After `seconds`, `send_probes` lets one run through:
`record_successes` closes the circuit if the probe succeeds, and `record_failures` opens it again if the probe fails.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class Circuit(msgspec.Struct, frozen=True):
    """After `failures` failures in a row the task pauses for `seconds`; then one probe run decides."""

    failures: Annotated[int, Meta(ge=1, le=1_000_000)] = 5
    seconds: Annotated[float, Meta(gt=0, le=86_400)] = 600.0
