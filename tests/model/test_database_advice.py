from __future__ import annotations

import pytest

from foliot.model import database_advice as advice


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (advice.of_transaction(None, None), []),
        (advice.of_transaction(299, "psql"), []),
        (advice.of_transaction(301, "psql"), ["old_transaction"]),
        (advice.of_connections(79, 100), []),
        (advice.of_connections(80, 100), ["connections"]),
        (advice.of_dead_rows("runs", 0, 19_999), []),
        (advice.of_dead_rows("runs", 50_000, 49_999), []),
        (advice.of_dead_rows("runs", 50_000, 50_000), ["dead_rows"]),
        (advice.of_autovacuum(is_on=True, transaction_id_age=10**9), []),
        (advice.of_autovacuum(is_on=False, transaction_id_age=10**9 + 1), ["autovacuum", "transaction_ids"]),
        (advice.of_replication({"a": 60, "b": 61}, {"c": 2**30, "d": 2**30 + 1}), ["replication_lag", "unused_slot"]),
        (advice.of_clock(1.9), []),
        (advice.of_clock(-2.0), ["clock"]),
    ],
)
def test_advice_comes_at_its_threshold_and_not_before(found: list[advice.Advice], kinds: list[str]) -> None:
    assert [one.kind for one in found] == kinds
    assert all(one.text.endswith(".") and one.action.endswith(".") for one in found)


@pytest.mark.parametrize(
    ("seconds", "words"), [(119, "119 seconds"), (120, "2 minutes"), (7199, "120 minutes"), (7200, "2 hours")]
)
def test_times_are_said_in_words(seconds: float, words: str) -> None:
    assert advice.minutes(seconds) == words
