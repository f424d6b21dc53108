"""A hundred thousand strange expressions: each is refused with a `CronError` or answered, in few steps."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from zoneinfo import ZoneInfo

from foliot.triggers import cron
from foliot.triggers.base import LATEST, fire_times
from foliot.triggers.cron import parse_cron
from foliot.triggers.cron_fields import CronError
from tests.support.steps import steps_of
from tests.triggers import oracle

COUNT = 100_000
SUSPECT_SECONDS = 0.002
STEPS_MAX = 150_000
"""Lines of Python. A name that resembles a time zone takes 80,000, most of them to find the nearest zones."""
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
    """Noise, expressions with one to three errors, and valid but strange expressions."""
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
    """None if it is refused. Any error other than a `CronError` that points into the text fails the test."""
    try:
        trigger = parse_cron(text, None if "TZ=" in text.upper() else zone, seed=text)
    except CronError as error:
        if not error.field or not 0 <= error.start <= error.end <= len(text) + 1:
            raise AssertionError(f"{text!r} is refused without a place") from error
        return None
    return fire_times(trigger, after, 3)


def steps_to_answer(text: str, zone: ZoneInfo, after: int) -> int:
    """Counts without caches for this expression. Time zone data stays cached, because all expressions share it."""
    cron._days_of.cache_clear()
    return steps_of(lambda: answer(text, zone, after))


def test_a_hundred_thousand_expressions_are_answered_or_refused_in_a_bounded_number_of_steps() -> None:
    chance = random.Random("fuzz")
    starts = [chance.randint(oracle.instant_of(1971), LATEST) for _ in range(50)] + [LATEST - 500 * oracle.DAY]
    kinds: Counter[str] = Counter()
    for text in texts(chance):
        zone, after = chance.choice(oracle.ZONES), chance.choice(starts)
        started = time.thread_time()
        found = answer(text, zone, after)
        if time.thread_time() - started > SUSPECT_SECONDS:
            # Counting every line takes ten times as long, so only what seems slow is counted.
            steps = steps_to_answer(text, zone, after)
            assert steps < STEPS_MAX, f"{text!r} in {zone} after {after} takes {steps} lines"
        assert found is None or (found == sorted(set(found)) and all(after < instant <= LATEST for instant in found)), (
            text
        )
        kinds["refused" if found is None else "answered" if found else "ended"] += 1
    # Noise alone proves little, so there must be enough of both.
    assert kinds["answered"] > COUNT * 0.2
    assert kinds["refused"] > COUNT * 0.3
    assert kinds["ended"] > 0
