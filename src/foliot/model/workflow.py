"""Workflows: steps that wait for one another. What may be asked for, whether it makes sense, and what it becomes.

A step is a run like any other; its parent is the workflow's own run, which waits until all steps have ended. `after`
names the steps that a step waits for, `rule` what they must have come to:

    all_success (the default)       all succeeded; else skipped, as soon as one did not
    all_done                        all ended, however
    all_failed                      all failed; else skipped
    one_success, one_failed         one did: at once, without waiting for the others; skipped when none has
    none_failed                     all ended, none failed: skipped ones do not matter
    none_failed_min_one_success     the same, and one succeeded
    always                          all ended, however, even if the workflow is cancelled or stops at its first failure

A cancelled step counts as failed. `teardown` is `always` under the name of its purpose; without an `after` it waits for
every other step.

Everything here is iterative: how deep a workflow is, is its author's choice.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.errors import Invalid
from foliot.model.field_rules import Rule as FieldRule
from foliot.model.field_rules import any_of, field_is
from foliot.model.ids import new_id
from foliot.model.map import MAP_TASK, Map, MapPayload, OnFailure
from foliot.model.namespace import Namespace
from foliot.model.payloads import LEAVES, check_leaf, payload_of, pointing, within_payload
from foliot.model.run_request import Name, RunRequest

Rule = Literal[
    "all_success", "all_done", "all_failed", "one_success", "one_failed", "none_failed", "none_failed_min_one_success", "always"
]  # fmt: skip
WORKFLOW_TASK = "workflow"
STEPS_MAX = 20_000
ARROWS_MAX = 200_000
NESTING_MAX = 10
CYCLE_SHOWN = 20


class Step(RunRequest, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    key: Name
    after: Annotated[tuple[Name, ...], Meta(extra_json_schema={"uniqueItems": True})] = ()
    rule: Rule = "all_success"
    teardown: Annotated[bool, Meta(description="It runs at the end, also after a failure or a cancel.")] = False
    map: Map | None = None

    RULES: ClassVar[tuple[FieldRule, ...]] = (
        *RunRequest.RULES,
        any_of(field_is("teardown", {"const": False}), field_is("rule", {"const": "all_success"})),
    )

    @property
    def needs(self) -> Rule:
        return "always" if self.teardown else self.rule


class Workflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What the built-in task `workflow` gets."""

    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]
    on_failure: OnFailure = "continue"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step as a run to be stored."""

    id: UUID
    step: Step
    upstream: tuple[UUID, ...]
    """The runs that it waits for, or waited for."""
    has_dependents: bool
    rerun_of: UUID | None = None
    met: Mapping[str, int] | None = None
    """Of a step that is run again: how many of its upstreams have ended already, by state."""


def check(workflow: Workflow) -> tuple[Step, ...]:
    """The steps, with the arrows of teardown made explicit. Raises `Invalid` that names the step, or the cycle."""
    steps = workflow.steps
    refuse_many_steps(len(steps))
    keys = Counter(step.key for step in steps)
    if doubled := [key for key, number in keys.items() if number > 1]:
        raise Invalid(f"steps: two steps have the key {doubled[0]!r}", field="steps")
    explicit = _with_teardown(steps)
    # Not of the steps as they were given: each teardown that says nothing has an arrow from every other step.
    if sum(len(step.after) for step in explicit) > ARROWS_MAX:
        raise Invalid(
            f"steps: there are more than {ARROWS_MAX} arrows; let steps wait for a step in between", field="steps"
        )
    for index, step in enumerate(explicit):
        _check_step(index, step, keys.keys())
    if cycle := find_cycle({step.key: step.after for step in explicit}):
        raise Invalid(f"steps: {' -> '.join(cycle)} wait for each other in a circle", field="steps")
    return explicit


def refuse_many_steps(number: int) -> None:
    if number > STEPS_MAX:
        raise Invalid(
            f"steps: {number} are too many; a workflow has {STEPS_MAX} at most. Use a map, or workflows as steps",
            field="steps",
        )


def _with_teardown(steps: Sequence[Step]) -> tuple[Step, ...]:
    others = tuple(step.key for step in steps if not step.teardown)
    return tuple(
        msgspec.structs.replace(step, after=others) if step.teardown and not step.after and others else step for step in steps
    )  # fmt: skip


def _check_step(index: int, step: Step, keys: Iterable[str]) -> None:
    place = f"steps[{index}]"
    if step.teardown and step.rule != "all_success":
        raise Invalid(f"{place}.rule: teardown has a rule of its own; leave one of the two out", field=f"{place}.rule")
    for number, key in enumerate(step.after):
        if key not in keys:
            raise Invalid(
                f"{place}.after: step {step.key!r} waits for {key!r}, and there is no such step",
                field=f"{place}.after[{number}]",
            )
        if key == step.key:
            raise Invalid(f"{place}.after: step {step.key!r} waits for itself", field=f"{place}.after[{number}]")
    if len(set(step.after)) < len(step.after):
        raise Invalid(f"{place}.after: step {step.key!r} names a step twice", field=f"{place}.after")
    if step.map is not None and step.map.result_of is not None and step.map.result_of not in step.after:
        field = f"{place}.map.result_of"
        raise Invalid(
            f"{field}: step {step.key!r} must come after {step.map.result_of!r} to use its result", field=field
        )
    try:
        step.run_options(Namespace())
        task, payload = step.task_name(), step.payload_tree()
        references = pointing(payload) if step.after else set()
        if step.map is not None:
            check_template(task, payload, step.map, references)
        elif task != WORKFLOW_TASK:
            # A workflow inside is checked by those who complete it, level by level.
            check_payload(task, payload, unknown=references)
    except Invalid as error:
        raise type(error)(f"{place}.{error.detail}", field=f"{place}.{error.field}") from None


def check_payload(
    task: str, payload: Mapping[str, Any] | None, *, unknown: Collection[str] = (), depth: int = 1
) -> None:
    """Raises `Invalid` for what a built-in task can't use; other tasks may get anything. `unknown` are fields whose
    values come later."""
    if task in LEAVES:
        check_leaf(task, payload, unknown=unknown)
    elif task in (MAP_TASK, WORKFLOW_TASK) and not unknown:
        if depth > NESTING_MAX:
            raise Invalid(f"payload: maps and workflows are nested more than {NESTING_MAX} deep", field="payload")
        try:
            if task == WORKFLOW_TASK:
                check(payload_of(payload or {}, Workflow))
                return
            asked = payload_of(payload or {}, MapPayload)
            asked.run_options(Namespace())
            check_template(asked.task_name(), asked.payload_tree(), asked.map, (), depth=depth + 1)
        except Invalid as error:
            raise within_payload(error) from None


def check_template(
    task: str, payload: Mapping[str, Any] | None, over: Map, unknown: Collection[str], *, depth: int = 1
) -> None:
    """The payload of a map's runs, each of which gets an item beside it."""
    if task in LEAVES:
        check_leaf(task, payload, unknown={*unknown, over.item_name})
    # Numbers of a range are alike: the first stands for all.
    items = over.items if over.range is None else [over.range.start][: over.range.count]
    if task in LEAVES and items and over.chunk_size == 1 and not unknown:
        for place, item in enumerate(items):
            try:
                check_leaf(task, {**(payload or {}), over.item_name: item})
            except Invalid as error:
                where = f"map.items[{place}]" if over.range is None else "map.range"
                raise type(error)(f"{where}: {error.detail}", field=where) from None
    elif task == MAP_TASK and over.item_name not in MapPayload.__struct_fields__:
        check_payload(task, payload, unknown=unknown, depth=depth)


def find_cycle(after: Mapping[str, Sequence[str]]) -> list[str]:
    """Steps that wait for each other in a circle, the first one again at the end; none: an empty list."""
    waiting = {key: len(needed) for key, needed in after.items()}
    following: dict[str, list[str]] = {key: [] for key in after}
    for key, needed in after.items():
        for upstream in needed:
            following[upstream].append(key)
    free = deque(key for key, number in waiting.items() if number == 0)
    while free:
        key = free.popleft()
        del waiting[key]
        for dependent in following[key]:
            waiting[dependent] -= 1
            if waiting[dependent] == 0:
                free.append(dependent)
    if not waiting:
        return []
    # Whoever is left has an upstream that is left: going up from anywhere ends in a circle.
    path: dict[str, None] = {}
    key = next(iter(waiting))
    while key not in path:
        path[key] = None
        key = next(upstream for upstream in after[key] if upstream in waiting)
    circle = list(path)[list(path).index(key) :]
    shown = circle if len(circle) <= CYCLE_SHOWN else [*circle[:CYCLE_SHOWN], f"({len(circle) - CYCLE_SHOWN} more)"]
    return [*shown, key]


def plan(steps: Sequence[Step]) -> list[PlannedStep]:
    """Steps that `check` has passed, as runs to be stored."""
    ids = {step.key: new_id() for step in steps}
    followed = {key for step in steps for key in step.after}
    return [
        PlannedStep(ids[step.key], step, tuple(ids[key] for key in step.after), step.key in followed) for step in steps
    ]


def plan_redrive(steps: Sequence[Step], last: Mapping[str, tuple[UUID, str]]) -> list[PlannedStep]:
    """What is run again of a workflow that has ended: steps that failed or were cancelled, and all that follows from
    them. `last` is the latest run of each step, and its state. Nothing: an empty list."""
    again = {step.key for step in steps if step.key not in last or last[step.key][1] in ("failed", "cancelled")}
    following: dict[str, list[str]] = {}
    for step in steps:
        for key in step.after:
            following.setdefault(key, []).append(step.key)
    pending = list(again)
    while pending:
        for dependent in following.get(pending.pop(), ()):
            if dependent not in again:
                again.add(dependent)
                pending.append(dependent)
    ids = {key: new_id() if key in again else last[key][0] for key in (step.key for step in steps)}
    followed = {key for step in steps if step.key in again for key in step.after}
    return [
        PlannedStep(
            ids[step.key],
            step,
            tuple(ids[key] for key in step.after),
            step.key in followed,
            rerun_of=last[step.key][0] if step.key in last else None,
            met=Counter(last[key][1] for key in step.after if key not in again),
        )
        for step in steps
        if step.key in again
    ]
