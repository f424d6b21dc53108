"""How often a run may start when its worker is lost.

`at_least_once`: another worker starts the run again (query `lose_runs`, store/sql/lost_runs.sql). `at_most_once`: the
run fails instead. `transactional`: the task commits its own work and the end of its run in one transaction.
"""

from __future__ import annotations

from typing import Literal

Guarantee = Literal["at_least_once", "at_most_once", "transactional"]
