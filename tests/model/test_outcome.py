"""The state of a run after an attempt, and error texts that can always be stored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.model.backoff import Backoff
from foliot.model.ids import new_id
from foliot.model.outcome import (
    ERROR_KIND_MAX,
    ERROR_TEXT_MAX,
    Attempted,
    AttemptError,
    Ending,
    Outcome,
    decide,
    error_of,
    storable,
)
from foliot.model.run import RunOptions
from foliot.model.states import TERMINAL, TRANSITIONS, RunState

RUN = new_id()
# Includes surrogates, which Python produces when it decodes file names and arguments.
any_text = st.text(st.characters(codec=None))
BAD_LUCK = [Ending.FAILED, Ending.TIMED_OUT]
# A transactional success has been committed, so nothing is left to decide.
DECIDED = [ending for ending in Ending if ending not in (Ending.COMMITTED, Ending.EXPANDED)]


def decided(ending: Ending, *, attempt: int = 1, lost: int = 0, retries: int = 3, chance: float = 0.0) -> Outcome:
    attempted = Attempted(
        ending,
        result="1",
        delay_seconds=1 if ending is Ending.SNOOZED else None,
        error=error_of("ValueError", "no"),
        output=b"out",
    )
    return decide(
        RUN,
        7,
        attempted,
        attempt=attempt,
        lost=lost,
        options=RunOptions(retries=retries, timeout_seconds=60),
        chance=chance,
    )


def test_a_success_keeps_result_and_output() -> None:
    assert decided(Ending.SUCCEEDED) == Outcome(RUN, 7, RunState.SUCCEEDED, result="1", output=b"out")


def test_a_release_returns_the_run_unchanged() -> None:
    assert decided(Ending.RELEASED, attempt=4, retries=0) == Outcome(RUN, 7, RunState.READY)


def test_an_at_most_once_run_is_not_released() -> None:
    released, options = (
        Attempted(Ending.RELEASED, output=b"out"),
        RunOptions(retries=3, timeout_seconds=60, guarantee="at_most_once"),
    )
    outcome = decide(RUN, 7, released, attempt=1, lost=0, options=options, chance=0.0)
    assert (outcome.state, outcome.reason, outcome.output) == (RunState.FAILED, "lost", b"out")


@pytest.mark.parametrize(("ending", "reason"), [(Ending.FAILED, "error"), (Ending.TIMED_OUT, "timeout")])
def test_a_failure_is_retried_with_its_reason_error_and_output_until_the_retries_are_used_up(
    ending: Ending, reason: str
) -> None:
    retried, failed = decided(ending, attempt=3, retries=3), decided(ending, attempt=4, retries=3)
    assert (retried.state, failed.state) == (RunState.SCHEDULED, RunState.FAILED)
    for outcome in (retried, failed):
        assert (outcome.reason, outcome.output, outcome.result) == (reason, b"out", None)
        assert outcome.error is not None
        assert msgspec.json.decode(outcome.error) == {"kind": "ValueError", "message": "no"}


def test_the_wait_before_a_retry_follows_the_back_off_and_lost_attempts_do_not_lengthen_it() -> None:
    assert [decided(Ending.FAILED, attempt=attempt).delay_seconds for attempt in (1, 2, 3)] == [2, 4, 8]
    assert decided(Ending.FAILED, attempt=6, lost=5).delay_seconds == 2
    own = RunOptions(retries=3, backoff=Backoff(kind="fixed", base_seconds=9, jitter=0))
    assert decide(RUN, 1, Attempted(Ending.FAILED), attempt=2, lost=0, options=own, chance=0.5).delay_seconds == 9


def failed(options: RunOptions, **fields: Any) -> Outcome:
    attempted = Attempted(Ending.FAILED, error=error_of("ConnectionError", "no"), **fields)
    return decide(RUN, 7, attempted, attempt=1, lost=0, options=options, chance=0.0)


def test_the_kind_of_the_error_its_bases_and_the_exit_code_decide_whether_it_is_retried() -> None:
    assert failed(RunOptions(retries=3, retry_on=("ConnectionError",))).state is RunState.SCHEDULED
    assert (
        failed(RunOptions(retries=3, retry_on=("OSError",)), causes=frozenset({"OSError"})).state is RunState.SCHEDULED
    )
    assert failed(RunOptions(retries=3, retry_on=("ValueError",))).state is RunState.FAILED
    assert failed(RunOptions(retries=3, never_on=(75,)), causes=frozenset({75})).state is RunState.FAILED
    assert failed(RunOptions(retries=3, never_on=(75,)), causes=frozenset({74})).state is RunState.SCHEDULED


def test_the_decision_of_the_task_overrides_options_but_not_the_number_of_retries() -> None:
    assert failed(RunOptions(retries=3), is_retryable=False).state is RunState.FAILED
    assert failed(RunOptions(retries=3, never_on=("ConnectionError",)), is_retryable=True).state is RunState.SCHEDULED
    assert failed(RunOptions(retries=0), is_retryable=True).state is RunState.FAILED


@pytest.mark.parametrize(
    ("asked", "waited"), [(7.5, 7.5), (0, 0), (-1, 0), (float("nan"), 0), (float("inf"), 315_360_000)]
)
def test_a_requested_retry_time_is_honoured_up_to_a_limit(asked: float, waited: float) -> None:
    assert failed(RunOptions(retries=3), delay_seconds=asked).delay_seconds == waited


def test_snoozes_use_up_no_retries_until_their_limit() -> None:
    def snoozed(**options: Any) -> Outcome:
        attempted = Attempted(Ending.SNOOZED, delay_seconds=30, output=b"out")
        return decide(RUN, 7, attempted, attempt=1, lost=0, options=RunOptions(retries=0, **options), chance=0.5)

    assert snoozed() == Outcome(RUN, 7, RunState.SCHEDULED, "snoozed", 30, output=b"out")
    assert snoozed(snoozes=999).state is RunState.SCHEDULED
    assert snoozed(snoozes=2, max_snoozes=3).state is RunState.SCHEDULED
    for spent in (snoozed(snoozes=1000), snoozed(snoozes=3, max_snoozes=3), snoozed(max_snoozes=0)):
        assert (spent.state, spent.reason) == (RunState.FAILED, "error")
        assert "max_snoozes" in (spent.error or "")


@given(
    st.sampled_from([ending for ending in Ending if ending not in (Ending.COMMITTED, Ending.EXPANDED)]),
    st.integers(1, 50),
    st.integers(0, 49),
    st.integers(0, 50),
    st.floats(0, 1, exclude_max=True),
)
def test_every_decision_is_a_transition_of_a_running_run(
    ending: Ending, attempt: int, lost: int, retries: int, chance: float
) -> None:
    outcome = decided(ending, attempt=attempt, lost=min(lost, attempt - 1), retries=retries, chance=chance)
    assert outcome.state in TRANSITIONS[RunState.RUNNING]
    if ending is not Ending.SUSPENDED:
        assert (outcome.delay_seconds > 0) == (outcome.state is RunState.SCHEDULED)


@given(
    st.integers(min_value=0, max_value=20), st.lists(st.sampled_from([*BAD_LUCK, Ending.RELEASED, "lost"]), max_size=60)
)
def test_a_run_never_exceeds_its_retries(retries: int, fates: list[Ending | str]) -> None:
    """Counts as the store does: a claim adds an attempt, a release removes it, and a lost worker keeps it and also
    counts it as lost."""
    attempt = lost = failures = 0
    state = RunState.READY
    for fate in fates:
        attempt += 1
        if fate == "lost":
            lost += 1
            continue
        state = decided(Ending(fate), attempt=attempt, lost=lost, retries=retries).state
        if fate == Ending.RELEASED:
            attempt -= 1
            continue
        failures += 1
        assert (state in TERMINAL) == (failures == retries + 1)
        if state in TERMINAL:
            break
    assert attempt - lost == failures <= retries + 1


@given(any_text, st.booleans())
def test_storable_text_always_encodes_and_holds_no_nul(text: str, keep_end: bool) -> None:
    kept = storable(text, keep_end=keep_end)
    assert "\0" not in kept
    assert kept.encode("utf-8").decode("utf-8") == kept


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_storable_text_is_unchanged(text: str) -> None:
    assert storable(text) == text


@given(st.text(st.characters(codec=None), min_size=1, max_size=8), st.booleans())
def test_long_text_is_cut_and_keeps_its_end(seed: str, keep_end: bool) -> None:
    text = (seed * (ERROR_TEXT_MAX + 1))[: ERROR_TEXT_MAX + 1]
    kept = storable(text, keep_end=keep_end)
    assert len(kept) <= 6 * ERROR_TEXT_MAX + len("[...]")
    expected = f"[...]{storable(text[1:])}" if keep_end else f"{storable(text[:-1])}[...]"
    assert kept == expected


@given(any_text, any_text, any_text)
def test_an_error_can_always_be_written_down(kind: str, message: str, traceback: str) -> None:
    encoded = msgspec.json.encode(error_of(kind, message, traceback))
    assert b"\\u0000" not in encoded.replace(b"\\\\", b"")
    assert msgspec.json.decode(encoded, type=AttemptError).kind == storable(kind[:ERROR_KIND_MAX])
