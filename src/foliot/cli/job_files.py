"""Files that declare jobs: YAML or JSON, one or many documents each, and for whatever is wrong with one the file, the
line and the field.

A document is an object, or a list of objects. Each has a `kind`; without one it is a `job`: the fields of `POST
/v1/jobs`. A `workflow` has those of `POST /v1/workflows`; without a schedule it is run once.
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
from foliot.cli.file_errors import STEPS, faults_of
from foliot.clock import SystemClock
from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.model.ids import new_id
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.model.workflow import WORKFLOW_TASK, check
from foliot.model.workflow_request import WorkflowRequest

SUFFIXES = (".yaml", ".yml", ".json")
DEFAULT_KIND = "job"
# Jobs that are no longer as they were declared the moment they have run.
NOT_DECLARABLE = {
    "max_runs": "counts down while the job runs; use end_at",
    "idempotency_key": "a declared job is found by its name",
}
MERGE = "tag:yaml.org,2002:merge"
job_decoder = msgspec.json.Decoder(JobRequest)
workflow_decoder = msgspec.json.Decoder(WorkflowRequest)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and where."""

    file: str
    line: int
    field: str
    detail: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.detail}"


class Faulty(Exception):
    """Files that can't be applied; nothing was done."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = list(faults)


@dataclass(frozen=True, slots=True)
class Declared:
    """A recurring job as a file wants it."""

    name: str
    file: str
    line: int
    fields: Mapping[str, Any]
    """Those of the API."""
    request: JobRequest
    runs_once: bool = False
    """It is no recurring job, but a workflow that is run when it is applied."""
    said: Mapping[str, Any] | None = None
    """The fields as the file has them: a workflow becomes a job with other ones."""


Look = Callable[[Declared, Collection[str]], None]
"""Raises `Invalid` for what somebody else has against a job; gets the names of all jobs, too."""


def read_files(paths: Sequence[str], look: Look | None = None) -> list[Declared]:
    """Everything that the files declare. Raises `Faulty` with all that is wrong with them, also in the eyes of
    `look`."""
    faults: list[Fault] = []
    read = [_read(path) for path in _files(paths, faults)]
    names = {
        str(value["name"])
        for documents, _ in read
        for _, value, _ in documents
        if isinstance(value, dict) and "name" in value
    }
    found = []
    for documents, unreadable in read:
        faults.extend(unreadable)
        for path, value, node in documents:
            if not isinstance(value, dict):
                wrong = [Invalid(f"a document is an object or a list of objects, not {_kind_name(value)}")]
            else:
                wrong = faults_of(value, partial(_look_at, path=path, node=node, look=look, names=names))
            faults.extend(Fault(path, _line_of(node, error.field), error.field, error.detail) for error in wrong)
            if not wrong:
                found.append(_declared(value, path, node))
    faults.extend(_twice(found))
    if faults:
        raise Faulty(faults)
    return found


def _look_at(
    value: Mapping[Any, Any], *, path: str, node: yaml.Node | None, look: Look | None, names: Collection[str]
) -> None:
    job = _declared(value, path, node)
    if look is not None:
        look(job, names)


def declared_job(fields: Mapping[str, Any], file: str, line: int) -> Declared:
    """Raises `Invalid`, as the server would, for fields that make no job."""
    request = decode(msgspec.json.encode(fields), job_decoder)
    if request.name is None:
        raise Invalid("name: a declared job needs one: it is how the job is found again", field="name")
    for field, why in NOT_DECLARABLE.items():
        if getattr(request, field) is not None:
            raise Invalid(f"{field}: can't be declared: {why}", field=field)
    if not request.is_recurring:
        raise Invalid("cron: only recurring jobs can be declared; give cron, every or times", field="cron")
    request.new_job(new_id(), namespace=Namespace(), queue="default", now=SystemClock().now(), calendar=None)
    return Declared(request.name, file, line, dict(fields), request)


def declared_workflow(fields: Mapping[str, Any], file: str, line: int) -> Declared:
    """Raises `Invalid`, as the server would, for fields that make no workflow."""
    asked = decode(msgspec.json.encode(fields), workflow_decoder)
    definition = msgspec.structs.replace(asked.definition(), steps=check(asked.definition()))
    if asked.name is None:
        raise Invalid("name: a declared workflow needs one: it is how it is found again", field="name")
    if not asked.is_recurring:
        return Declared(asked.name, file, line, dict(fields), asked, runs_once=True)
    rest = {name: value for name, value in fields.items() if name not in ("steps", "on_failure")}
    return declared_job(rest | {"task": WORKFLOW_TASK, "payload": msgspec.to_builtins(definition)}, file, line)


KINDS: Mapping[str, Callable[[Mapping[str, Any], str, int], Declared]] = {
    DEFAULT_KIND: declared_job,
    "workflow": declared_workflow,
}
"""What reads a document of each kind."""


def _files(paths: Sequence[str], faults: list[Fault]) -> Iterator[str]:
    for path in paths:
        if path == "-" or not Path(path).is_dir():
            yield path
            continue
        inside = sorted(str(entry) for entry in Path(path).iterdir() if entry.suffix in SUFFIXES and entry.is_file())
        if not inside:
            faults.append(Fault(path, 1, "", f"there is no file in it whose name ends in {', '.join(SUFFIXES)}"))
        yield from inside


def _read(path: str) -> tuple[list[tuple[str, Any, yaml.Node | None]], list[Fault]]:
    """The documents of a file, or why it can't be read."""
    try:
        text = (sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()).decode("utf-8-sig")
        return [(path, value, node) for value, node in _documents(path, text)], []
    except OSError as error:
        return [], [Fault(path, 1, "", str(error.strerror))]
    except UnicodeDecodeError as error:
        return [], [Fault(path, 1, "", f"not UTF-8 at byte {error.start}")]
    except Faulty as error:
        return [], error.faults


def _declared(value: Mapping[Any, Any], path: str, node: yaml.Node | None) -> Declared:
    fields = {str(name): inner for name, inner in value.items()}
    kind = fields.pop("kind", DEFAULT_KIND)
    if kind not in KINDS:
        raise Invalid(
            f"kind: there is no kind {kind!r}{did_you_mean(str(kind), KINDS)}; known: {', '.join(KINDS)}", field="kind"
        )
    _refuse_unwritable(fields, "")
    return replace(KINDS[kind](fields, path, _line_of(node, "")), said=fields)


def _documents(path: str, text: str) -> Iterator[tuple[Any, yaml.Node | None]]:
    """Each object with the node that it came from, which knows the lines."""
    for value, node in _json_document(path, text) if path.endswith(".json") else _yaml_documents(path, text):
        if isinstance(value, list):
            nodes = node.value if isinstance(node, yaml.SequenceNode) else [None] * len(value)
            yield from zip(value, nodes, strict=True)
        elif value is not None:
            yield value, node


def _json_document(path: str, text: str) -> Iterator[tuple[Any, yaml.Node | None]]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Faulty(
            [Fault(path, getattr(error, "lineno", 1), "", f"not JSON: {getattr(error, 'msg', error)}")]
        ) from None
    try:
        # Only for the lines. Tabs are blanks to JSON, and an error to YAML.
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
        raise Faulty([Fault(path, line, "", f"not YAML: {error.problem}")]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Faulty([Fault(path, 1, "", f"not YAML: {error}")]) from None
    finally:
        loader.dispose()


def _refuse_repeated(path: str, node: yaml.Node | None) -> None:
    """A field that is given twice, of which YAML would quietly take the last."""
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
                    raise Faulty([Fault(path, key.start_mark.line + 1, name, f"{name}: is given twice")])
                names.add(name)
                stack.append(value)


def _refuse_unwritable(value: Any, path: str) -> None:
    """What YAML can say and JSON can't."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Invalid(f"{path}: {value} is not a number in JSON", field=path)
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str | int):
                raise Invalid(f"{path}: {name!r} is no name of a field; put it into quotes", field=path)
            _refuse_unwritable(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _refuse_unwritable(inner, f"{path}[{index}]")
    elif isinstance(value, set | bytes):
        raise Invalid(f"{path}: {_kind_name(value)} can't be written as JSON", field=path)


def _line_of(node: yaml.Node | None, field: str) -> int:
    """The line of a field, or of what holds it where it is not there."""
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


def _twice(found: Sequence[Declared]) -> Iterator[Fault]:
    first: dict[str, Declared] = {}
    for job in found:
        before = first.setdefault(job.name, job)
        if before is not job:
            yield Fault(
                job.file, job.line, "name", f"name: {job.name!r} is declared in {before.file}:{before.line} already"
            )


def _kind_name(value: object) -> str:
    names = {str: "text", list: "a list", set: "a set", bytes: "binary data", bool: "true or false"}
    return names.get(type(value), f"a {type(value).__name__}")
