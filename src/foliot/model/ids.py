"""Ids of runs and workers: UUID version 7, so that they sort by the time they were made and neighbours share index
pages."""

from __future__ import annotations

import hashlib
import os
import threading
from array import array
from datetime import UTC, datetime, timedelta
from uuid import UUID, SafeUUID

from foliot.clock import unix_milliseconds

_RANDOM_BITS = 74
COUNTER_MAX = 0xFFF
_RANDOM_NUMBERS = 64
_TOGETHER = 1000
"""Made with one look at the clock, which goes on by a millisecond meanwhile."""
_VARIANTS = bytes(0x80 | byte & 0x3F for byte in range(256))
"""A byte's last six random bits, behind the two that say which kind of UUID it is."""
_COUNTERS = [f"{counter:03x}" for counter in range(COUNTER_MAX + 1)]
_making = threading.Lock()
_last = [0, 0]
# Asked for together: for one number at a time, asking the system would be a good part of making an id.
_random_numbers: list[int] = []
# Two processes must not use up the same ones.
os.register_at_fork(after_in_child=_random_numbers.clear)
# Looked up once: an enumeration's member takes as long as half an id.
_new, _set, _SAFETY = object.__new__, object.__setattr__, SafeUUID.unknown
_VERSION_AND_VARIANT = (0x7 << 76) | (0x2 << 62)
SHARDS = 100
# A clock that made the id may have been ahead of the database's by this much.
CLOCK_TOLERANCE = timedelta(days=1)


def new_id() -> UUID:
    """Within a millisecond, each is larger than the one that this process made before."""
    with _making:
        return _next_id()


def new_id_texts(number: int) -> list[str]:
    """So many, for who needs nothing but their texts, each in a tenth of the time."""
    with _making:
        return [text for made in range(0, number, _TOGETHER) for text in _next_texts(min(_TOGETHER, number - made))]


def _next_texts(number: int) -> list[str]:
    """What they have in common is written once, and what is random of all of them at once, in its two groups of
    digits."""
    milliseconds, counter, _ = _next_parts()
    _last[1] = min(counter + number - 1, COUNTER_MAX)
    time = f"{milliseconds >> 16:08x}-{milliseconds & 0xFFFF:04x}-7"
    counters = _COUNTERS[counter : counter + number]
    counters += _COUNTERS[-1:] * (number - len(counters))
    first, second = bytearray(os.urandom(2 * number)), os.urandom(6 * number)
    first[::2] = first[::2].translate(_VARIANTS)
    groups = first.hex("-", -2).split("-"), second.hex("-", -6).split("-")
    return [f"{time}{counter}-{group}-{rest}" for counter, group, rest in zip(counters, *groups, strict=True)]


def _next_id() -> UUID:
    milliseconds, counter, low = _next_parts()
    # Past UUID's own way of being made, which takes longer than all of the above: there are six ways to tell it its
    # number.
    made = _new(UUID)
    _set(made, "int", (milliseconds << 80) | _VERSION_AND_VARIANT | (counter << 64) | low)
    _set(made, "is_safe", _SAFETY)
    return made


def _next_parts() -> tuple[int, int, int]:
    if not _random_numbers:
        _random_numbers.extend(array("Q", os.urandom(8 * _RANDOM_NUMBERS)))
    low = _random_numbers.pop() >> 2
    milliseconds, (last_milliseconds, counter) = unix_milliseconds(), _last
    if milliseconds != last_milliseconds:
        # Anywhere in the first part: what comes in the same millisecond has room behind it.
        counter = low & 0x7FF
    elif counter < COUNTER_MAX:
        counter += 1
    _last[:] = milliseconds, counter
    return milliseconds, counter, low


def tick_run_id(job_id: UUID, tick: int) -> UUID:
    """The id of the run that a job's tick becomes: always the same, so that a tick can't become two runs."""
    digest = hashlib.sha256(job_id.bytes + tick.to_bytes(8, "big", signed=True)).digest()
    random = int.from_bytes(digest[:10], "big") >> (80 - _RANDOM_BITS)
    high, low = random >> 62, random & ((1 << 62) - 1)
    return UUID(int=(max(0, tick) * 1000 << 80) | _VERSION_AND_VARIANT | (high << 64) | low)


def shard_of(job_id: UUID) -> int:
    """The shard that a job belongs to, for ever."""
    return int.from_bytes(hashlib.sha256(job_id.bytes).digest()[:8], "big") % SHARDS


def made_at(run_id: UUID) -> datetime:
    """The instant inside an id. For a UUID that is not ours it is some instant or other, never an error."""
    milliseconds = run_id.int >> 80
    if run_id.version != 7 or milliseconds >= 253_402_300_799_000:
        return datetime(1970, 1, 1, tzinfo=UTC)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def first_id_of(instant: datetime) -> UUID:
    """No id made at that instant or later is smaller."""
    milliseconds = int((instant - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))
    return UUID(int=(max(0, milliseconds) << 80) | (0x7 << 76))


def not_finished_before(run_id: UUID) -> datetime:
    """A bound that lets PostgreSQL leave out the days of history in which this run can't be."""
    made = made_at(run_id)
    return made - CLOCK_TOLERANCE if made.year > 1970 else made
