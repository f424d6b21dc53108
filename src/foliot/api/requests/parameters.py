"""Query parameters: read strictly, and when they are bad, said which."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from uuid import UUID

from foliot.config import did_you_mean
from foliot.errors import Invalid, NotFound
from foliot.model.job_request import EARLIEST, LATEST
from foliot.model.states import RunState
from foliot.triggers.durations import parse_duration

TEXT_MAX = 500
# Where a run that has been tried before stands apart from one that has not: see `RunFilter`.
TRIED = {RunState.READY, RunState.SCHEDULED}
WORDS: dict[str, tuple[str, ...]] = {
    **{str(state): (state, f"{state}+") if state in TRIED else (state,) for state in RunState},
    "pending": ("waiting", "held", "ready"),
    "retrying": ("ready+", "scheduled+"),
    "completed": ("succeeded",),
}


def words_for(states: Collection[RunState]) -> list[str]:
    """Those that stand for nothing but these states."""
    return [word for word, meant in WORDS.items() if all(state.removesuffix("+") in states for state in meant)]


def text_of(value: str, field: str) -> str | None:
    """None when it was not given."""
    if "\0" in value:
        raise Invalid(f"{field}: the character NUL (%00) is in nothing that is stored", field=field)
    if len(value) > TEXT_MAX:
        raise Invalid(f"{field}: must be at most {TEXT_MAX} characters long", field=field)
    return value or None


def states_of(value: str) -> list[str] | None:
    """The states that a list of words, inside ones or outside ones, stands for."""
    if not value:
        return None
    found: list[str] = []
    for word in value.split(","):
        if word.strip() not in WORDS:
            hint = did_you_mean(word.strip(), WORDS) or f"; there are {', '.join(WORDS)}"
            raise Invalid(f"state: there is no state {word.strip()!r}{hint}", field="state")
        found.extend(WORDS[word.strip()])
    return list(dict.fromkeys(found))


def instant_of(value: str, field: str, *, now: datetime) -> datetime | None:
    """An ISO 8601 time with an offset, or a duration: so long ago. None when it was not given."""
    if not value:
        return None
    try:
        # A plus that was not escaped arrives as a blank.
        moment = datetime.fromisoformat(value.replace(" ", "+") if "T" in value else value)
    except ValueError:
        moment = _ago(value, field, now)
    if moment.tzinfo is None:
        raise Invalid(f"{field}: {value!r} has no offset; write it like 2026-12-31T23:59:59Z", field=field)
    if not EARLIEST <= moment < LATEST:
        raise Invalid(f"{field}: must be between {EARLIEST.year} and {LATEST.year}", field=field)
    return moment


def _ago(value: str, field: str, now: datetime) -> datetime:
    try:
        return now - timedelta(seconds=parse_duration(value, field=field))
    except (Invalid, OverflowError):
        message = (
            f"{field}: {value!r} is neither an ISO 8601 time such as 2026-12-31T23:59:59Z nor a duration such as 2h"
        )
        raise Invalid(message, field=field) from None


def id_of(value: str, field: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise Invalid(f"{field}: {value!r} is not an id", field=field) from None


def run_id_of(reference: str) -> UUID:
    try:
        return UUID(reference)
    except ValueError:
        raise NotFound(f"there is no run {reference!r}") from None


def cursor_text(instant: datetime, run_id: UUID) -> str:
    microseconds = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return f"{microseconds}.{run_id}"


def cursor_of(value: str, field: str = "after") -> tuple[datetime, UUID]:
    microseconds, _, run_id = value.partition(".")
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(microseconds)), UUID(run_id)
    except (ValueError, OverflowError):
        raise Invalid(f"{field}: {value!r} is not the `next` of a page", field=field) from None
