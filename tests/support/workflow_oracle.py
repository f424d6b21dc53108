"""The expected result of a workflow, computed independently of the store.

Without `fail_fast` and without cancels the end of every step follows from the ends of those before it, whatever the
order. With them the order matters, and what is said is which ends fit together: `complaints` holds for every workflow
that has ended, however it came to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter

FAILING = ("failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Given:
    """A step as requested, and its outcome if it runs."""

    key: str
    after: tuple[str, ...]
    rule: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Seen:
    """The outcome of a step."""

    state: str
    reason: str | None
    message: str | None
    started_at: datetime | None
    finished_at: datetime


def may_run(rule: str, ends: Sequence[str]) -> bool:
    """Whether a step runs, after everything before it has ended."""
    failed = any(end in FAILING for end in ends)
    match rule:
        case "all_success":
            return all(end == "succeeded" for end in ends)
        case "all_failed":
            return all(end in FAILING for end in ends)
        case "one_success":
            return not ends or "succeeded" in ends
        case "one_failed":
            return not ends or failed
        case "none_failed":
            return not failed
        case "none_failed_min_one_success":
            return not ends or (not failed and "succeeded" in ends)
        case "all_done" | "always":
            return True
    raise ValueError(f"no such rule: {rule}")


def foretell(steps: Iterable[Given]) -> dict[str, str]:
    """The outcome of each step if nothing is cut short."""
    given = {step.key: step for step in steps}
    ends: dict[str, str] = {}
    for key in TopologicalSorter({key: step.after for key, step in given.items()}).static_order():
        step = given[key]
        ends[key] = step.outcome if may_run(step.rule, [ends[before] for before in step.after]) else "skipped"
    return ends


def sum_up(ends: Iterable[str]) -> str:
    """The outcome of the workflow itself."""
    found = set(ends)
    return "failed" if "failed" in found else "cancelled" if "cancelled" in found else "succeeded"


def complaints(
    steps: Sequence[Given], seen: Mapping[str, Seen], *, fails_fast: bool, was_meddled_with: bool = False
) -> Iterator[str]:
    """Contradictions in the outcomes. `was_meddled_with`: steps or the whole workflow were cancelled."""
    given = {step.key: step for step in steps}
    if given.keys() != seen.keys():
        yield f"steps {sorted(given.keys() ^ seen.keys())} are missing or made up"
        return
    foretold = foretell(steps)
    if not was_meddled_with and not (fails_fast and "failed" in foretold.values()):
        yield from (
            f"{key}: {seen[key].state} and not {end}" for key, end in foretold.items() if seen[key].state != end
        )
    first_failure = min((end.finished_at for end in seen.values() if end.state == "failed"), default=None)
    for step in steps:
        found, before = seen[step.key], {name: seen[name] for name in step.after}
        is_cut_short = found.state == "cancelled" and step.outcome != "cancelled"
        if found.state not in (step.outcome, "skipped", "cancelled"):
            yield f"{step.key}: {found.state}, and if it runs it is {step.outcome}"
        if not is_cut_short and may_run(step.rule, [end.state for end in before.values()]) != (
            found.state != "skipped"
        ):
            yield (
                f"{step.key}: {found.state} by {step.rule} after {[(name, end.state) for name, end in before.items()]}"
            )
        if is_cut_short and not was_meddled_with:
            yield from _wrong_cut(step, found, first_failure if fails_fast else None)
        if found.state in ("succeeded", "failed") and not _is_in_order(step.rule, found, list(before.values())):
            yield f"{step.key}: started at {found.started_at}, before what {step.rule} needs of {before}"
        if found.state == "skipped":
            yield from _wrong_reason(step.key, given, seen)


def _wrong_cut(step: Given, found: Seen, first_failure: datetime | None) -> Iterator[str]:
    if step.rule == "always":
        yield f"{step.key}: cancelled, and it always runs"
    elif first_failure is None or first_failure > found.finished_at:
        yield f"{step.key}: cancelled before anything had failed, or although it does not matter"


def _is_in_order(rule: str, found: Seen, before: Sequence[Seen]) -> bool:
    if found.started_at is None:
        return False
    if not before:
        return True
    ended = {"one_success": ("succeeded",), "one_failed": FAILING}.get(rule)
    if ended is not None:
        return min(end.finished_at for end in before if end.state in ended) <= found.started_at
    return max(end.finished_at for end in before) <= found.started_at


def _wrong_reason(key: str, given: Mapping[str, Given], seen: Mapping[str, Seen]) -> Iterator[str]:
    found, step = seen[key], given[key]
    to_blame = set(_to_blame(key, given, seen))
    if found.reason == "dependency_failed":
        named = (found.message or "").removeprefix("dependency_failed: ")
        if named not in to_blame:
            yield f"{key}: {found.message!r}, and it can only be of {sorted(to_blame)}"
    elif found.reason not in ("dependency_skipped", "rule_unmet"):
        yield f"{key}: skipped for {found.reason!r}"
    elif step.rule not in ("one_failed", "all_failed") and all(
        seen[name].state in ("succeeded", *FAILING) or seen[name].reason == "dependency_failed" for name in step.after
    ):
        yield f"{key}: skipped for {found.reason!r}, and not for one of {sorted(to_blame)}"


def _to_blame(key: str, given: Mapping[str, Given], seen: Mapping[str, Seen]) -> Iterator[str]:
    """Steps that really failed, with only skipped steps between them and this one. `all_failed` ignores failures."""
    pending, met = [key], {key}
    while pending:
        here = given[pending.pop()]
        for name in here.after:
            if seen[name].state in FAILING and here.rule != "all_failed":
                yield name
            if seen[name].state == "skipped" and name not in met:
                met.add(name)
                pending.append(name)
