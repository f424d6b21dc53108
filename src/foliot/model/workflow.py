"""Workflows: steps that wait for one another. Their definitions, the checks of these, and the runs that they become.

A step is a run like any other; its parent is the workflow's own run, which waits until all steps have ended. `after`
names the steps that a step waits for, `rule` what they must have come to:

    all_success (the default)       all succeeded; else skipped, as soon as one did not
    all_done                        all ended, however
    all_failed                      all failed; else skipped
    one_success, one_failed         one did: at once, without waiting for the others; skipped when none has
    none_failed                     all ended, none failed: skipped ones do not matter
    none_failed_min_one_success     the same, and one succeeded
    always                          all ended, however, even if the workflow is cancelled or stops at its first failure

`when` is a condition that is decided once the rule lets the step go: see `conditions.py`.

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
from msgspec import UNSET, Meta, UnsetType

from foliot.errors import Invalid
from foliot.model.conditions import Ancestry, Condition, asks_for_status, check_condition, stored_condition
from foliot.model.expressions import LENGTH_MAX
from foliot.model.field_rules import Rule as FieldRule
from foliot.model.field_rules import any_of, field_is, not_given
from foliot.model.ids import new_id
from foliot.model.map import MAP_TASK, Map, MapPayload, OnFailure
from foliot.model.namespace import Namespace
from foliot.model.parameters import NAME as PARAMETER_NAME
from foliot.model.parameters import NO_VALUES, PARAMETERS_MAX, Values, bind, values_of
from foliot.model.payloads import LEAVES, WORKFLOW_TASK, check_leaf, payload_of, pointing, within_payload
from foliot.model.references import check_references
from foliot.model.rendering import check_templates, is_only_for_placeholders, sampled
from foliot.model.run_request import Name, RunRequest
from foliot.model.templates import Names

Rule = Literal[
    "all_success", "all_done", "all_failed", "one_success", "one_failed", "none_failed", "none_failed_min_one_success",
    "always"
]  # fmt: skip
STEPS_MAX = 20_000
ARROWS_MAX = 200_000
NESTING_MAX = 10
CYCLE_SHOWN = 20
ANY_NAMES = Names()
ParametersField = Annotated[
    dict[str, dict[str, Any]],
    Meta(
        max_length=PARAMETERS_MAX,
        description="A JSON Schema for each parameter, with its default.",
        extra_json_schema={"propertyNames": {"pattern": PARAMETER_NAME}},
    ),
]
ParamsField = Annotated[dict[str, Any], Meta(description="Values of the parameters.")]


class Step(RunRequest, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    key: Name
    after: Annotated[tuple[Name, ...], Meta(extra_json_schema={"uniqueItems": True})] = ()
    rule: Annotated[
        Rule | UnsetType,
        Meta(description="The default is all_success, or all_done for a condition that looks at the status of a step."),
    ] = UNSET
    when: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=LENGTH_MAX,
                description="A condition on earlier steps and parameters, such as `steps.check.result.amount > 100`. "
                "If it is false, the step is skipped.",
            ),
        ]
        | None
    ) = None
    teardown: Annotated[bool, Meta(description="It runs at the end, also after a failure or a cancel.")] = False
    map: Map | None = None

    RULES: ClassVar[tuple[FieldRule, ...]] = (
        *RunRequest.RULES,
        any_of(field_is("teardown", {"const": False}), not_given("rule"), field_is("rule", {"const": "all_success"})),
    )

    @property
    def needs(self) -> Rule:
        if self.teardown:
            return "always"
        if self.rule is not UNSET:
            return self.rule
        return "all_done" if self.when is not None and asks_for_status(self.when) else "all_success"


class Workflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The payload of the built-in task `workflow`."""

    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]
    on_failure: OnFailure = "continue"
    parameters: ParametersField = msgspec.field(default_factory=dict)
    params: ParamsField = msgspec.field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """The values of the parameters. Raises `Invalid`."""
        return values_of(self.parameters, self.params)


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step as a run to be stored."""

    id: UUID
    step: Step
    upstream: tuple[UUID, ...]
    """The runs that it waits for, or waited for."""
    has_dependents: bool
    rerun_of: UUID | None = None
    condition: Condition | None = None
    met: Mapping[str, int] | None = None
    """Of a step that is run again: how many of its upstreams have ended already, by state."""


def check(workflow: Workflow, *, has_tick: bool | None = None) -> tuple[Step, ...]:
    """The steps, with the arrows of teardown made explicit. Raises `Invalid` that names the step, or the cycle.

    `has_tick`: whether the workflow runs for the ticks of a schedule, if that is known.
    """
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
    values, ancestry = workflow.values(), Ancestry({step.key: step.after for step in explicit})
    for index, step in enumerate(explicit):
        _check_step(index, step, keys.keys(), has_tick, values)
    if cycle := find_cycle({step.key: step.after for step in explicit}):
        raise Invalid(f"steps: {' -> '.join(cycle)} wait for each other in a circle", field="steps")
    for index, step in enumerate(explicit):
        if step.when is not None:
            try:
                check_condition(step.when, step.key, ancestry, keys.keys(), values.keys())
            except Invalid as error:
                raise Invalid(f"steps[{index}].{error.detail}", field=f"steps[{index}].{error.field}") from None
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
        msgspec.structs.replace(step, after=others) if step.teardown and not step.after and others else step
        for step in steps
    )


def _check_step(index: int, step: Step, keys: Iterable[str], has_tick: bool | None, values: Values) -> None:
    place = f"steps[{index}]"
    if step.teardown and step.rule not in (UNSET, "all_success"):
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
        step = bind(step, values)
        task, payload = step.task_name(), step.payload_tree()
        check_references(task, payload, None if step.map is None else step.map.items, step.after)
        references = pointing(payload)
        if step.map is not None:
            names = Names(has_tick, steps=())
            check_template(task, payload, step.map, references, templates=step.templates, names=names)
        elif task != WORKFLOW_TASK:
            # `submission/workflow_definitions.py` checks nested workflows, level by level.
            names = Names(has_tick, steps=step.after)
            check_payload(task, payload, unknown=references, templates=step.templates, names=names)
    except Invalid as found:
        error = step.as_asked(found)
        raise type(error)(f"{place}.{error.detail}", field=f"{place}.{error.field}") from None


def check_payload(
    task: str,
    payload: Mapping[str, Any] | None,
    *,
    unknown: Collection[str] = (),
    depth: int = 1,
    templates: bool | None = None,
    names: Names = ANY_NAMES,
) -> None:
    """Raises `Invalid` for what a built-in task can't use, and for placeholders that can't be rendered; other tasks may
    get anything. `unknown` are fields whose values come later."""
    check_templates(task, payload, templates, names)
    if task in LEAVES:
        check_leaf(task, sampled(task, payload or {}, templates), unknown=unknown)
    elif task in (MAP_TASK, WORKFLOW_TASK) and not unknown:
        if depth > NESTING_MAX:
            raise Invalid(f"payload: maps and workflows are nested more than {NESTING_MAX} deep", field="payload")
        try:
            if task == WORKFLOW_TASK:
                check(payload_of(payload or {}, Workflow), has_tick=names.has_tick)
                return
            asked = payload_of(payload or {}, MapPayload)
            asked.run_options(Namespace())
            check_template(
                asked.task_name(),
                asked.payload_tree(),
                asked.map,
                (),
                depth=depth + 1,
                templates=asked.templates,
                names=Names(names.has_tick, steps=()),
            )
        except Invalid as error:
            raise within_payload(error) from None


def check_template(
    task: str,
    payload: Mapping[str, Any] | None,
    over: Map,
    unknown: Collection[str],
    *,
    depth: int = 1,
    templates: bool | None = None,
    names: Names = ANY_NAMES,
) -> None:
    """The payload of a map's runs, each of which gets an item beside it."""
    check_templates(task, payload, templates, names, skip=over.item_name)
    if task in LEAVES and is_only_for_placeholders(task, payload, over.item_name, templates):
        check_leaf(task, sampled(task, payload or {}, templates), unknown=unknown)
        return
    if task in LEAVES:
        payload = sampled(task, payload or {}, templates)
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
    # Every remaining step has an upstream that also remains, so following upstreams from any of them ends in a circle.
    path: dict[str, None] = {}
    key = next(iter(waiting))
    while key not in path:
        path[key] = None
        key = next(upstream for upstream in after[key] if upstream in waiting)
    circle = list(path)[list(path).index(key) :]
    shown = circle if len(circle) <= CYCLE_SHOWN else [*circle[:CYCLE_SHOWN], f"({len(circle) - CYCLE_SHOWN} more)"]
    return [*shown, key]


def plan(steps: Sequence[Step], values: Values = NO_VALUES) -> list[PlannedStep]:
    """Steps that `check` has passed, as runs to be stored, with the values of the workflow's parameters."""
    ids = {step.key: new_id() for step in steps}
    followed = {key for step in steps for key in step.after}
    return [
        PlannedStep(
            ids[step.key],
            bind(step, values),
            tuple(ids[key] for key in step.after),
            step.key in followed,
            condition=_condition(step, ids, values),
        )
        for step in steps
    ]


def _condition(step: Step, ids: Mapping[str, UUID], values: Values) -> Condition | None:
    return None if step.when is None else stored_condition(step.when, ids, values)


def plan_redrive(steps: Sequence[Step], last: Mapping[str, tuple[UUID, str]], values: Values) -> list[PlannedStep]:
    """Plans the steps that run again after a workflow has ended: those that failed or were cancelled, and all that
    follow them. `last` is the latest run of each step, and its state. Nothing: an empty list."""
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
            bind(step, values),
            tuple(ids[key] for key in step.after),
            step.key in followed,
            condition=_condition(step, ids, values),
            rerun_of=last[step.key][0] if step.key in last else None,
            met=Counter(last[key][1] for key in step.after if key not in again),
        )
        for step in steps
        if step.key in again
    ]
