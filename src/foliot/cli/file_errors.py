"""Finds everything that is wrong with a document, though those who look at it name one field at a time.

The field at fault is put right or taken out, and the rest is looked at again, until nothing more is found.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

from foliot.errors import Invalid

FAULTS_MAX = 50
STEPS = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
# What stands in for a field that a job can't do without, so that what comes after it is looked at, too.
STAND_INS: Mapping[str, Any] = {
    "task": "simulate",
    "job_type": "simulate",
    "cron": "@daily",
    "schedule": "@daily",
    "every": "1h",
    "name": "x",
}


# What the rest means depends on it.
DECISIVE = frozenset({"kind"})


def faults_of(fields: Mapping[str, Any], look: Callable[[Mapping[str, Any]], object]) -> list[Invalid]:
    """What `look` raises about the fields, one after the other."""
    found: list[Invalid] = []
    rest: dict[str, Any] = copy.deepcopy(dict(fields))
    for _ in range(FAULTS_MAX):
        try:
            look(rest)
        except Invalid as error:
            if any(error.field == before.field for before in found):
                # Only because of what stands in its place, or is gone.
                break
            if not any(before.field.startswith(f"{error.field}.") for before in found):
                found.append(error)
            if not mended(rest, error.field):
                break
        else:
            break
    return found


def mended(value: Any, field: str) -> bool:
    """Puts a field right, or takes it out. False: there is none of that name."""
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
    if last == "payload" and isinstance(value, dict) and value.get("task") != STAND_INS["task"]:
        for name in ("payload", "command", "job_type"):
            value.pop(name, None)
        value["task"] = STAND_INS["task"]
        return True
    if isinstance(last, str) and isinstance(value, dict) and last in value:
        if last in STAND_INS and value[last] != STAND_INS[last]:
            value[last] = STAND_INS[last]
        else:
            del value[last]
        return True
    if isinstance(last, int) and isinstance(value, list) and last < len(value):
        del value[last]
        return True
    return False
