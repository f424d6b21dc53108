"""Conditions of steps: checked when a workflow is submitted, stored with the step's run, decided when the run is due.

A condition is stored with the runs of the steps that it looks at and the values of its parameters, so that it can be
decided without the definition of the workflow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import msgspec

from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.model.condition_evaluation import evaluate, said_of
from foliot.model.expressions import (
    STATUSES,
    Call,
    Comparison,
    Constant,
    EvaluationError,
    Expression,
    ExpressionError,
    Items,
    Junction,
    Node,
    Not,
    Path,
    Scope,
    parse,
)
from foliot.model.states import RunState, status_of

SEARCH_MAX = 2_000_000
"""The most dependencies that are followed to find the steps before a step."""
STEPS_MAX = 20
MESSAGE_MAX = 1000
RESULT_MAX_BYTES = 1_048_576
"""The largest result that a condition can look into."""


class Condition(msgspec.Struct, frozen=True, omit_defaults=True):
    """The condition of a run, with all that it needs but the results."""

    when: str
    steps: dict[str, UUID] = {}
    """The run of each step that it looks at."""
    params: dict[str, Any] = {}
    """The values of the parameters that it looks at."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """A step that a condition looks at, as it stands."""

    state: RunState
    result: Any = None
    is_too_large: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    verdict: Literal["run", "skip", "fail"]
    message: str = ""


class Ancestry:
    """Tells which steps come before a step, directly or through others."""

    def __init__(self, after: Mapping[str, Sequence[str]]) -> None:
        self._after = after
        self._followers: dict[str, list[str]] = {}
        self._later: dict[str, set[str]] = {}
        self._left = SEARCH_MAX

    def is_before(self, first: str, second: str) -> bool:
        if first in self._after.get(second, ()):
            return True
        if first not in self._later:
            self._later[first] = self._all_after(first)
        return second in self._later[first]

    def _all_after(self, key: str) -> set[str]:
        if not self._followers:
            for later, earlier in self._after.items():
                for one in earlier:
                    self._followers.setdefault(one, []).append(later)
        found: set[str] = set()
        pending = deque([key])
        while pending:
            for later in self._followers.get(pending.popleft(), ()):
                self._left -= 1
                if self._left < 0:
                    raise Invalid(
                        "when: the conditions look at too many steps that are far away; "
                        "name the steps that a condition looks at in `after`",
                        field="when",
                    )
                if later not in found:
                    found.add(later)
                    pending.append(later)
        return found


def check_condition(when: str, key: str, ancestry: Ancestry, keys: Collection[str], params: Collection[str]) -> None:
    """Raises `Invalid` for a condition that can't be read, or looks at what it can't know."""
    try:
        expression = parse(when)
        _check_names(expression, key, ancestry, keys, params)
        _check_statuses(expression)
    except ExpressionError as error:
        raise Invalid(f"when: {error.detail}", field="when") from None


def _check_names(
    expression: Expression, key: str, ancestry: Ancestry, keys: Collection[str], params: Collection[str]
) -> None:
    if len(expression.steps) > STEPS_MAX:
        raise ExpressionError(f"a condition looks at {STEPS_MAX} steps at most", expression.root.position)
    for path in expression.paths:
        name = str(path.parts[0])
        if path.root == "params":
            if name not in params:
                known = did_you_mean(name, params) or f"; the parameters are {', '.join(params) or 'none'}"
                raise ExpressionError(f"there is no parameter {name!r}{known}", path.position)
        elif name not in keys:
            raise ExpressionError(f"there is no step {name!r}{did_you_mean(name, keys)}", path.position)
        elif name == key:
            raise ExpressionError("a step can't look at itself before it runs", path.position)
        elif not ancestry.is_before(name, key):
            raise ExpressionError(f"step {name!r} does not come before step {key!r}; name it in `after`", path.position)


def _check_statuses(expression: Expression) -> None:
    """Finds comparisons of a status with a word that is no status."""
    for node in _walk(expression.root):
        if not isinstance(node, Comparison):
            continue
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, Path) and one.root == "steps" and one.parts[1] == "status":
                for word in other.values if isinstance(other, Items) else (other,):
                    if isinstance(word, Constant) and word.value not in STATUSES:
                        hint = ", did you mean 'completed'?" if word.value in ("succeeded", "success") else ""
                        hint = hint or did_you_mean(str(word.value), STATUSES) or f"; they are {', '.join(STATUSES)}"
                        raise ExpressionError(f"there is no status {word.value!r}{hint}", word.position)


def _walk(node: Node) -> Iterator[Node]:
    yield node
    match node:
        case Call():
            inner: Sequence[Node] = node.arguments
        case Items():
            inner = node.values
        case Comparison():
            inner = (node.left, node.right)
        case Not():
            inner = (node.operand,)
        case Junction():
            inner = node.operands
        case _:
            inner = ()
    for one in inner:
        yield from _walk(one)


def asks_for_status(when: str) -> bool:
    """Whether the condition looks at the status of a step. False for a condition that can't be read."""
    try:
        return parse(when).asks_for_status
    except ExpressionError:
        return False


def stored_condition(when: str, ids: Mapping[str, UUID], values: Mapping[str, Any]) -> Condition:
    """The condition with the runs and the values that it looks at. Call `check_condition` first."""
    expression = parse(when)
    return Condition(
        when, {key: ids[key] for key in expression.steps}, {name: values[name] for name in expression.params}
    )


def decide(condition: Condition, outcomes: Mapping[UUID, StepOutcome]) -> Decision:
    """Decides whether the run starts, is skipped, or fails because the condition has no value."""
    scope = Scope({key: _seen_step(outcomes.get(run_id)) for key, run_id in condition.steps.items()}, condition.params)
    large = [key for key, run_id in condition.steps.items() if run_id in outcomes and outcomes[run_id].is_too_large]
    try:
        is_met = evaluate(parse(condition.when), scope)
    except (EvaluationError, ExpressionError) as error:
        why = error.detail if isinstance(error, ExpressionError) else str(error)
        if large:
            why += f"; a result of more than {RESULT_MAX_BYTES} bytes can't be looked into: {', '.join(large)}"
        return Decision("fail", _cut(f"{condition.when}: {why}"))
    if is_met:
        return Decision("run")
    values = said_of(scope)
    return Decision("skip", _cut(f"{condition.when} is false" + (f": {values}" if values else "")))


def _seen_step(outcome: StepOutcome | None) -> dict[str, Any]:
    if outcome is None:
        return {"status": "pending"}
    seen: dict[str, Any] = {"status": status_of(outcome.state, 0)}
    if outcome.state is RunState.SUCCEEDED and not outcome.is_too_large:
        seen["result"] = outcome.result
    return seen


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_MAX else f"{text[: MESSAGE_MAX - 1]}…"
