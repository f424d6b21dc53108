"""Turns an Airflow operator into a step: a command, a wait, an HTTP request, or a task of your own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from foliot.cli.imports.airflow_schedule import common_fields
from foliot.cli.imports.airflow_templates import UnknownTemplate, placeholders
from foliot.cli.imports.imported_jobs import Imported, Note
from foliot.cli.imports.python_values import UnknownValue, Values, last_name

COMMON = frozenset(
    {"task_id", "dag", "retries", "retry_delay", "retry_exponential_backoff", "execution_timeout", "trigger_rule"}
    | {"queue", "pool", "depends_on_past", "email_on_failure", "email_on_retry", "owner", "doc_md", "start_date"}
)
Options = Mapping[str, Any]


def step_of(
    operator: str, options: Mapping[str, ast.expr], key: str, values: Values, found: Imported, line: int
) -> dict[str, Any]:
    """The fields of the step, without its key and order."""
    known: dict[str, Any] = {}
    for option, node in options.items():
        if option == "dag":
            continue
        if option == "python_callable":
            known[option] = last_name(node)
            continue
        try:
            known[option] = values.of(node)
        except UnknownValue:
            found.left_out.append(Note(line, f"{key}: {option} is known only when the file runs"))
    step = STEPS.get(operator, _own_task)(known, operator, key, found, line)
    try:
        step = _with_placeholders(step)
    except UnknownTemplate as error:
        found.left_out.append(Note(line, f"{key}: the template {error} has no equal; see the guide of placeholders"))
    return step | common_fields(known, key, found, line)


def fields_of_function(
    options: Mapping[str, ast.expr], key: str, values: Values, found: Imported, line: int
) -> dict[str, Any]:
    """The fields of a step that come from the arguments of `@task(...)`."""
    known: dict[str, Any] = {}
    for option in COMMON & options.keys() - {"task_id", "dag"}:
        try:
            known[option] = values.of(options[option])
        except UnknownValue:
            found.left_out.append(Note(line, f"{key}: {option} is known only when the file runs"))
    return common_fields(known, key, found, line)


def _with_placeholders(value: Any) -> Any:
    if isinstance(value, str):
        return placeholders(value)
    if isinstance(value, dict):
        return {name: _with_placeholders(inner) for name, inner in value.items()}
    return [_with_placeholders(inner) for inner in value] if isinstance(value, list) else value


def _bash(options: Options, operator: str, key: str, found: Imported, line: int) -> dict[str, Any]:
    payload: dict[str, Any] = {"command": options.get("bash_command", "")}
    if environment := options.get("env"):
        payload["environment"] = environment
    if directory := options.get("cwd"):
        payload["cwd"] = directory
    if str(payload["command"]).rstrip().endswith(".sh"):
        found.notes.append(Note(line, f"{key}: Airflow reads a command that ends in .sh as a template; Foliot runs it"))
    return {"task": "shell", "payload": payload}


def _python(options: Options, operator: str, key: str, found: Imported, line: int) -> dict[str, Any]:
    function = options.get("python_callable") or _name(key)
    found.notes.append(Note(line, f"{key}: declare the function {function} with @app.task"))
    payload = {**(options.get("op_kwargs") or {})}
    if options.get("op_args"):
        found.left_out.append(Note(line, f"{key}: op_args have no names; write them as op_kwargs"))
    return {"task": function, "payload": payload} if payload else {"task": function}


def _empty(options: Options, operator: str, key: str, found: Imported, line: int) -> dict[str, Any]:
    return {"task": "wait"}


def _http(options: Options, operator: str, key: str, found: Imported, line: int) -> dict[str, Any]:
    url = str(options.get("endpoint", ""))
    if not url.startswith(("http://", "https://")):
        found.notes.append(
            Note(
                line, f"{key}: put the address of {options.get('http_conn_id', 'the connection')!r} in front of the URL"
            )
        )
        url = "https://example.com/" + url.lstrip("/")
    payload: dict[str, Any] = {"url": url, "method": options.get("method", "POST")}
    if options.get("headers"):
        payload["headers"] = options["headers"]
    if options.get("data"):
        payload["body"] = options["data"]
    return {"task": "http", "payload": payload}


def _wait_for_file(options: Options, operator: str, key: str, found: Imported, line: int) -> dict[str, Any]:
    payload: dict[str, Any] = {"path": options.get("filepath", "")}
    return {"task": "wait_for_file", "payload": payload | _patience(options)}


def _pause(options: Options, operator: str, key: str, found: Imported, line: int) -> dict[str, Any]:
    delta = options.get("delta")
    return {"task": "wait", "delay_seconds": delta.total_seconds() if isinstance(delta, timedelta) else 0}


def _patience(options: Options) -> dict[str, Any]:
    found = {}
    if isinstance(options.get("poke_interval"), int | float):
        found["every_seconds"] = options["poke_interval"]
    if isinstance(options.get("timeout"), int | float):
        found["within_seconds"] = options["timeout"]
    return found


def _own_task(options: Options, operator: str, key: str, found: Imported, line: int) -> dict[str, Any]:
    task = _name(key)
    payload = {name: value for name, value in options.items() if name not in COMMON and _is_plain(value)}
    advice = f"; {ADVICE[operator]}" if operator in ADVICE else ""
    found.notes.append(Note(line, f"{key}: {operator} has no equal: write the task {task!r} yourself{advice}"))
    return {"task": task, "payload": payload} if payload else {"task": task}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(inner) for name, inner in value.items())
    return value is None or isinstance(value, str | int | float | bool)


def _name(key: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in key)


STEPS: Mapping[str, Callable[[Options, str, str, Imported, int], dict[str, Any]]] = {
    "BashOperator": _bash,
    "PythonOperator": _python,
    "PythonVirtualenvOperator": _python,
    "EmptyOperator": _empty,
    "DummyOperator": _empty,
    "HttpOperator": _http,
    "SimpleHttpOperator": _http,
    "FileSensor": _wait_for_file,
    "TimeDeltaSensor": _pause,
    "TimeDeltaSensorAsync": _pause,
}
ADVICE = {
    "BranchPythonOperator": "or use a condition (when) on the steps after it",
    "ShortCircuitOperator": "or use a condition (when) on the steps after it",
    "ExternalTaskSensor": "or let the job depend on the other one (dependencies)",
    "TriggerDagRunOperator": "or make the other workflow a step",
    "EmailOperator": "or use an alert channel",
    "HttpSensor": "or use wait_for_url",
    "SqlSensor": "or use wait_for_row",
}
