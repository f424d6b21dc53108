"""The overlap policy of a recurring job: what becomes of a tick that is due while an earlier run of the job is live.

- `skip`: the tick is noted and becomes no run.
- `buffer_one`, `buffer_all`: the run waits for the earlier one; of `buffer_one` at most one run waits.
- `cancel_other`: the earlier run is cancelled, and the new one waits until it has ended.
- `terminate_other`: the earlier run is ended at once, and the new one starts.
- `allow_all`: both run.

`store/functions/overlap_verdict.sql` decides, within the statement that fires the tick. `store/sql/overlap.sql`
releases the runs that wait.
"""

from __future__ import annotations

from typing import Literal

Overlap = Literal["skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other", "allow_all"]
