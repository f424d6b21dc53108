"""Reads files that declare jobs, alert rules and sources, in YAML or JSON. Each error names the file, the line and the
field.

A file has one or many documents. A document is an object, or a list of objects. An object of kind `job`, the default,
has the fields of `POST /v1/jobs`. An object of kind `workflow` has the fields of `POST /v1/workflows`; without a
schedule it runs once. An object of kind `alert_rule` has a name and the fields of `PUT /v1/alert-rules/{name}`. An
object of kind `source` has a name and the fields of `PUT /v1/sources/{name}`, with `from` for `kind`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import yaml

from foliot.api.requests.bodies import decode
from foliot.cli.file_errors import STEPS, find_errors
from foliot.cli.rule_files import DeclaredRule, declared_rule
from foliot.cli.source_files import DeclaredSource, declared_source
from foliot.clock import SystemClock
from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.model.ids import new_id
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.workflow import check
from foliot.model.workflow_request import WorkflowRequest

SUFFIXES = (".yaml", ".yml", ".json")
DEFAULT_KIND = "job"
RULE_KIND, SOURCE_KIND = "alert_rule", "source"
# Fields that a declaration can't have, and why.
NOT_DECLARABLE = {
    "max_runs": "it changes with each run; use end_at",
    "idempotency_key": "a declared job is identified by its name",
}
MERGE = "tag:yaml.org,2002:merge"
job_decoder = msgspec.json.Decoder(JobRequest)
workflow_decoder = msgspec.json.Decoder(WorkflowRequest)


@dataclass(frozen=True, slots=True)
class FileError:
    """An error in a file."""

    file: str
    line: int
    field: str
    detail: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.detail}"


class InvalidFiles(Exception):
    """The files contain errors; nothing was changed."""

    def __init__(self, errors: Sequence[FileError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = list(errors)


@dataclass(frozen=True, slots=True)
class Declared:
    """A recurring job that a file declares."""

    name: str
    file: str
    line: int
    fields: Mapping[str, Any]
    """The fields of the job, as in the API."""
    request: JobRequest
    runs_once: bool = False
    """It is a workflow without a schedule, which runs when it is applied."""
    source: Mapping[str, Any] | None = None
    """The fields as in the file. They differ from `fields` for a workflow."""


AnyDeclared = Declared | DeclaredRule | DeclaredSource
Check = Callable[[Declared, Collection[str]], None]
"""Raises `Invalid` for an invalid job; also gets the names of all declared jobs."""


def read_files(paths: Sequence[str], check_job: Check | None = None) -> list[AnyDeclared]:
    """Everything that the files declare. Raises `InvalidFiles` with all errors, also those from `check_job`."""
    errors: list[FileError] = []
    read = [read_documents(path) for path in _files(paths, errors)]
    names = {
        str(value["name"])
        for documents, _ in read
        for _, value, _ in documents
        if isinstance(value, dict) and "name" in value
    }
    found = []
    for documents, unreadable in read:
        errors.extend(unreadable)
        for path, value, node in documents:
            if not isinstance(value, dict):
                found_errors = [Invalid(f"a document must be an object or a list of objects, not {_kind_name(value)}")]
            else:
                found_errors = find_errors(
                    value, partial(_check_document, path=path, node=node, check_job=check_job, names=names)
                )
            errors.extend(
                FileError(path, line_of(node, error.field), error.field, error.detail) for error in found_errors
            )
            if not found_errors:
                found.append(declared(value, path, line_of(node, "")))
    errors.extend(_repeated_names(found))
    if errors:
        raise InvalidFiles(errors)
    return found


def _check_document(
    value: Mapping[Any, Any], *, path: str, node: yaml.Node | None, check_job: Check | None, names: Collection[str]
) -> None:
    document = declared(value, path, line_of(node, ""))
    if check_job is not None and isinstance(document, Declared):
        check_job(document, names)


def declared_job(fields: Mapping[str, Any], file: str, line: int) -> Declared:
    """Parses a job. Raises `Invalid`, as the server would, for invalid fields."""
    request = decode(msgspec.json.encode(fields), job_decoder)
    if request.name is None:
        raise Invalid("name: required in a declared job, because it identifies the job", field="name")
    for field, why in NOT_DECLARABLE.items():
        if getattr(request, field) is not None:
            raise Invalid(f"{field}: not allowed in a declared job: {why}", field=field)
    if not request.is_recurring:
        raise Invalid("cron: a declared job must be recurring; set cron, every or times", field="cron")
    request.new_job(new_id(), namespace=Namespace(), queue="default", now=SystemClock().now(), calendar=None)
    return Declared(request.name, file, line, dict(fields), request)


def declared_workflow(fields: Mapping[str, Any], file: str, line: int) -> Declared:
    """Parses a workflow. Raises `Invalid`, as the server would, for invalid fields."""
    asked = decode(msgspec.json.encode(fields), workflow_decoder)
    definition = msgspec.structs.replace(asked.definition(), steps=check(asked.definition()))
    if asked.name is None:
        raise Invalid("name: required in a declared workflow, because it identifies the workflow", field="name")
    if not asked.is_recurring:
        return Declared(asked.name, file, line, dict(fields), asked, runs_once=True)
    rest = {
        name: value for name, value in fields.items() if name not in ("steps", "on_failure", "parameters", "params")
    }
    return declared_job(rest | {"task": WORKFLOW_TASK, "payload": msgspec.to_builtins(definition)}, file, line)


KINDS: Mapping[str, Callable[[Mapping[str, Any], str, int], Declared]] = {
    DEFAULT_KIND: declared_job,
    "workflow": declared_workflow,
}
"""The parser of each kind of document."""


def _files(paths: Sequence[str], errors: list[FileError]) -> Iterator[str]:
    for path in paths:
        if path == "-" or not Path(path).is_dir():
            yield path
            continue
        inside = sorted(str(entry) for entry in Path(path).iterdir() if entry.suffix in SUFFIXES and entry.is_file())
        if not inside:
            errors.append(FileError(path, 1, "", f"the directory has no file that ends in {', '.join(SUFFIXES)}"))
        yield from inside


def read_documents(path: str) -> tuple[list[tuple[str, Any, yaml.Node | None]], list[FileError]]:
    """The documents of a file, or the errors that prevent reading it."""
    try:
        text = (sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()).decode("utf-8-sig")
        return [(path, value, node) for value, node in documents_of(path, text)], []
    except OSError as error:
        return [], [FileError(path, 1, "", str(error.strerror))]
    except UnicodeDecodeError as error:
        return [], [FileError(path, 1, "", f"invalid UTF-8 at byte {error.start}")]
    except InvalidFiles as error:
        return [], error.errors


def declared(value: Mapping[Any, Any], path: str, line: int) -> AnyDeclared:
    """Parses a document of any kind. Raises `Invalid`, as the server would, for invalid fields."""
    kind = value.get("kind")
    if kind not in (RULE_KIND, SOURCE_KIND):
        return declared_document(value, path, line)
    fields = {str(name): inner for name, inner in value.items() if name != "kind"}
    refuse_unwritable(fields, "")
    return declared_rule(fields, path, line) if kind == RULE_KIND else declared_source(fields, path, line)


def declared_document(value: Mapping[Any, Any], path: str, line: int) -> Declared:
    """Parses a job or a workflow. Raises `Invalid`, as the server would, for invalid fields."""
    fields = {str(name): inner for name, inner in value.items()}
    kind = fields.pop("kind", DEFAULT_KIND)
    kinds = (*KINDS, RULE_KIND, SOURCE_KIND)
    if kind not in kinds:
        raise Invalid(
            f"kind: unknown kind {kind!r}{did_you_mean(str(kind), kinds)}; valid kinds: {', '.join(kinds)}",
            field="kind",
        )
    refuse_unwritable(fields, "")
    return replace(KINDS[kind](fields, path, line), source=fields)


def documents_of(path: str, text: str, place: str = "") -> Iterator[tuple[Any, yaml.Node | None]]:
    """Yields each object with its YAML node, which has the line numbers. `place` is the file's name in errors."""
    place = place or path
    for value, node in _json_document(place, text) if path.endswith(".json") else _yaml_documents(place, text):
        if isinstance(value, list):
            nodes = node.value if isinstance(node, yaml.SequenceNode) else [None] * len(value)
            yield from zip(value, nodes, strict=True)
        elif value is not None:
            yield value, node


def _json_document(path: str, text: str) -> Iterator[tuple[Any, yaml.Node | None]]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidFiles(
            [FileError(path, getattr(error, "lineno", 1), "", f"invalid JSON: {getattr(error, 'msg', error)}")]
        ) from None
    try:
        # Only for line numbers. Tabs are whitespace in JSON but an error in YAML.
        node = yaml.compose(text.replace("\t", " "), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        node = None
    yield value, node


def _yaml_documents(path: str, text: str) -> Iterator[tuple[Any, yaml.Node | None]]:
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            _refuse_repeated(path, node)
            yield loader.construct_document(node), node
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InvalidFiles([FileError(path, line, "", f"invalid YAML: {error.problem}")]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InvalidFiles([FileError(path, 1, "", f"invalid YAML: {error}")]) from None
    finally:
        loader.dispose()


def _refuse_repeated(path: str, node: yaml.Node | None) -> None:
    """Raises an error for a repeated field. YAML would silently use the last one."""
    stack, seen_nodes = [node], set()
    while stack:
        here = stack.pop()
        if id(here) in seen_nodes:
            continue
        seen_nodes.add(id(here))
        if isinstance(here, yaml.SequenceNode):
            stack.extend(here.value)
        elif isinstance(here, yaml.MappingNode):
            names = set()
            for key, value in here.value:
                name = str(key.value)
                if name in names and key.tag != MERGE:
                    raise InvalidFiles([FileError(path, key.start_mark.line + 1, name, f"{name}: field is repeated")])
                names.add(name)
                stack.append(value)


def refuse_unwritable(value: Any, path: str) -> None:
    """Raises `Invalid` for values that JSON can't represent."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Invalid(f"{path}: {value} can't be written in JSON", field=path)
    if isinstance(value, dict):
        for name, inner in value.items():
            # YAML reads the words on, off, yes and no as true and false.
            if isinstance(name, bool) or not isinstance(name, str | int):
                raise Invalid(f"{path}: field name {name!r} must be a string; put it in quotes", field=path)
            refuse_unwritable(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            refuse_unwritable(inner, f"{path}[{index}]")
    elif isinstance(value, set | bytes):
        raise Invalid(f"{path}: {_kind_name(value)} can't be written in JSON", field=path)


def line_of(node: yaml.Node | None, field: str) -> int:
    """The line of a field, or of its parent if it is absent."""
    line = node.start_mark.line + 1 if node is not None else 1
    for name, index in STEPS.findall(field):
        found: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == name:
                    line, found = key.start_mark.line + 1, value
        elif isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
            found = node.value[int(index)]
            line = found.start_mark.line + 1
        if found is None:
            break
        node = found
    return line


def _repeated_names(found: Sequence[AnyDeclared]) -> Iterator[FileError]:
    first: dict[tuple[type, str], AnyDeclared] = {}
    for job in found:
        before = first.setdefault((type(job), job.name), job)
        if before is not job:
            yield FileError(
                job.file, job.line, "name", f"name: {job.name!r} is already declared in {before.file}:{before.line}"
            )


def _kind_name(value: object) -> str:
    names = {str: "text", list: "a list", set: "a set", bytes: "binary data", bool: "true or false"}
    return names.get(type(value), f"a {type(value).__name__}")
