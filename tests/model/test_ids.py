"""Ids sort by creation time and are valid UUIDs of version 7, and foreign UUIDs are handled."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from unittest.mock import patch
from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from foliot.model import ids
from foliot.model.ids import (
    CLOCK_TOLERANCE,
    made_at,
    new_id,
    new_id_text,
    new_id_texts,
    not_finished_before,
    shard_of,
    tick_run_id,
)

NOW = 1_800_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Until the year 9999.
milliseconds = st.integers(min_value=0, max_value=253_402_300_798_999)
any_uuid = st.integers(min_value=0, max_value=2**128 - 1).map(lambda number: UUID(int=number))


def id_made_at(moment: int, random_bits: bytes | None = None) -> UUID:
    with patch.object(ids, "unix_milliseconds", lambda: moment):
        if random_bits is None:
            return new_id()
        with patch.object(ids, "_random_numbers", [int.from_bytes(random_bits)]):
            return new_id()


@given(milliseconds, st.binary(min_size=8, max_size=8))
def test_an_id_is_a_uuid_of_version_7(moment: int, random_bits: bytes) -> None:
    made = id_made_at(moment, random_bits)
    assert (made.version, made.variant) == (7, RFC_4122)


@given(milliseconds, st.integers(min_value=1, max_value=2500))
def test_texts_of_ids_are_uuids_of_version_7_in_order(moment: int, number: int) -> None:
    with patch.object(ids, "unix_milliseconds", lambda: moment), patch.object(ids, "_last", [0, 0]):
        before, texts, after = new_id(), new_id_texts(number), new_id()
    made = [before, *map(UUID, texts), after]
    assert texts == [str(one) for one in made[1:-1]]
    assert {(one.version, one.variant, made_at(one)) for one in made} == {
        (7, RFC_4122, EPOCH + timedelta(milliseconds=moment))
    }
    # The boundaries of milliseconds are random, and so is the order of ids for which one has no room.
    room = ids.COUNTER_MAX - (made[0].int >> 64 & ids.COUNTER_MAX)
    assert made[:room] == sorted(made[:room])


@given(milliseconds, st.binary(min_size=8, max_size=8))
def test_the_text_of_an_id_is_that_of_the_uuid(moment: int, random_bits: bytes) -> None:
    with patch.object(ids, "unix_milliseconds", lambda: moment):
        with patch.object(ids, "_last", [0, 0]), patch.object(ids, "_random_numbers", [int.from_bytes(random_bits)]):
            text = new_id_text()
        with patch.object(ids, "_last", [0, 0]), patch.object(ids, "_random_numbers", [int.from_bytes(random_bits)]):
            assert text == str(new_id())


def test_texts_of_ids_are_of_as_many_random_bits_as_ids() -> None:
    made = [UUID(text).int for text in new_id_texts(5000)]
    assert len(set(made)) == 5000
    for bit in range(62):
        assert 2000 < sum(one >> bit & 1 for one in made) < 3000


@given(milliseconds, st.binary(min_size=8, max_size=8))
def test_an_id_contains_its_creation_time(moment: int, random_bits: bytes) -> None:
    assert made_at(id_made_at(moment, random_bits)) == EPOCH + timedelta(milliseconds=moment)


@given(milliseconds, milliseconds)
def test_ids_sort_by_creation_time(one: int, other: int) -> None:
    first, second = id_made_at(min(one, other)), id_made_at(max(one, other))
    if one != other:
        assert first < second
        assert str(first) < str(second)
        assert first.bytes < second.bytes


@given(st.integers(min_value=0, max_value=2**62 - 1), st.integers(min_value=0, max_value=2**62 - 1))
def test_all_62_random_bits_count(one: int, other: int) -> None:
    first, second = (id_made_at(moment, (bits << 2).to_bytes(8, "big")) for moment, bits in ((1, one), (2, other)))
    assert (first.int & (2**62 - 1) == second.int & (2**62 - 1)) == (one == other)


def test_ids_of_one_millisecond_sort_by_creation() -> None:
    for moment in range(1, 200):
        made = [id_made_at(moment) for _ in range(1000)]
        assert made == sorted(made)


def test_ids_of_the_same_instant_differ() -> None:
    assert len({id_made_at(1_700_000_000_000) for _ in range(10_000)}) == 10_000


def test_a_forked_process_has_random_numbers_of_its_own() -> None:
    program = """if True:
        import os
        from foliot.model.ids import new_id
        new_id()
        child = os.fork()
        made = [str(new_id())[-12:] for _ in range(5)]
        if child: os.waitpid(child, 0)
        print(*made, flush=True)
    """
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.split()
    assert len(set(printed)) == len(printed) == 10


def test_a_new_id_contains_the_current_time() -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    assert before <= made_at(new_id()) <= datetime.now(UTC)


@given(any_uuid)
def test_any_uuid_has_some_instant(foreign: UUID) -> None:
    assert made_at(foreign) >= EPOCH
    assert not_finished_before(foreign) <= made_at(foreign)


@given(any_uuid)
def test_a_foreign_uuid_gives_no_time_bound(foreign: UUID) -> None:
    if foreign.version != 7:
        assert not_finished_before(foreign) == EPOCH


@given(st.integers(min_value=366 * 86_400_000, max_value=253_402_300_798_999))
def test_the_bound_allows_for_a_clock_that_was_ahead(moment: int) -> None:
    assert not_finished_before(id_made_at(moment)) == EPOCH + timedelta(milliseconds=moment) - CLOCK_TOLERANCE


def test_the_run_of_a_tick_always_has_the_same_id_and_sorts_by_its_tick() -> None:
    job = new_id()
    ids = [tick_run_id(job, NOW + n) for n in range(100)]
    assert ids == [tick_run_id(job, NOW + n) for n in range(100)] == sorted(ids)
    assert len({tick_run_id(UUID(int=n), NOW) for n in range(100)}) == 100
    assert all(i.version == 7 for i in ids)


def test_jobs_are_spread_over_all_shards() -> None:
    counts = [0] * 100
    for _ in range(20_000):
        counts[shard_of(new_id())] += 1
    assert min(counts) > 120
    assert max(counts) < 290
