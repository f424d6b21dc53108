"""Turns Airflow's Jinja templates into Foliot's placeholders, as far as they have an equal."""

from __future__ import annotations

import re

EXPRESSION = re.compile(r"\{\{(?P<inside>[^{}]*)\}\}")
# Airflow runs a schedule at the end of the interval between two ticks, and `ds` is the start of that interval.
START = 'previous_tick | in_zone "UTC"'
END = 'scheduled_for | in_zone "UTC"'
EQUALS = {
    "ds": f"{START} | date",
    "ds_nodash": f'{START} | format "%Y%m%d"',
    "ts": f"{START} | iso",
    "ts_nodash": f'{START} | format "%Y%m%dT%H%M%S"',
    "logical_date": f"{START} | iso",
    "execution_date": f"{START} | iso",
    "data_interval_start": f"{START} | iso",
    "data_interval_end": f"{END} | iso",
    "next_ds": f"{END} | date",
    "next_ds_nodash": f'{END} | format "%Y%m%d"',
    "run_id": "run_id",
}
MACRO_ADD = re.compile(r"macros\.ds_add\(\s*ds\s*,\s*(?P<days>-?[0-9]{1,4})\s*\)")
PARAMETER = re.compile(r"(?:dag_run\.conf|params)(?:\.(?P<name>\w+)|\[['\"](?P<key>\w+)['\"]\])")
RESULT = re.compile(r"(?:ti|task_instance)\.xcom_pull\(\s*(?:task_ids\s*=\s*)?['\"](?P<step>[\w.-]+)['\"]\s*\)")
STRFTIME = re.compile(
    r"(?P<name>logical_date|execution_date|data_interval_start|data_interval_end)"
    r"\.strftime\(\s*['\"](?P<format>[^'\"]*)['\"]\s*\)"
)


class UnknownTemplate(ValueError):
    """A template without an equal."""


def placeholders(text: str) -> str:
    """The text with placeholders instead of templates. Raises `UnknownTemplate` for one that has no equal."""
    if "{%" in text:
        raise UnknownTemplate("{% ... %}")
    return EXPRESSION.sub(lambda found: "{{ " + _placeholder(found["inside"].strip("- \n\t")) + " }}", text)


def _placeholder(inside: str) -> str:
    if inside in EQUALS:
        return EQUALS[inside]
    if found := MACRO_ADD.fullmatch(inside):
        return f'{START} | add "{found["days"]}d" | date'
    if found := PARAMETER.fullmatch(inside):
        return f"params.{found['name'] or found['key']}"
    if found := RESULT.fullmatch(inside):
        return f'results["{found["step"]}"]'
    if found := STRFTIME.fullmatch(inside):
        instant = END if found["name"] == "data_interval_end" else START
        return f'{instant} | format "{found["format"]}"'
    raise UnknownTemplate("{{ " + inside + " }}")
