"""The checker passes correct histories, and reports every mutant."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.chaos import mutants
from tests.chaos.checker.check import breaches, invariants
from tests.chaos.checker.history import History, Taken, load, save
from tests.chaos.good import good_history
from tests.support.processes import ROOT

SEEDS = (1, 2)


@pytest.mark.parametrize("seed", range(5))
def test_checker_passes_a_good_history(seed: int) -> None:
    assert breaches(good_history(seed)) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("number", "mutate"), mutants.ALL, ids=[mutate.__name__ for _, mutate in mutants.ALL])
def test_checker_reports_each_mutant_by_the_invariant_that_it_breaks(
    number: int, mutate: mutants.Mutate, seed: int
) -> None:
    history = good_history(seed, lives=10)
    mutate(history, random.Random(seed))
    found = {breach.invariant.number: breach.faults for breach in breaches(fresh(history))}
    assert number in found, f"I{number} passes; broken are {found}"


def fresh(history: History) -> History:
    """Without the values cached before the mutation."""
    return History(*(getattr(history, name) for name in History.__struct_fields__))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_time_that_the_machine_was_not_ours_excuses_a_late_start(share: float) -> None:
    history = good_history(1, lives=10)
    mutants.liveness.a_ready_run_waits_for_minutes(history, random.Random(1))
    first = min(change.at for change in history.changes)
    history.taken.append(Taken(first, history.settings.quiet_at, share / 2, share / 2))
    assert (7 in {breach.invariant.number for breach in breaches(fresh(history))}) == (share == 0.0)


def test_every_invariant_has_a_mutant() -> None:
    assert {number for number, _ in mutants.ALL} == {one.number for one in invariants()}
    assert len(mutants.ALL) >= 20


def test_invariants_have_unique_numbers_and_a_sentence() -> None:
    numbers = [one.number for one in invariants()]
    assert len(set(numbers)) == len(numbers)
    assert all(one.text.endswith(".") for one in invariants())


def test_saved_history_gives_the_same_result(tmp_path: Path) -> None:
    history = good_history(5)
    mutants.attempts.a_terminal_state_changes(history, random.Random(5))
    save(history, tmp_path)
    found = load(tmp_path)
    assert found == fresh(history)
    assert [(breach.invariant.number, breach.faults) for breach in breaches(found)] == [
        (breach.invariant.number, breach.faults) for breach in breaches(fresh(history))
    ]


def test_reliability_page_lists_every_invariant() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    for one in invariants():
        assert f"| I{one.number} | {' '.join(one.text.split())} |" in page
