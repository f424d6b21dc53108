"""Conditions of steps: the names that they may use, and the decision about the step."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from foliot.errors import Invalid
from foliot.model import conditions
from foliot.model.conditions import Ancestry, Condition, StepOutcome, asks_for_status, decide
from foliot.model.ids import new_id
from foliot.model.states import RunState
from foliot.model.workflow import Workflow, check, plan, plan_redrive

CHECK = new_id()


def workflow(*steps: dict[str, Any], **fields: Any) -> Workflow:
    given = [{"task": "t"} | step for step in steps]
    return msgspec.convert({"steps": given, **fields}, Workflow)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([{"key": "a", "when": "steps.b.result == 1"}], "steps[0].when: character 1: there is no step 'b'"),
        ([{"key": "a", "when": "steps.a.result == 1"}], "a step can't look at itself"),
        ([{"key": "a"}, {"key": "b", "when": "steps.a.result == 1"}], "step 'a' does not come before step 'b'"),
        (
            [{"key": "a", "when": "steps.b.result == 1"}, {"key": "b", "after": ["a"]}],
            "steps[0].when: character 1: step 'b' does not come before step 'a'",
        ),
        ([{"key": "a", "when": "params.region == 1"}], "there is no parameter 'region'; the parameters are none"),
        ([{"key": "a", "when": "1 +"}], "steps[0].when: character 3"),
        (
            [{"key": "a"}, {"key": "b", "after": ["a"], "when": "steps.a.status == 'succeeded'"}],
            "there is no status 'succeeded', did you mean 'completed'?",
        ),
        (
            [{"key": "a"}, {"key": "b", "after": ["a"], "when": "steps.a.status in ['failed', 'done']"}],
            "there is no status 'done'",
        ),
    ],
)
def test_unknown_names_in_a_condition_are_refused(steps: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(Invalid) as refused:
        check(workflow(*steps))
    assert why in refused.value.detail
    assert refused.value.field.endswith("].when")


def test_indirect_predecessors_are_known() -> None:
    check(
        workflow(
            {"key": "a"}, {"key": "b", "after": ["a"]}, {"key": "c", "after": ["b"]},
            {"key": "d", "after": ["c"], "when": "steps.a.result.x == 1 and steps.c.status == 'completed'"},
        )
    )  # fmt: skip


def test_the_search_for_far_steps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "SEARCH_MAX", 10)
    ancestry = Ancestry({str(number): [str(number - 1)] if number else [] for number in range(30)})
    assert ancestry.is_before("28", "29")
    with pytest.raises(Invalid, match="name the steps that a condition looks at in `after`"):
        ancestry.is_before("0", "29")


def test_the_rule_follows_from_the_condition() -> None:
    steps = workflow(
        {"key": "a"},
        {"key": "b", "after": ["a"], "when": "steps.a.status == 'failed'"},
        {"key": "c", "after": ["a"], "when": "steps.a.result.x == 1"},
        {"key": "d", "after": ["a"], "when": "steps.a.status == 'failed'", "rule": "all_success"},
    ).steps
    assert [step.needs for step in steps] == ["all_success", "all_done", "all_success", "all_success"]
    assert not asks_for_status("(")


def test_the_plan_of_a_condition_has_its_runs_and_values() -> None:
    asked = workflow(
        {"key": "a"}, {"key": "b", "after": ["a"]},
        {"key": "c", "after": ["b"], "when": "steps.a.result == params.region"},
        parameters={"region": {"default": "eu"}, "other": {"default": 1}},
    )  # fmt: skip
    planned = {one.step.key: one for one in plan(check(asked), asked.values())}
    assert planned["c"].condition == Condition(asked.steps[2].when or "", {"a": planned["a"].id}, {"region": "eu"})
    last = {"a": (CHECK, "succeeded"), "b": (new_id(), "failed"), "c": (new_id(), "skipped")}
    (again, after) = plan_redrive(check(asked), last, asked.values())
    assert (again.step.key, after.condition and after.condition.steps) == ("b", {"a": CHECK})


def outcome(state: str, result: Any = None) -> dict[Any, StepOutcome]:
    return {CHECK: StepOutcome(RunState(state), result)}


@pytest.mark.parametrize(
    ("when", "outcomes", "verdict", "message"),
    [
        ("steps.check.result > 1", outcome("succeeded", 2), "run", ""),
        ("steps.check.result > 1", outcome("succeeded", 1), "skip", "steps.check.result > 1 is false: "
        "steps.check.result is 1"),
        ("steps.check.result > 1", outcome("failed"), "fail", "the step 'check' is failed and has no result"),
        ("steps.check.result > 1", {}, "fail", "the step 'check' is pending and has no result"),
        ("steps.check.status == 'failed'", outcome("failed"), "run", ""),
        ("steps.check.status == 'completed'", outcome("succeeded"), "run", ""),
        ("steps.check.status == 'running'", outcome("running"), "run", ""),
        ("steps.check.result.x == 1", {CHECK: StepOutcome(RunState.SUCCEEDED, is_too_large=True)}, "fail",
            "can't be looked into"),
        ("not readable", outcome("succeeded"), "fail", "there is no name"),
    ],
)  # fmt: skip
def test_decisions(when: str, outcomes: dict[Any, StepOutcome], verdict: str, message: str) -> None:
    found = decide(Condition(when, {"check": CHECK}), outcomes)
    assert (found.verdict, message in found.message) == (verdict, True), found.message
