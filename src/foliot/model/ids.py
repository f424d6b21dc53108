"""Ids of runs and workers: UUID version 7, so that they sort by creation time and recent ids share index pages."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, SafeUUID

from foliot.clock import unix_milliseconds

_RANDOM_BITS = 74
COUNTER_MAX = 0xFFF
_RANDOM_NUMBERS = 64
_TOGETHER = 1000
"""The number of ids made with one reading of the clock. Making them takes about a millisecond."""
_VARIANTS = bytes(0x80 | byte & 0x3F for byte in range(256))
"""Maps a random byte to one with its last six bits, behind the two bits of the UUID variant."""
_COUNTERS = [f"{counter:03x}" for counter in range(COUNTER_MAX + 1)]
_making = threading.Lock()
_last = [0, 0]
# Read in blocks, because one system call for each number would be a large part of the cost of an id.
_random_numbers: list[int] = []
# Two processes must not use the same numbers.
os.register_at_fork(after_in_child=_random_numbers.clear)
# Looked up once: reading an enumeration's member takes half as long as making an id.
_new, _set, _SAFETY = object.__new__, object.__setattr__, SafeUUID.unknown
_VERSION_AND_VARIANT = (0x7 << 76) | (0x2 << 62)
SHARDS = 100
PREFIX_MIN = 8
"""Ids with the same first digits, this many, were made within about a minute."""
_H = "[0-9a-fA-F]"
ID_PREFIX = (
    f"^({_H}{{{PREFIX_MIN},32}}|{_H}{{8}}-({_H}{{0,4}}|{_H}{{4}}-({_H}{{0,4}}"
    f"|{_H}{{4}}-({_H}{{0,4}}|{_H}{{4}}-{_H}{{0,12}}))))$"
)
"""The beginning of an id, with hyphens or without any."""
# The clock that made an id may have been ahead of the database's by this much.
CLOCK_TOLERANCE = timedelta(days=1)


def new_id() -> UUID:
    """Makes an id. Within a millisecond, each is larger than the previous one of this process."""
    with _making:
        return _next_id()


def new_id_text() -> str:
    """`str(new_id())` in half the time."""
    with _making:
        milliseconds, counter, low = _next_parts()
    digits = f"{(milliseconds << 80) | _VERSION_AND_VARIANT | (counter << 64) | low:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def new_id_texts(number: int) -> list[str]:
    """Makes ids as texts only, each in a tenth of the time."""
    with _making:
        return [text for made in range(0, number, _TOGETHER) for text in _next_texts(min(_TOGETHER, number - made))]


def _next_texts(number: int) -> list[str]:
    """Formats the common part once, and the random parts of all ids together, in their two groups of digits."""
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
    # Bypasses the constructor of UUID, which takes longer than everything above, because it accepts six formats.
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
        # Anywhere in the first half, so that later ids of the same millisecond have room.
        counter = low & 0x7FF
    elif counter < COUNTER_MAX:
        counter += 1
    _last[:] = milliseconds, counter
    return milliseconds, counter, low


def tick_run_id(job_id: UUID, tick: int) -> UUID:
    """The id of a tick's run. It is always the same, so a tick can't become two runs."""
    digest = hashlib.sha256(job_id.bytes + tick.to_bytes(8, "big", signed=True)).digest()
    random = int.from_bytes(digest[:10], "big") >> (80 - _RANDOM_BITS)
    high, low = random >> 62, random & ((1 << 62) - 1)
    return UUID(int=(max(0, tick) * 1000 << 80) | _VERSION_AND_VARIANT | (high << 64) | low)


def shard_of(job_id: UUID) -> int:
    """The shard of a job, which never changes."""
    return int.from_bytes(hashlib.sha256(job_id.bytes).digest()[:8], "big") % SHARDS


def shard_of_queue(queue: str) -> int:
    """The shard whose owner announces the ready runs of a queue."""
    return int.from_bytes(hashlib.sha256(queue.encode()).digest()[:8], "big") % SHARDS


def made_at(run_id: UUID) -> datetime:
    """The creation time inside an id. A foreign UUID yields an arbitrary time, never an error."""
    milliseconds = run_id.int >> 80
    if run_id.version != 7 or milliseconds >= 253_402_300_799_000:
        return datetime(1970, 1, 1, tzinfo=UTC)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def first_id_of(instant: datetime) -> UUID:
    """The smallest id that can be made at that time or later."""
    milliseconds = int((instant - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))
    return UUID(int=(max(0, milliseconds) << 80) | (0x7 << 76))


def id_range(prefix: str) -> tuple[UUID, UUID] | None:
    """The smallest and the largest id that begin so. None for a text that begins no id, or is too short."""
    if not re.fullmatch(ID_PREFIX, prefix):
        return None
    digits = prefix.replace("-", "")
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def not_finished_before(run_id: UUID) -> datetime:
    """The earliest time at which this run can have finished. PostgreSQL skips the days of history before it."""
    made = made_at(run_id)
    return made - CLOCK_TOLERANCE if made.year > 1970 else made


def none_finished_before(run_ids: Sequence[UUID]) -> datetime:
    """The earliest time at which one of these runs can have finished."""
    return not_finished_before(min(run_ids, key=made_at))
