"""The table of states is complete and closed, and leads every run to an end. Other tests compare the SQL with it on
PostgreSQL."""

from __future__ import annotations

import pytest

from foliot.model.states import LIVE, TERMINAL, TRANSITIONS, RunState, sources_of


def reachable(start: RunState) -> set[RunState]:
    found, open_ends = {start}, [start]
    while open_ends:
        new = TRANSITIONS[open_ends.pop()] - found
        found |= new
        open_ends += new
    return found


def test_every_state_has_a_row() -> None:
    assert set(TRANSITIONS) == set(RunState)


def test_a_state_is_either_live_or_terminal() -> None:
    assert {RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.SKIPPED} == TERMINAL
    assert set(RunState) == LIVE | TERMINAL
    assert not LIVE & TERMINAL


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_nothing_follows_a_terminal_state(state: RunState) -> None:
    assert TRANSITIONS[state] == frozenset()


@pytest.mark.parametrize("state", sorted(LIVE))
def test_every_live_run_can_still_succeed_and_can_be_cancelled(state: RunState) -> None:
    assert RunState.SUCCEEDED in reachable(state)
    assert RunState.CANCELLED in TRANSITIONS[state]


@pytest.mark.parametrize("state", RunState)
def test_no_state_follows_itself(state: RunState) -> None:
    assert state not in TRANSITIONS[state]


def test_only_ready_runs_start_and_only_some_states_end_by_themselves() -> None:
    assert sources_of(RunState.RUNNING) == {RunState.READY}
    assert sources_of(RunState.SUCCEEDED) == {RunState.RUNNING, RunState.WAITING}
    # A held run fails because its condition has no value.
    assert sources_of(RunState.FAILED) == {RunState.RUNNING, RunState.WAITING, RunState.HELD}


@pytest.mark.parametrize("target", RunState)
def test_sources_are_the_table_read_backwards(target: RunState) -> None:
    assert all((target in TRANSITIONS[state]) == (state in sources_of(target)) for state in RunState)
