"""A schedule as one sentence for people."""

from __future__ import annotations

from functools import lru_cache

from foliot.errors import Invalid
from foliot.model.schedule import Schedule
from foliot.triggers.cron import parse_cron
from foliot.triggers.description import explain, period_in_words
from foliot.triggers.durations import parse_duration

NAMES_MAX = 3


def in_words(schedule: Schedule, seed: str) -> str:
    """`seed` is what H in a cron expression is hashed from. The caller adds the time zone."""
    parts = [_expression_in_words(one, seed if "H" in one.upper() else "") for one in schedule.expressions]
    if schedule.every is not None:
        parts.append(period_in_words(parse_duration(schedule.every, field="every")))
    if schedule.times is not None:
        count = len(schedule.times)
        parts.append("at one instant" if count == 1 else f"at {count} instants")
    words = "; and ".join(parts)
    if schedule.after is None:
        return words
    after = _after_in_words(schedule.after)
    return f"{words}, {after}" if words else after


def _after_in_words(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:NAMES_MAX])
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"after {shown}{more}"


@lru_cache(maxsize=2048)
def _expression_in_words(expression: str, seed: str) -> str:
    try:
        return explain(parse_cron(expression, seed=seed, is_stored=True).fields)
    except Invalid:
        # A stored expression in a notation that has no words is shown as it is.
        return expression
