"""Time zones: every offset change in the tz database is found, and only names of zones are accepted."""

from __future__ import annotations

import io
import struct
from datetime import UTC, datetime
from importlib import resources
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.errors import Invalid
from foliot.triggers.base import LATEST
from foliot.triggers.zones import SPAN_SECONDS, Transition, last_transition, next_transition, offset_at, zone_named
from tests.triggers import oracle
from tests.triggers.oracle import instant_of

NEW_YORK = ZoneInfo("America/New_York")
HEADER = struct.Struct(">4sc15x6l")


def recorded_transitions(data: bytes) -> list[Transition]:
    """The transitions of a TZif file (RFC 8536, the second, 64-bit block)."""
    _, _, utc_count, standard_count, leap_count, time_count, type_count, character_count = HEADER.unpack(data[:44])
    data = data[44 + time_count * 5 + type_count * 6 + character_count + leap_count * 8 + standard_count + utc_count :]
    _, _, _, _, _, time_count, type_count, _ = HEADER.unpack(data[:44])
    times = struct.unpack(f">{time_count}q", data[44 : 44 + 8 * time_count])
    kinds = data[44 + 8 * time_count :][:time_count]
    types = data[44 + 9 * time_count :]
    offsets = [struct.unpack(">l", types[6 * n : 6 * n + 4])[0] for n in range(type_count)]
    found, before = [], offsets[0]
    for instant, kind in zip(times, kinds, strict=True):
        if offsets[kind] != before:
            found.append(Transition(instant, before, offsets[kind]))
        before = offsets[kind]
    return found


def made_zone(instant: int, before: int, after: int) -> ZoneInfo:
    """A zone that changes its offset once."""
    nothing = HEADER.pack(b"TZif", b"2", 0, 0, 0, 0, 1, 1) + bytes(7)
    types = struct.pack(">lBBlBB", before, 0, 0, after, 0, 0) + b"A\0"
    body = HEADER.pack(b"TZif", b"2", 0, 0, 0, 1, 2, 2) + struct.pack(">qB", instant, 1) + types
    return ZoneInfo.from_file(io.BytesIO(nothing + body + b"\n\n"), key="Made/Up")


def transitions_of(zone: ZoneInfo, after: int, until: int) -> list[Transition]:
    found = []
    while (transition := next_transition(zone, after, until)) is not None:
        found.append(transition)
        after = transition.instant
    return found


def test_every_transition_since_1970_in_the_tz_database_is_found_to_the_second() -> None:
    compared = 0
    package = resources.files("tzdata")
    # Many names are links to the same zone.
    distinct = {(package / "zoneinfo" / name).read_bytes(): name for name in (package / "zones").read_text().split()}
    for data, name in distinct.items():
        recorded = [transition for transition in recorded_transitions(data) if transition.instant > 0]
        last = recorded[-1].instant if recorded else 0
        zone = ZoneInfo.from_file(io.BytesIO(data), key=name)
        assert transitions_of(zone, 0, last) == recorded, name
        compared += len(recorded)
    assert len(distinct) > 300
    assert compared > 10_000


@pytest.mark.parametrize("zone", oracle.ZONES, ids=str)
def test_the_transitions_of_2024_to_2031_equal_a_search_of_every_half_hour(zone: ZoneInfo) -> None:
    found = transitions_of(zone, instant_of(2024) - 1, instant_of(2032) - 1)
    assert [transition.instant for transition in found] == [
        instant for other, instant in oracle.transitions() if other is zone
    ]
    for transition in found:
        assert offset_at(zone, transition.instant - 1) == transition.before
        assert offset_at(zone, transition.instant) == transition.after


@pytest.mark.parametrize("apart", [-1, 0, 1])
def test_a_transition_at_the_seam_of_two_spans_is_found_once(apart: int) -> None:
    instant = 55 * SPAN_SECONDS + apart
    zone = made_zone(instant, 3600, 7200)
    assert transitions_of(zone, 0, instant_of(2100)) == [Transition(instant, 3600, 7200)]
    assert last_transition(zone, 0, instant_of(2100)) == Transition(instant, 3600, 7200)


def test_rules_continue_after_the_recorded_transitions() -> None:
    found = transitions_of(NEW_YORK, instant_of(2150), instant_of(2151))
    assert [datetime.fromtimestamp(transition.instant, UTC).isoformat() for transition in found] == [
        "2150-03-08T07:00:00+00:00",
        "2150-11-01T06:00:00+00:00",
    ]
    assert [transition.is_gap for transition in found] == [True, False]


def test_both_searches_include_their_far_end_and_the_backward_one_its_near_end() -> None:
    spring = instant_of(2024, 3, 10, 7)
    found = Transition(spring, -18000, -14400)
    assert next_transition(NEW_YORK, spring - 1, spring) == found
    assert next_transition(NEW_YORK, spring, spring + 1) is None
    assert next_transition(NEW_YORK, spring - 10, spring - 1) is None
    assert last_transition(NEW_YORK, spring - 10, spring) == found
    assert last_transition(NEW_YORK, spring, spring + 10) == found
    assert last_transition(NEW_YORK, spring + 1, spring + 10) is None
    assert last_transition(NEW_YORK, spring - 10, spring - 1) is None


@given(
    st.sampled_from([*oracle.ZONES, ZoneInfo("Asia/Tehran"), ZoneInfo("Europe/Dublin"), ZoneInfo("Antarctica/Troll")]),
    st.integers(min_value=0, max_value=instant_of(2100)),
    st.integers(min_value=0, max_value=3 * 366 * 86_400),
)
def test_the_backward_search_finds_the_last_transition_of_the_forward_search(
    zone: ZoneInfo, start: int, length: int
) -> None:
    found = transitions_of(zone, start - 1, start + length)
    assert last_transition(zone, start, start + length) == (found[-1] if found else None)


def test_an_offset_may_have_odd_minutes_and_seconds() -> None:
    assert offset_at(ZoneInfo("Asia/Kathmandu"), instant_of(2024)) == 20_700
    assert offset_at(ZoneInfo("Africa/Monrovia"), instant_of(1971)) == -2670
    assert offset_at(NEW_YORK, instant_of(2024)) == -18_000


@pytest.mark.parametrize("instant", [LATEST, LATEST * 10, 10**30, -62_135_596_800, -(10**30)])
def test_an_offset_exists_however_far_away(instant: int) -> None:
    for zone in oracle.ZONES:
        assert abs(offset_at(zone, instant)) <= 14 * 3600


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+12", "GB", "EST5EDT"])
def test_iana_names_are_accepted(name: str) -> None:
    assert zone_named(name).key == name


@pytest.mark.parametrize(
    "name",
    [
        *[
            "",
            " ",
            "Europe",
            "UTC ",
            "Europe/Berlin/",
            "Europe//Berlin",
            "Mars/Phobos",
            "+02:00",
            "Europe/Berlin\0",
            "\ud800",
            "x" * 100_000,
        ],
        *[
            "/etc/passwd",
            "/usr/share/zoneinfo/UTC",
            "../UTC",
            "./UTC",
            "Europe/../UTC",
            "tzdata.zi",
            "zone.tab",
            "leapseconds",
            "__init__.py",
        ],
        # Names that mean another zone on each machine, and zones that count leap seconds.
        *["localtime", "posixrules", "right/UTC", "posix/UTC"],
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        zone_named(name)
    assert caught.value.field == "timezone"
    assert len(caught.value.detail) < 700


def test_a_misspelled_zone_gets_a_suggestion() -> None:
    with pytest.raises(Invalid, match="did you mean 'UTC'"):
        zone_named("utc")
    with pytest.raises(Invalid, match="did you mean 'Europe/Berlin'"):
        zone_named("europe/berlin")


@pytest.mark.parametrize("name", ["+02:00", "-5", "+0530", "UTC+2", "GMT-7", "utc+02:00", "Z+1"])
def test_an_offset_is_refused_with_advice_and_not_with_a_zone_of_another_offset(name: str) -> None:
    with pytest.raises(Invalid, match="an offset is not a time zone: name a place") as caught:
        zone_named(name)
    assert "did you mean" not in caught.value.detail


@pytest.mark.parametrize("name", ["CEST", "BST", "local", "localtime"])
def test_only_valid_zones_with_the_same_time_are_suggested(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        zone_named(name)
    assert "did you mean" not in caught.value.detail
