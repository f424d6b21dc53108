"""Time zones as offsets in seconds, and the instants at which an offset changes.

Everything else in this package works on two integers: an instant (UTC) and a wall time (what a clock on the wall shows,
as if it were UTC); wall = instant + offset. Between two transitions the offset is constant, so a search for a wall time
is a search for an instant. A *gap* is a transition that skips wall times, a *fold* one that repeats them.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, ZoneInfoNotFoundError

from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.triggers.base import EARLIEST, LATEST

# No zone changes its offset and changes it back within less than this.
SAMPLE_SECONDS = 7 * 86_400
# Transitions are looked for, and remembered, by spans of about a year.
SPAN_SECONDS = 52 * SAMPLE_SECONDS
OFFSET = re.compile(r"(?:UTC|GMT|Z)?\s*[+-]\s*[0-9]{1,2}(?::?[0-9]{2})?", re.IGNORECASE)
LONGEST_ABBREVIATION = 4
# Files beside the zones that are no zones, that differ between machines, or that count leap seconds.
NOT_NAMES = ("/", ".", "localtime", "posixrules", "posix/", "right/")


@dataclass(frozen=True, slots=True)
class Transition:
    """From this instant on, `after` holds instead of `before`."""

    instant: int
    before: int
    after: int

    @property
    def is_gap(self) -> bool:
        return self.after > self.before


def zone_named(name: str) -> ZoneInfo:
    """An IANA zone. Raises `Invalid`, with the nearest known name, for anything else."""
    try:
        if name.startswith(NOT_NAMES) or ".." in name:
            raise ValueError(name)
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(
            f"timezone: there is no IANA time zone {name[:100]!r}{_hint(name[:100])}", field="timezone"
        ) from None


def _hint(name: str) -> str:
    """The nearest name that would be accepted. The names of abbreviations are left out: EST is near to CEST, and is
    another time."""
    if OFFSET.fullmatch(name):
        return "; an offset is not a time zone: name a place, such as Europe/Berlin"
    known = _known_names()
    if same := next((other for other in known if other.lower() == name.lower()), None):
        return f", did you mean {same!r}?"
    return did_you_mean(name, [other for other in _same_region(name, known) if _is_hint(other, name)])


def _same_region(name: str, known: tuple[str, ...]) -> list[str]:
    """The names in the region that `name` most resembles. Comparing with all six hundred names takes milliseconds."""
    region, slash, _ = name.partition("/")
    near = difflib.get_close_matches(region, {other.partition("/")[0] for other in known if "/" in other}, n=1)
    return [other for other in known if not slash or not near or other.startswith(f"{near[0]}/")]


def _is_hint(other: str, name: str) -> bool:
    return "/" in other or len(other) > LONGEST_ABBREVIATION or name.endswith(f"/{other}")


@lru_cache(1)
def _known_names() -> tuple[str, ...]:
    return tuple(sorted(other for other in _zone_names() if not other.startswith(NOT_NAMES)))


def offset_at(zone: ZoneInfo, instant: int) -> int:
    # Beyond both ends of what triggers name, nothing changes any more.
    moment = datetime.fromtimestamp(min(max(instant, EARLIEST), LATEST), UTC).astimezone(zone)
    offset = moment.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def same_wall(zone: ZoneInfo, instant: int, offset_before: int) -> int:
    """The instant at which the clock on the wall shows what it showed at `instant` under an offset that held before the
    rules changed."""
    wall = instant + offset_before
    guess = wall - offset_at(zone, instant)
    return wall - offset_at(zone, guess)


def next_transition(zone: ZoneInfo, after: int, until: int) -> Transition | None:
    """The first transition in (after, until]."""
    for span in range(after // SPAN_SECONDS, until // SPAN_SECONDS + 1):
        for found in _transitions_in(zone, span):
            if found.instant > after:
                return found if found.instant <= until else None
    return None


def last_transition(zone: ZoneInfo, since: int, until: int) -> Transition | None:
    """The last transition in [since, until]."""
    for span in range(until // SPAN_SECONDS, since // SPAN_SECONDS - 1, -1):
        for found in reversed(_transitions_in(zone, span)):
            if found.instant <= until:
                return found if found.instant >= since else None
    return None


@lru_cache(maxsize=4096)
def _transitions_in(zone: ZoneInfo, span: int) -> tuple[Transition, ...]:
    found = []
    # One second before the span, so that a transition at its very first instant belongs to it.
    left, last = span * SPAN_SECONDS - 1, (span + 1) * SPAN_SECONDS - 1
    before = offset_at(zone, left)
    while left < last:
        right = min(left + SAMPLE_SECONDS, last)
        after = offset_at(zone, right)
        if after != before:
            found.append(_narrow(zone, left, right, before, after))
        left, before = right, after
    return tuple(found)


def _narrow(zone: ZoneInfo, left: int, right: int, before: int, after: int) -> Transition:
    while right - left > 1:
        middle = (left + right) // 2
        if offset_at(zone, middle) == before:
            left = middle
        else:
            right = middle
    return Transition(right, before, after)


def rules_fingerprint() -> str:
    """Equal wherever the rules of all zones are: of two nodes, or before and after an update."""
    digest = hashlib.sha256()
    for name in _zone_names():
        digest.update(name.encode() + b"\0" + _rules_of(name) + b"\0")
    return digest.hexdigest()[:32]


def _rules_of(name: str) -> bytes:
    """The file that `ZoneInfo` reads: the machine's own, or else the one of the package tzdata."""
    for directory in TZPATH:
        path = Path(directory) / name
        if path.is_file():
            return path.read_bytes()
    package, _, leaf = f"tzdata/zoneinfo/{name}".rpartition("/")
    try:
        return (resources.files(package.replace("/", ".")) / leaf).read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        return b""


@lru_cache(maxsize=1)
def _zone_names() -> tuple[str, ...]:
    from zoneinfo import available_timezones

    return tuple(sorted(available_timezones()))
