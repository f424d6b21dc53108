"""The schedule of a DAG, and what its `default_args` say of every step."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from foliot.cli.imports.imported_jobs import Imported, Note
from foliot.cli.imports.python_values import UnknownValue, Values

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
# Options of a DAG that say how Airflow shows, parses or loads it.
WITHOUT_EFFECT = frozenset(
    {"dag_id", "description", "doc_md", "start_date", "end_date", "schedule", "schedule_interval", "catchup", "tags"}
    | {"default_args", "max_active_runs", "params", "render_template_as_native_obj", "default_view", "orientation"}
    | {"is_paused_upon_creation", "owner_links", "dag_display_name", "template_searchpath", "max_active_tasks"}
)
ADVICE = {
    "on_failure_callback": "use an alert rule",
    "on_success_callback": "use notify",
    "sla_miss_callback": "use an alert rule",
    "dagrun_timeout": "use an alert rule with a deadline",
    "timetable": "write its times as cron or times",
}


def schedule_of(
    name: str, options: Mapping[str, ast.expr], values: Values, found: Imported, line: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of the workflow, and the fields that its steps have unless they say otherwise."""

    def value(option: str, default: Any = None) -> Any:
        if option not in options:
            return default
        try:
            return values.of(options[option])
        except UnknownValue:
            found.left_out.append(Note(line, f"{name}: {option} is known only when the file runs"))
            return default

    defaults = value("default_args") or {}
    start = value("start_date") or defaults.get("start_date")
    fields: dict[str, Any] = {"name": name.replace("/", "-")}
    for option in ("schedule", "schedule_interval"):
        if option in options:
            fields |= _times(value(option), name, found, line)
    if "cron" in fields or "every" in fields:
        fields |= _bounds(start, value("end_date"))
        fields["catchup"] = "all" if value("catchup") is True else "latest"
        fields["overlap"] = "buffer_all" if value("max_active_runs") == 1 else "allow_all"
        if "catchup" not in options:
            text = "catchup is not set: Foliot runs the latest missed tick, and older ones only by foliot backfill"
            found.notes.append(Note(line, f"{name}: {text}"))
    fields |= _tags_and_parameters(value("tags"), value("params"))
    for option in sorted(options.keys() - WITHOUT_EFFECT):
        advice = f"; {ADVICE[option]}" if option in ADVICE else ""
        found.notes.append(Note(line, f"{name}: {option} is left out{advice}"))
    return fields, common_fields(defaults, name, found, line)


def _tags_and_parameters(tags: Any, params: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"tags": [str(tag) for tag in tags]} if tags else {}
    if isinstance(params, dict):
        fields["parameters"] = {str(key): {"default": default} for key, default in params.items()}
    return fields


def _bounds(start: Any, end: Any) -> dict[str, Any]:
    """The zone is that of the start, as in Airflow."""
    zone = getattr(getattr(start, "tzinfo", None), "key", None)
    bounds = (("start_at", start), ("end_at", end))
    return {"timezone": zone or "UTC"} | {
        name: instant.isoformat() for name, instant in bounds if isinstance(instant, datetime)
    }


def _times(schedule: Any, name: str, found: Imported, line: int) -> dict[str, Any]:
    if isinstance(schedule, timedelta):
        return {"every": f"{int(schedule.total_seconds())}s"}
    if isinstance(schedule, str) and schedule not in ("@once", "@continuous"):
        return {"cron": ALIASES.get(schedule, schedule)}
    if schedule is not None:
        found.left_out.append(Note(line, f"{name}: the schedule {schedule!r} has no equal; set cron, every or times"))
    return {}


def common_fields(options: Mapping[str, Any], name: str, found: Imported, line: int) -> dict[str, Any]:
    """The fields of a step that operators share: retries, waits, time limits, queues and rules."""
    fields: dict[str, Any] = {"retries": int(options.get("retries") or 0)} if "retries" in options else {}
    delay, limit = options.get("retry_delay"), options.get("execution_timeout")
    if isinstance(delay, timedelta):
        kind = "exponential" if options.get("retry_exponential_backoff") else "fixed"
        fields["backoff"] = {"kind": kind, "base_seconds": delay.total_seconds()}
    if isinstance(limit, timedelta):
        fields["timeout_seconds"] = limit.total_seconds()
    if isinstance(options.get("trigger_rule"), str):
        rule = RULES.get(options["trigger_rule"], options["trigger_rule"])
        fields["rule"] = rule
    if isinstance(options.get("queue"), str):
        fields["queue"] = options["queue"]
    if options.get("pool"):
        found.notes.append(
            Note(line, f"{name}: the pool {options['pool']} is left out; set concurrency with a key and a limit")
        )
    if options.get("depends_on_past"):
        found.notes.append(Note(line, f"{name}: depends_on_past is left out; overlap: buffer_all runs ticks in order"))
    if options.get("email_on_failure") or options.get("email_on_retry"):
        found.notes.append(Note(line, f"{name}: no mail is sent; use an alert rule"))
    return fields


# Airflow's rules without an equal of the same name.
RULES = {
    "none_failed_or_skipped": "all_success",
    "none_skipped": "all_done",
    "dummy": "always",
    "one_done": "all_done",
    "all_done_setup_success": "all_done",
    "all_done_min_one_success": "all_done",
    "all_skipped": "all_done",
}
