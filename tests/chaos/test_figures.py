"""The figures of a history, measured on histories without chance."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.chaos import deaths
from tests.chaos.checker.history import SECOND, Fault
from tests.chaos.checker.recovery import Throughput
from tests.chaos.figures import given_back, noticed, owned_again, owned_again_by_node
from tests.chaos.good import DIES_AT, TTL, good_history


def test_worker_death_is_measured_from_its_last_heartbeat_and_from_its_end() -> None:
    history = good_history(1)
    (from_beat,), with_trouble = noticed(history)
    (from_death,) = given_back(history)
    assert from_beat == pytest.approx(TTL / SECOND + 1, abs=0.02)
    assert from_death == pytest.approx(TTL / SECOND + 1, abs=0.02)
    assert with_trouble == []


def test_second_fault_in_between_is_counted_separately() -> None:
    history = good_history(1)
    history.faults.append(Fault("crash_postgres", "postgres", 0, DIES_AT + TTL, DIES_AT + TTL + SECOND))
    once, twice = noticed(history)
    assert (len(once), len(twice)) == (0, 1)


def test_node_death_is_measured_by_the_last_of_its_shards() -> None:
    history = good_history(1)
    last = [lease for lease in history.leases if lease.kind == "shard" and lease.epoch == 2][-1]
    last.at += 2 * SECOND
    assert owned_again_by_node(history) == [pytest.approx(11.01, abs=0.01)]


@pytest.mark.parametrize(
    ("targets", "is_apart"),
    [(["scheduler-1"], False), (["scheduler-1", "scheduler-2"], True), (["scheduler-1", "postgres"], True)],
)
def test_shard_whose_next_owner_had_a_fault_is_counted_separately(targets: list[str], is_apart: bool) -> None:
    history = good_history(1)
    taken = [lease for lease in history.leases if lease.kind == "shard" and lease.owner_before and lease.expired_at]
    first, last = min(lease.expired_at for lease in taken), max(lease.at for lease in taken)
    history.faults[:] = [Fault("kill", target, 0, first - 9 * SECOND, last + SECOND) for target in targets]
    once, twice = owned_again(history)
    assert (len(once), len(twice)) == ((0, len(taken)) if is_apart else (len(taken), 0))


def test_throughput_counts_the_time_in_which_nothing_ended() -> None:
    history = good_history(1)
    ends = sorted(change.at for change in history.changes if change.kind == "finish")
    history.settings = msgspec.structs.replace(history.settings, quiet_at=ends[0] + 100 * SECOND)
    within = [at for at in ends if at < history.settings.quiet_at]
    assert len(within) > 10
    assert Throughput(history).average == pytest.approx(len(within) / 100)


def test_figures_replace_the_text_between_markers(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"before\n{deaths.BEGIN}\nold\n{deaths.END}\nafter\n")
    text = deaths.page([good_history(1)])
    deaths.write_into(path, text)
    assert path.read_text() == f"before\n{deaths.BEGIN}\n{text}{deaths.END}\nafter\n"
    assert " 16.0 s      1  " + "#" * deaths.BAR in text
    with pytest.raises(SystemExit, match="has no lines"):
        deaths.write_into(Path(__file__).with_name("tasks.py"), text)
