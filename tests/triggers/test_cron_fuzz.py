"""A hundred thousand expressions that nobody would write: each is refused with a `CronError` or answered, and
quickly."""

from __future__ import annotations

import gc
import random
import time
from collections import Counter
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest

from foliot.triggers import cron
from foliot.triggers.base import LATEST, fire_times
from foliot.triggers.cron import parse_cron
from foliot.triggers.cron_fields import CronError
from tests.triggers import oracle

COUNT = 100_000
LIMIT_SECONDS = 0.005
ALPHABET = "0123456789*/-,?+LWH#()@= \t.ABCDEFIJMNORSTUVYZ"
ODD = [
    "\0",
    "\n",
    "\u00a0",
    "\ud800",
    "ß",
    "٣",
    "ﬁ",
    "\U0001d7d7",
    "\u202e",
    "999999999999",
    "*/0",
    "1" * 600,
    "H(0-0)/1",
    "L-30",
    "31W",
    "MON#5",
    "@daily",
    "MON-FRI#L",
    "L-3W",
    "2026-2030",
    "CRON_TZ=Europe/Berlin ",
    "@every 5m",
    "cron(",
    "22-4/3",
]
SEEDS = [
    *[
        "0 0 29 2 *",
        "0 0 * 2 MON#5",
        "0 0 31 4,6 *",
        "0 0 30 2 MON",
        "H H(0-7) * * *",
        "H/15 * * * *",
        "0 0 L-3,15W,LW * 5L,MON#2",
    ],
    *[
        "*/5 * * * *",
        "30 2 * * *",
        "0 9 * * MON-FRI",
        "0 0 */30 * MON#1",
        "0 0 1 1 *",
        "59 59 23 31 12 *",
        "* * * * * *",
        "@yearly",
        "0 0 29 2 1",
    ],
    *[
        "0 0 0 29 2 ? 2028/4",
        "0 0 0 1 1 ? 1970",
        "CRON_TZ=Asia/Tokyo 0 9 13 * +FRI",
        "cron(0 9 ? * 2-6 *)",
        "0 22-4 28-3 NOV-MAR FRI-MON#2",
    ],
    *["0 0 L-30 * */6", "0 0 */31 2 0#1", "0 0 31W */7 *", "0 0 */29 2 SUN", "0 0 29-31 2 ?"],
]


def texts(chance: random.Random) -> Iterator[str]:
    """Noise, expressions with one to three faults, and expressions that are merely strange."""
    for n in range(COUNT):
        kind = n % 5
        if kind == 0:
            yield "".join(chance.choices(ALPHABET, k=chance.randint(0, 30)))
        elif kind == 1:
            words = [
                "".join(chance.choices(ALPHABET.replace(" ", ""), k=chance.randint(1, 4)))
                for _ in range(chance.choice([5, 5, 6, 7]))
            ]
            yield " ".join(words)
        else:
            start = chance.choice(SEEDS) if kind == 2 else oracle.random_expression(chance)
            yield mutated(chance, start) if kind < 4 else start


def mutated(chance: random.Random, text: str) -> str:
    for _ in range(chance.randint(1, 3)):
        place = chance.randint(0, len(text))
        new = chance.choice([chance.choice(ALPHABET), chance.choice(ALPHABET), chance.choice(ODD), ""])
        text = text[:place] + new + text[place + chance.choice([0, 1, 1, 2]) :]
    return text


def answer(text: str, zone: ZoneInfo, after: int) -> list[int] | None:
    """None when it is refused. Anything but a `CronError` that points into the text gets through and fails the test."""
    try:
        trigger = parse_cron(text, None if "TZ=" in text.upper() else zone, seed=text)
    except CronError as error:
        if not error.field or not 0 <= error.start <= error.end <= len(text) + 1:
            raise AssertionError(f"{text!r} is refused without a place") from error
        return None
    return fire_times(trigger, after, 3)


def seconds_of(text: str, zone: ZoneInfo, after: int) -> float:
    """Without what was remembered of this expression; what the zones do is shared by all, and stays."""
    cron._days_of.cache_clear()
    started = time.process_time()
    answer(text, zone, after)
    return time.process_time() - started


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """A collection in the middle of a measurement would be blamed on the expression."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
def test_a_hundred_thousand_expressions_are_answered_or_refused_within_five_milliseconds() -> None:
    chance = random.Random("fuzz")
    starts = [chance.randint(oracle.instant_of(1971), LATEST) for _ in range(50)] + [LATEST - 500 * oracle.DAY]
    kinds: Counter[str] = Counter()
    for text in texts(chance):
        zone, after = chance.choice(oracle.ZONES), chance.choice(starts)
        started = time.process_time()
        found = answer(text, zone, after)
        if time.process_time() - started > LIMIT_SECONDS:
            measured = [seconds_of(text, zone, after) for _ in range(3)]
            assert min(measured) < LIMIT_SECONDS, f"{text!r} in {zone} after {after}: {measured}"
        assert found is None or (found == sorted(set(found)) and all(after < instant <= LATEST for instant in found)), (
            text
        )
        kinds["refused" if found is None else "answered" if found else "ended"] += 1
    # Noise alone would prove little: enough of both.
    assert kinds["answered"] > COUNT * 0.2
    assert kinds["refused"] > COUNT * 0.3
    assert kinds["ended"] > 0
