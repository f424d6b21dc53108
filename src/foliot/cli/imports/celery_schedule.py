"""Turns the `beat_schedule` of a Celery app into recurring jobs.

The app is imported as Celery itself imports it, so Celery is needed where this runs. Jobs behave as under beat: the
time zone of the app, no catch-up of missed times, and runs may overlap.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from foliot.cli.imports.imported_jobs import Entry, Imported, Note
from foliot.errors import FoliotError, Invalid
from foliot.model.job import check_name

# The names under which `celery -A module` looks for the app.
APP_NAMES = ("app", "celery")
CRON_FIELDS = ("_orig_minute", "_orig_hour", "_orig_day_of_month", "_orig_month_of_year", "_orig_day_of_week")
# Options of an entry that a job has too, or that mean nothing to it.
KNOWN_OPTIONS = frozenset({"queue", "priority", "expires", "ignore_result"})


def load_celery_app(place: str) -> Any:
    """The Celery app of `module` or `module:name`."""
    module_name, _, name = place.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise Invalid(f"{place}: {module_name} can't be imported: {type(error).__name__}: {error}") from None
    for candidate in (name,) if name else APP_NAMES:
        app = getattr(module, candidate, None)
        if hasattr(app, "conf") and hasattr(app, "tasks"):
            return app
    if name:
        raise Invalid(f"{place}: {module_name} has no Celery app named {name!r}")
    raise Invalid(f"{place}: {module_name} has no Celery app named app or celery; write {module_name}:NAME")


def read_beat_schedule(app: Any) -> Imported:
    # Tasks that are declared with a decorator are known only after this.
    app.loader.import_default_modules()
    app.finalize(auto=True)
    found = Imported()
    schedule = app.conf.beat_schedule or {}
    for name, entry in schedule.items():
        try:
            found.entries.append(Entry(0, _job(str(name), entry, app, found)))
        except FoliotError as error:
            found.left_out.append(Note(0, f"{name!r}: {error.detail}"))
    scheduled = {entry["task"] for entry in schedule.values() if isinstance(entry, Mapping) and "task" in entry}
    own = sorted(name for name in app.tasks if not name.startswith("celery."))
    for name in own:
        after = "is run by the schedule" if name in scheduled else "has no schedule; submit it from your code"
        found.notes.append(Note(0, f"task {name} {after}; declare it with @app.task(name={name!r})"))
    return found


def _job(name: str, entry: Any, app: Any, found: Imported) -> dict[str, Any]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("task"), str):
        raise Invalid("the entry names no task")
    clean_name = name.replace("/", "-")
    check_name(clean_name)
    options = dict(entry.get("options") or {})
    job: dict[str, Any] = {
        "name": clean_name,
        "task": entry["task"],
        **_schedule(entry.get("schedule"), str(app.timezone)),
        "payload": _payload(entry, app),
        "overlap": "allow_all",
        "catchup": "none",
        "retries": _retries(entry["task"], app),
    }
    if queue := options.get("queue"):
        job["queue"] = str(queue)
    if options.get("priority"):
        found.notes.append(
            Note(0, f"{name!r}: priority {options['priority']} is left out; a higher priority starts sooner in Foliot")
        )
    if options.get("expires"):
        found.notes.append(Note(0, f"{name!r}: expires is left out; see catchup_window in the guide of schedules"))
    for option in sorted(options.keys() - KNOWN_OPTIONS):
        found.notes.append(Note(0, f"{name!r}: the option {option} is left out"))
    try:
        msgspec.json.encode(job["payload"])
    except (TypeError, ValueError) as error:
        raise Invalid(f"its arguments can't be written as JSON: {error}") from None
    return job


def _schedule(schedule: Any, zone: str) -> dict[str, Any]:
    """The fields of a job for a `crontab`, a `schedule`, a timedelta or a number of seconds."""
    if all(hasattr(schedule, field) for field in CRON_FIELDS):
        fields = (_cron_field(getattr(schedule, field)) for field in CRON_FIELDS)
        return {"cron": " ".join(fields), "timezone": zone}
    every = getattr(schedule, "run_every", schedule)
    if isinstance(every, int | float) and not isinstance(every, bool):
        every = timedelta(seconds=every)
    if isinstance(every, timedelta):
        if every < timedelta(seconds=1) or every.microseconds:
            raise Invalid(f"an interval of {every.total_seconds()} s is not a whole number of seconds")
        return {"every": f"{int(every.total_seconds())}s", "timezone": zone}
    raise Invalid(f"a schedule of the kind {type(schedule).__name__!r} has no equal; write a job for it")


def _cron_field(value: Any) -> str:
    """Celery takes texts, numbers and collections of numbers."""
    if isinstance(value, str):
        return "".join(value.split())
    if isinstance(value, int):
        return str(value)
    return ",".join(str(number) for number in sorted(value))


def _payload(entry: Mapping[str, Any], app: Any) -> dict[str, Any]:
    """The arguments by name. Positional ones get their names from the task's function."""
    arguments = list(entry.get("args") or ())
    by_name = dict(entry.get("kwargs") or {})
    if not arguments:
        return by_name
    names = _parameters(entry["task"], app)
    if len(names) < len(arguments):
        raise Invalid(f"the names of its {len(arguments)} positional arguments are unknown; write them as kwargs")
    return dict(zip(names, arguments, strict=False)) | by_name


def _parameters(task: str, app: Any) -> Sequence[str]:
    if task not in app.tasks:
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(app.tasks[task].run).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def _retries(task: str, app: Any) -> int:
    """Celery retries only tasks that ask for it."""
    declared = app.tasks.get(task)
    if not getattr(declared, "autoretry_for", ()):
        return 0
    return int(getattr(declared, "max_retries", 0) or 0)
