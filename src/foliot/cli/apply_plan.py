"""Plans and makes the changes that bring the server's jobs in line with the declared ones.

Each created or changed job is marked with the set that declares it (`metadata.applied_by`). Only jobs with the mark of
the same set are removed. Jobs with the mark of another set are not changed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import click
import msgspec

from foliot.api.openapi.schemas import recurring
from foliot.cli.columns import Column
from foliot.cli.job_files import AnyDeclared, Declared
from foliot.cli.progress import tracked
from foliot.cli.rule_files import DeclaredRule, changes_of
from foliot.cli.source_files import DeclaredSource
from foliot.cli.source_files import changes_of as source_changes_of
from foliot.cli.tables import Cell, clean, table
from foliot.clock import SystemClock
from foliot.errors import FoliotError, NotFound
from foliot.model.alert_rule import kind_of
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.schedule import Schedule
from foliot.model.source import Source
from foliot.sdk.alert_operations import AlertOperations
from foliot.sdk.client import Client
from foliot.sdk.source_operations import SourceOperations

MARK = "applied_by"
Action = Literal["create", "change", "replace", "run", "unchanged", "remove", "refuse"]
COLOURS: Mapping[Action, str] = {
    "create": "green", "run": "green", "change": "yellow", "replace": "yellow", "remove": "red", "refuse": "red",
}  # fmt: skip
HEADERS = ("ACTION", Column("NAME", "text"), Column("FILE", "text", 1), Column("DETAIL", "wrapped"))
DEFAULTS = dict(zip(Schedule.__struct_fields__, Schedule.__struct_defaults__, strict=True))
Changes = dict[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    action: Action
    declared: AnyDeclared | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The body to send: the whole job, or its changed fields."""
    changes: Changes = field(default_factory=dict)
    """The old and the new value of each changed field."""
    reason: str = ""
    """Why the step is refused or unchanged."""


@dataclass(frozen=True, slots=True)
class Policy:
    set_name: str
    is_pruning: bool = False
    is_adopting: bool = False
    """Take over jobs that are marked by another set."""
    takes_unmarked: bool = True
    """Take over jobs without a mark."""


def find_steps(
    client: Client,
    declared: Sequence[Declared],
    checked: Mapping[str, Mapping[str, Any]],
    policy: Policy,
    *,
    is_quiet: bool,
) -> list[Step]:
    """Compares the declared jobs with the server's. `checked` holds the server's view of each job, by name."""
    compared = tracked(declared, "comparing", len(declared), is_quiet=is_quiet)
    steps = [_step(job, _existing(client, job.name), policy, checked[job.name]) for job in compared]
    if policy.is_pruning:
        names = {job.name for job in declared}
        jobs = client.list_jobs().document["items"]
        steps.extend(
            Step(job["name"], "remove")
            for job in jobs
            if job["name"] not in names and job["metadata"].get(MARK) == policy.set_name
        )
    return steps


def find_rule_steps(client: AlertOperations, rules: Sequence[DeclaredRule]) -> list[Step]:
    """Compares the declared alert rules with the server's."""
    found = changes_of(client, rules)
    return [_put_step(rule, found[rule.name]) for rule in rules]


def find_source_steps(client: SourceOperations, sources: Sequence[DeclaredSource]) -> list[Step]:
    """Compares the declared sources with the server's."""
    found = source_changes_of(client, sources)
    return [_put_step(source, changes) for source, changes in zip(sources, found, strict=True)]


def _put_step(declared: DeclaredRule | DeclaredSource, changes: Changes | None) -> Step:
    action: Action = "create" if changes is None else "change" if changes else "unchanged"
    return Step(declared.name, action, declared, declared.fields, changes or {})


def carry_out(client: Client, steps: Sequence[Step], *, is_quiet: bool) -> list[Step]:
    """Makes the changes. A step that the server rejects becomes `refuse`; the other steps are still made."""
    done = []
    for step in tracked(steps, "applying", len(steps), is_quiet=is_quiet):
        try:
            done.append(_apply(client, step))
        except FoliotError as error:
            done.append(replace(step, action="refuse", reason=error.detail))
    return done


def show(steps: Sequence[Step], *, is_dry_run: bool) -> str:
    rows = [(Cell(step.action, COLOURS.get(step.action)), step.name, _place(step), _detail(step)) for step in steps]
    counts = Counter(step.action for step in steps)
    summary = ", ".join(f"{count} {action}" for action, count in counts.items()) or "no jobs are declared"
    tail = f"{summary}; dry run: nothing was changed" if is_dry_run else summary
    return f"{table(HEADERS, rows)}\n\n{tail}" if rows else tail


def as_items(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [
        {
            "name": step.name,
            "action": step.action,
            "file": step.declared.file if step.declared else None,
            "line": step.declared.line if step.declared else None,
            "changes": {name: {"from": before, "to": after} for name, (before, after) in step.changes.items()},
            "error": step.reason or None,
        }
        for step in steps
    ]


def _existing(client: Client, name: str) -> Mapping[str, Any] | None:
    try:
        return client.get_job(name).document
    except NotFound:
        return None


def _step(job: Declared, existing: Mapping[str, Any] | None, policy: Policy, checked: Mapping[str, Any]) -> Step:
    if job.runs_once:
        return Step(job.name, "run", job, job.fields)
    marked = dict(job.fields) | {"metadata": {**(job.fields.get("metadata") or {}), MARK: policy.set_name}}
    if existing is None:
        return Step(job.name, "create", job, marked)
    mark = existing["metadata"].get(MARK)
    if not policy.is_adopting and mark != policy.set_name and (mark is not None or not policy.takes_unmarked):
        owner = f"belongs to the set {mark}" if mark else "exists and belongs to no set"
        return Step(job.name, "refuse", job, reason=f"a job with this name {owner}; use --adopt to take it over")
    changes = _changes(job, existing, marked["metadata"], checked)
    if "task" in changes:
        return Step(job.name, "replace", job, marked, changes)
    patch = _patch(changes)
    if "tags" in patch and job.request.tags is None:
        # None means the tags that the task declares.
        patch["tags"] = None
    return Step(job.name, "change" if changes else "unchanged", job, patch, changes)


def _changes(
    job: Declared, existing: Mapping[str, Any], metadata: Mapping[str, Any], checked: Mapping[str, Any]
) -> Changes:
    made = job.request.new_job(
        new_id(), namespace=Namespace(), queue=existing["queue"], now=SystemClock().now(), calendar=None
    )
    wanted = msgspec.json.decode(msgspec.json.encode(recurring(made)))
    if job.request.task == WORKFLOW_TASK == existing["task"]:
        wanted["payload"] = _with_queues(job.request.payload or {}, checked["payload"], existing["payload"])
    pairs: Changes = {name: (existing[name], wanted[name]) for name in ("task", "priority", "queue", "payload")}
    pairs["metadata"] = (existing["metadata"], metadata)
    pairs["tags"] = (existing["tags"], checked["tags"])
    # An absent field has its default, and writing down a default is not a change.
    for group, defaults in (("schedule", DEFAULTS), ("options", {})):
        before, after = defaults | (existing[group] or {}), defaults | (wanted[group] or {})
        pairs |= {name: (before.get(name), after.get(name)) for name in sorted({*before, *after})}
    return {name: (before, after) for name, (before, after) in pairs.items() if before != after}


def _with_queues(
    declared: Mapping[str, Any], checked: Mapping[str, Any], existing: Mapping[str, Any]
) -> dict[str, Any]:
    """The workflow as the server completes it. Steps that name no queue keep their current one."""
    known = {step["key"]: step.get("queue") for step in existing["steps"]}
    named = {step["key"] for step in declared["steps"] if step.get("queue")}
    steps = [
        step if step["key"] in named or known.get(step["key"]) is None else {**step, "queue": known[step["key"]]}
        for step in checked["steps"]
    ]
    return {**checked, "steps": steps}


def _patch(changes: Changes) -> dict[str, Any]:
    """The body of a PATCH request. A field that was removed from the file goes back to its default."""
    fields = {name: after for name, (_, after) in changes.items()}
    if "catchup_window_seconds" in fields:
        fields["catchup_window"] = f"{fields.pop('catchup_window_seconds')}s"
    return fields


def _apply(client: Client, step: Step) -> Step:
    if isinstance(step.declared, DeclaredRule | DeclaredSource):
        if step.action != "unchanged":
            _put(client, step)
        return step
    match step.action:
        case "run":
            # The key prevents a second run of the same workflow within a day.
            made = client.create_workflow({**step.fields, "idempotency_key": _key(step.fields)}).document
            return step if made["created"] else replace(step, action="unchanged", reason=f"already run as {made['id']}")
        case "create":
            client.create_job(step.fields)
        case "change":
            client.change_job(step.name, step.fields)
        case "replace":
            client.delete_job(step.name)
            client.create_job(step.fields)
        case "remove":
            client.delete_job(step.name)
        case "unchanged" | "refuse":
            pass
    return step


def _put(client: Client, step: Step) -> None:
    if isinstance(step.declared, DeclaredRule) and isinstance(client, AlertOperations):
        client.put_alert_rule(step.name, step.fields)
    elif isinstance(step.declared, DeclaredSource) and isinstance(client, SourceOperations):
        client.put_source(step.name, step.fields)


def _key(fields: Mapping[str, Any]) -> str:
    return f"apply:{hashlib.sha256(msgspec.json.encode(fields, order='deterministic')).hexdigest()}"


def _place(step: Step) -> str:
    return f"{step.declared.file}:{step.declared.line}" if step.declared else ""


def _detail(step: Step) -> str:
    if step.reason:
        return step.reason
    if isinstance(step.declared, DeclaredRule) and step.action == "create":
        return f"alert rule: {kind_of(step.declared.rule)}"
    if isinstance(step.declared, DeclaredSource) and step.action == "create":
        return source_summary(step.declared.source)
    if step.action == "run":
        return f"run once: a workflow of {len(step.fields['steps'])} steps"
    if step.action == "create":
        return _summary(step.fields)
    shown = {name: pair for name, pair in step.changes.items() if name != "metadata" or not _is_mark_alone(pair)}
    return "; ".join(f"{name}: {_short(before)} -> {_short(after)}" for name, (before, after) in shown.items())


def _summary(fields: Mapping[str, Any]) -> str:
    """The schedule and the task in one line."""
    payload = fields.get("payload") or {}
    when = next(value for value in map(fields.get, ("cron", "schedule", "every", "times")) if value is not None)
    # The expression itself may name the zone.
    zone = "" if "TZ=" in str(when).upper() else f" {fields.get('timezone', 'UTC')}"
    what = (
        fields.get("command")
        or payload.get("command")
        or payload.get("argv")
        or fields.get("task")
        or fields.get("job_type")
    )
    return f"{_short(when)}{zone}: {_short(what)}"


def source_summary(source: Source) -> str:
    """Where its messages come from, and the task."""
    topic = f" {source.topic}" if source.topic else ""
    return f"source: {source.kind}{topic} -> {source.task}"


def _is_mark_alone(pair: tuple[Any, Any]) -> bool:
    before, after = ({name: value for name, value in (side or {}).items() if name != MARK} for side in pair)
    return before == after


def _short(value: Any) -> str:
    text = "default" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return clean(text if len(text) <= 60 else f"{text[:57]}...")


def finish(steps: Sequence[Step]) -> None:
    """Exits with 1 if a step was refused."""
    if any(step.action == "refuse" for step in steps):
        raise click.exceptions.Exit(1)
