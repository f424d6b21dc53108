"""Invariants of workflows: when a step may start, and how a workflow ends."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.attempts import TERMINAL, is_claim
from tests.chaos.checker.history import Change, History, Run, Workflow
from tests.chaos.checker.invariant import invariant
from tests.support.workflow_oracle import Given, foretell, may_run, sum_up


def _ends(history: History) -> dict[str, Change]:
    return {change.run_id: change for change in history.changes if change.kind == "finish"}


@invariant(21)
def children_after_parents(history: History) -> Iterator[str]:
    """A step starts after its rule's conditions are stored."""
    ends = _ends(history)
    for run in history.runs:
        if not run.upstream or not run.rule:
            continue
        for change in history.changes_of.get(run.id, ()):
            if is_claim(change):
                states = [
                    ends[upstream].after
                    for upstream in run.upstream
                    if upstream in ends and ends[upstream].seq < change.seq
                ]
                needs_all = run.rule not in ("one_success", "one_failed")
                if (needs_all and len(states) < len(run.upstream)) or not may_run(run.rule, states):
                    yield (
                        f"step {run.step} ({run.id}, {run.rule}) started at {change.at} after {states} of "
                        f"{len(run.upstream)}"
                    )
                break


@invariant(22)
def let_go_once(history: History) -> Iterator[str]:
    """A step is released exactly once, and none waits after all its predecessors have ended."""
    ends = _ends(history)
    for run in history.runs:
        if not run.upstream:
            continue
        left = sum(
            change.before == "waiting" != change.after
            for change in history.changes_of.get(run.id, ())
            if change.kind == "update"
        )
        if left > 1:
            yield f"step {run.step} ({run.id}) was let go {left} times"
        has_all = run.parent_id and all(upstream in ends for upstream in run.upstream)
        if run.is_live and run.state == "waiting" and has_all:
            yield f"step {run.step} ({run.id}) waits, and all {len(run.upstream)} before it have ended"


def _steps(history: History, workflow: Workflow) -> dict[str, Run]:
    return {run.step: run for run in history.runs_of_parent.get(workflow.id, ())}


@invariant(23)
def ends_as_foretold(history: History) -> Iterator[str]:
    """Steps run, fail and are skipped as the rules say."""
    for workflow in history.workflows:
        if workflow.id not in history.by_id or workflow.fails_fast:
            continue
        steps = _steps(history, workflow)
        if steps.keys() != {step.key for step in workflow.steps}:
            yield f"workflow {workflow.id} has the steps {sorted(steps)}"
            continue
        given = [
            # A step that lost too many workers fails, whatever its outcome would have been.
            Given(
                step.key, tuple(step.after), step.rule, "failed" if steps[step.key].reason == "lost" else step.outcome
            )
            for step in workflow.steps
        ]
        for key, end in foretell(given).items():
            if steps[key].state in TERMINAL and steps[key].state != end:
                yield f"workflow {workflow.id}: step {key} is {steps[key].state} and not {end}"


@invariant(24)
def sums_up(history: History) -> Iterator[str]:
    """A workflow's end follows from the ends of its steps, and comes after them."""
    ends = _ends(history)
    for workflow in history.workflows:
        run = history.by_id.get(workflow.id)
        if run is None or run.is_live:
            continue
        steps = _steps(history, workflow)
        if run.state != sum_up(step.state for step in steps.values()):
            yield f"workflow {run.id} is {run.state}, its steps {sorted(step.state for step in steps.values())}"
        if late := [
            key
            for key, step in steps.items()
            if step.is_live or (step.id in ends and ends[step.id].seq > ends[run.id].seq)
        ]:
            yield f"workflow {run.id} ended before its steps {sorted(late)}"
