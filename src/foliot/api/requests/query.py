"""Refuses query parameters that a route does not have.

Ignoring a misspelled parameter would widen the request: `GET /v1/runs?stat=failed` would list all runs, and `POST
/v1/jobs?dry_run=1` would create the job.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import parse_qsl

from foliot.config import did_you_mean
from foliot.errors import Invalid

SHOWN_MAX = 100


def refuse_unknown(query: bytes, known: Collection[str]) -> None:
    """Raises `Invalid` for the first unknown parameter."""
    for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in known:
            shown = name[:SHOWN_MAX].replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
            hint = did_you_mean(shown, known) or (
                f"; the parameters are {', '.join(sorted(known))}" if known else "; there are none"
            )
            raise Invalid(f"{shown}: there is no such query parameter here{hint}", field=shown)
