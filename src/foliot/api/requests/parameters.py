"""Decodes query parameters strictly, and names the wrong parameter."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from uuid import UUID

from foliot.config import did_you_mean
from foliot.errors import Invalid, NotFound
from foliot.model.job_request import EARLIEST, LATEST
from foliot.model.states import RunState, status_of
from foliot.triggers.durations import parse_duration

TEXT_MAX = 500
# In these states, a run that has been tried before is listed separately from one that has not: see `RunFilter`.
TRIED = {RunState.READY, RunState.SCHEDULED}
WORDS: dict[str, tuple[str, ...]] = {
    **{str(state): (state, f"{state}+") if state in TRIED else (state,) for state in RunState},
    "pending": ("waiting", "held", "ready"),
    "retrying": ("ready+", "scheduled+"),
    "completed": ("succeeded",),
}

STATUSES = list(dict.fromkeys(status_of(state, attempt) for state in RunState for attempt in (0, 1)))


def words_for(states: Collection[RunState]) -> list[str]:
    """The words that stand for no other states than these."""
    return [word for word, meant in WORDS.items() if all(state.removesuffix("+") in states for state in meant)]


def text_of(value: str, field: str) -> str | None:
    """None if the parameter is missing."""
    if "\0" in value:
        raise Invalid(f"{field}: the character NUL (%00) is in nothing that is stored", field=field)
    if len(value) > TEXT_MAX:
        raise Invalid(f"{field}: must be at most {TEXT_MAX} characters long", field=field)
    return value or None


def words_of(value: str, field: str) -> list[str] | None:
    """The parts of a comma-separated text. None if the parameter is missing."""
    text = text_of(value, field)
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()] or None


def states_of(value: str, field: str = "state") -> list[str] | None:
    """The states that a list of states or statuses stands for."""
    if not value:
        return None
    found: list[str] = []
    for word in value.split(","):
        if word.strip() not in WORDS:
            hint = did_you_mean(word.strip(), WORDS).replace("'succeeded'", "'completed'")
            hint = hint or f"; there are {', '.join(STATUSES)}"
            raise Invalid(f"{field}: there is no state {word.strip()!r}{hint}", field=field)
        found.extend(WORDS[word.strip()])
    return list(dict.fromkeys(found))


def instant_of(value: str, field: str, *, now: datetime) -> datetime | None:
    """Parses an ISO 8601 time with an offset, or a duration before now. None if the parameter is missing."""
    if not value:
        return None
    try:
        # A plus sign that was not escaped arrives as a space.
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
    return reference_of(reference, "run")


def reference_of(reference: str, kind: str) -> UUID:
    """The id in a path. Raises `NotFound` for a text that is none."""
    try:
        return UUID(reference)
    except ValueError:
        raise NotFound(f"there is no {kind} {reference!r}") from None


def cursor_text(instant: datetime, run_id: UUID) -> str:
    microseconds = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return f"{microseconds}.{run_id}"


def cursor_of(value: str, field: str = "after") -> tuple[datetime, UUID]:
    microseconds, _, run_id = value.partition(".")
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(microseconds)), UUID(run_id)
    except (ValueError, OverflowError):
        raise Invalid(f"{field}: {value!r} is not the `next` of a page", field=field) from None
