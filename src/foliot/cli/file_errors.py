"""Finds all errors in a document, with a check that reports one at a time.

After each error, the invalid field is replaced or removed and the rest is checked again, until there are no more
errors.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

from foliot.errors import Invalid

ERRORS_MAX = 50
STEPS = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
# Replacements for required fields, so that the check gets past them.
REPLACEMENTS: Mapping[str, Any] = {
    "task": "simulate",
    "job_type": "simulate",
    "cron": "@daily",
    "schedule": "@daily",
    "every": "1h",
    "name": "x",
}

# The meaning of all other fields depends on these, so an error in one ends the search.
DECISIVE = frozenset({"kind"})


def find_errors(fields: Mapping[str, Any], check: Callable[[Mapping[str, Any]], object]) -> list[Invalid]:
    """All errors that `check` raises for the fields."""
    found: list[Invalid] = []
    rest: dict[str, Any] = copy.deepcopy(dict(fields))
    for _ in range(ERRORS_MAX):
        try:
            check(rest)
        except Invalid as error:
            if any(error.field == before.field for before in found):
                # The replacement or the removal caused this error.
                break
            if not any(before.field.startswith(f"{error.field}.") for before in found):
                found.append(error)
            if not repair(rest, error.field):
                break
        else:
            break
    return found


def repair(value: Any, field: str) -> bool:
    """Replaces or removes a field. Returns False if it can't."""
    path = [name or int(index) for name, index in STEPS.findall(field)]
    for part in path[:-1]:
        if isinstance(part, str) and not (isinstance(value, dict) and part in value):
            return False
        if isinstance(part, int) and not (isinstance(value, list) and part < len(value)):
            return False
        value = value[part]
    last = path[-1] if path else ""
    if last in DECISIVE:
        return False
    if last in ("payload", "command") and isinstance(value, dict) and value.get("task") != REPLACEMENTS["task"]:
        for name in ("payload", "command", "job_type"):
            value.pop(name, None)
        value["task"] = REPLACEMENTS["task"]
        return True
    if isinstance(last, str) and isinstance(value, dict) and last in value:
        if last in REPLACEMENTS and value[last] != REPLACEMENTS[last]:
            value[last] = REPLACEMENTS[last]
        else:
            del value[last]
        return True
    if isinstance(last, int) and isinstance(value, list) and last < len(value):
        del value[last]
        return True
    return False
