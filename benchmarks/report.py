"""The result of a scenario, as one JSON line for programs and as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Figure = float | None
NAME_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement. The names of its figures are the columns; None is a figure that can't be measured here."""

    name: str
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Goal:
    what: str
    value: Figure
    bound: float
    is_least: bool
    """Whether the bound is the least that is wanted, and not the most."""

    @property
    def is_met(self) -> bool | None:
        """None if unknown."""
        if self.value is None:
            return None
        return self.value >= self.bound if self.is_least else self.value <= self.bound

    @property
    def verdict(self) -> str:
        return {True: "met", False: "not met", None: "unknown"}[self.is_met]

    @property
    def wanted(self) -> str:
        return f"{'>=' if self.is_least else '<='} {shown(self.bound)}"


def at_least(what: str, value: Figure, bound: float) -> Goal:
    return Goal(what, value, bound, is_least=True)


def at_most(what: str, value: Figure, bound: float) -> Goal:
    return Goal(what, value, bound, is_least=False)


@dataclass(frozen=True, slots=True)
class Result:
    rows: Sequence[Row]
    goals: Sequence[Goal] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    """How large it was."""
    notes: Sequence[str] = ()


def document(name: str, title: str, result: Result, **more: object) -> dict[str, Any]:
    """The JSON line."""
    return {
        "scenario": name,
        "title": title,
        "settings": dict(result.settings),
        "rows": [
            {"name": row.name, **{key: rounded(value) for key, value in row.figures.items()}} for row in result.rows
        ],
        "goals": [
            {"what": goal.what, "value": rounded(goal.value), "wanted": goal.wanted, "verdict": goal.verdict}
            for goal in result.goals
        ],
        "notes": list(result.notes),
        **more,
    }


def missed(found: Mapping[str, Any]) -> list[str]:
    """The goals that were missed; empty if nothing was measured."""
    return [goal["what"] for goal in found.get("goals", ()) if goal["verdict"] == "not met"]


def best(tries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of several tries, the first one that missed the fewest goals. Each goal keeps the figures of the other tries.

    Other users of the machine only make a measurement slower, so the best try says most.
    """
    measured = [one for one in tries if "goals" in one]
    if not measured:
        return tries[-1]
    chosen = min(measured, key=lambda one: len(missed(one)))
    others = [one for one in measured if one is not chosen]
    for at, goal in enumerate(chosen["goals"]):
        goal["other_tries"] = [other["goals"][at]["value"] for other in others]
    return chosen


def table(found: Mapping[str, Any]) -> str:
    """The same for people, from the JSON document."""
    rows: list[dict[str, Any]] = found["rows"]
    columns = list(dict.fromkeys(name for row in rows for name in row if name != "name"))
    widths = {name: 2 + max(6, len(heading(name)), *(len(shown(row.get(name))) for row in rows)) for name in columns}
    lines = [f"{found['scenario']}: {found['title']}"]
    if found["settings"]:
        lines.append("  " + ", ".join(f"{heading(name)} {shown(value)}" for name, value in found["settings"].items()))
    lines += ["", " " * NAME_WIDTH + "".join(f"{heading(name):>{width}}" for name, width in widths.items())]
    for row in rows:
        figures = "".join(f"{shown(row[name]) if name in row else '':>{width}}" for name, width in widths.items())
        lines.append(f"{row['name']:<{NAME_WIDTH}}{figures}".rstrip())
    lines.append("")
    lines += [
        f"  {goal['verdict']:<8} {goal['what']}: {shown(goal['value'])}, wanted {goal['wanted']}"
        for goal in found["goals"]
    ]
    lines += [f"  {note}" for note in found["notes"]]
    return "\n".join(lines) + "\n"


def heading(name: str) -> str:
    return name.replace("_", " ")


def rounded(value: Figure) -> Figure:
    return None if value is None else float(f"{value:.4g}")


def shown(value: object) -> str:
    if value is None:
        return "-"
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.3g}"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, -int(-share * len(ordered) // 1) - 1))]


def spread_ms(seconds: Sequence[float]) -> dict[str, float]:
    return {f"p{share * 100:g}_ms": percentile(seconds, share) * 1e3 for share in (0.5, 0.95, 0.99)} | {
        "max_ms": max(seconds) * 1e3
    }
