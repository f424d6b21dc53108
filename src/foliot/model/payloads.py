"""The payloads of the built-in tasks: one type each, used by the submission of jobs and by the executor.

A payload that can't work is refused when the job is submitted, with the name of the field. Two kinds of values are not
known by then: results of earlier steps that a payload points at (`{"$result": "step"}`), and the items of a map. A
payload that has such values is checked in its other fields; the executor checks the whole of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.errors import Invalid
from foliot.model.http_headers import check_headers
from foliot.model.urls import check_url
from foliot.model.wait_payloads import WaitForFilePayload, WaitForRowPayload, WaitForUrlPayload
from foliot.validation_errors import to_invalid

REFERENCE = "$result"
REFERENCE_FIELDS = frozenset({REFERENCE, "path"})
PARAMETER = "$param"
WORKFLOW_TASK = "workflow"
NAME_PATTERN = r"^[^=\x00]+$"
FIELD_IN_MESSAGE = re.compile(r"^`(\w+)`: ")
SandboxKind = Literal["none", "process", "bubblewrap"]
Status = Annotated[int, Meta(ge=100, le=599)]
Word = Annotated[str, Meta(max_length=100_000)]
P = TypeVar("P", bound=msgspec.Struct)


class SandboxFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part of a command's payload that says what it may use."""

    sandbox: SandboxKind | None = None
    memory_mb: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None
    cpu_seconds: Annotated[int, Meta(ge=1, le=31_536_000)] | None = None
    file_size_mb: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None
    processes: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    network: bool | None = None


class ShellPayload(SandboxFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    command: Annotated[str, Meta(min_length=1, max_length=100_000)] | None = None
    argv: Annotated[tuple[Word, ...], Meta(min_length=1, max_length=10_000)] | None = None
    cwd: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    environment: dict[Annotated[str, Meta(pattern=NAME_PATTERN, max_length=1000)], Word] = msgspec.field(
        default_factory=dict
    )
    stdin: Annotated[str, Meta(max_length=1_048_576)] = ""

    def __post_init__(self) -> None:
        if (self.command is None) == (self.argv is None):
            raise ValueError("either `command` or `argv` is needed, and not both")
        if any(
            "\0" in text
            for text in (self.command or "", *(self.argv or ()), self.cwd or "", *self.environment.values())
        ):
            raise ValueError("no NUL may be in a command, its arguments, its directory or its environment")

    @property
    def words(self) -> tuple[str, ...]:
        return self.argv if self.argv is not None else ("/bin/sh", "-c", self.command or "")


class HttpPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: Annotated[str, Meta(min_length=1, max_length=8000)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: Any | UnsetType = UNSET
    """Text goes as it is; anything else as JSON."""
    expected_status: (
        Status | Annotated[tuple[Status, ...], Meta(min_length=1)] | Annotated[str, Meta(pattern="^[1-5]xx$")]
    ) = "2xx"
    timeout_seconds: Annotated[float, Meta(gt=0, le=86_400)] = 30.0
    redirects: Annotated[int, Meta(ge=0, le=5)] = 0
    """How many are followed."""

    def __post_init__(self) -> None:
        check_url(self.url)
        check_headers(self.headers)

    def expects(self, status: int) -> bool:
        expected = self.expected_status
        if isinstance(expected, str):
            return status // 100 == int(expected[0])
        return status in expected if isinstance(expected, tuple) else status == expected


class SimulatePayload(msgspec.Struct, frozen=True):
    """Further keys are welcome and ignored."""

    execution_time_ms: Annotated[float, Meta(ge=0, le=86_400_000)] = 0
    fail_rate: Annotated[float, Meta(ge=0, le=1)] = 0


class WaitPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing: how long it waits, or for which signal, is said by the job's `delay_seconds`, `schedule_time` and
    `signal`."""


LEAVES: Mapping[str, type[msgspec.Struct]] = {
    "shell": ShellPayload,
    "http": HttpPayload,
    "simulate": SimulatePayload,
    "wait": WaitPayload,
    "wait_for_file": WaitForFilePayload,
    "wait_for_row": WaitForRowPayload,
    "wait_for_url": WaitForUrlPayload,
}
"""The payloads of built-in tasks, except workflow and map."""
# The same fields, all optional, for a payload with values that are not known yet.
IN_PARTS: Mapping[str, type[msgspec.Struct]] = {
    task: msgspec.defstruct(
        f"{kind.__name__}InParts",
        [(field.encode_name, field.type, msgspec.field(default=UNSET)) for field in msgspec.structs.fields(kind)],
        forbid_unknown_fields=kind.__struct_config__.forbid_unknown_fields,
    )
    for task, kind in LEAVES.items()
}


def payload_of(payload: object, kind: type[P]) -> P:
    """The payload, decoded. Raises `Invalid` with the field at fault, as it is called inside the payload."""
    try:
        return msgspec.convert(payload, kind)
    except msgspec.ValidationError as error:
        found = to_invalid(error, whole="payload")
        if found.field == "payload" and (named := FIELD_IN_MESSAGE.match(found.detail.removeprefix("payload: "))):
            message = found.detail.removeprefix("payload: ")[named.end() :]
            raise Invalid(f"{named[1]}: {message}", field=named[1]) from None
        raise found from None


def check_leaf(task: str, payload: Mapping[str, Any] | None, *, unknown: Collection[str] = ()) -> None:
    """Raises `Invalid` for what a built-in task can't use. `unknown` are fields whose values come
    later."""
    kind = LEAVES.get(task)
    if kind is None:
        return
    given = payload or {}
    try:
        if not unknown:
            payload_of(given, kind)
            return
        parts = IN_PARTS[task]
        payload_of({name: value for name, value in given.items() if name not in unknown}, parts)
        if parts.__struct_config__.forbid_unknown_fields and (
            strange := sorted(set(unknown) - set(parts.__struct_encode_fields__))
        ):
            raise Invalid(f"{strange[0]}: there is no such field", field=strange[0])
    except Invalid as error:
        raise within_payload(error) from None


def within_payload(error: Invalid) -> Invalid:
    """The same, with its field as it is called in the job."""
    if error.field == "payload":
        return error
    return type(error)(f"payload.{error.detail}", field=f"payload.{error.field}")


def pointing(payload: Mapping[str, Any] | None) -> set[str]:
    """The fields in which there is a reference to the result of another step."""
    return {name for name, value in (payload or {}).items() if _points(value)}


def is_reference(value: object) -> bool:
    """Whether the result of an earlier step takes the place of this value."""
    return isinstance(value, dict) and REFERENCE in value and value.keys() <= REFERENCE_FIELDS


def is_parameter(value: object) -> bool:
    """Whether the value of a workflow's parameter takes the place of this value."""
    return isinstance(value, dict) and PARAMETER in value


def is_template(value: object) -> bool:
    """Whether the value may be text that is filled in later, and may then have another format."""
    return isinstance(value, str) and "{{" in value


def is_later(value: object) -> bool:
    """Whether the value is not known before the run starts."""
    return is_reference(value) or is_parameter(value) or is_template(value)


def _points(value: object) -> bool:
    stack = [value]
    while stack:
        here = stack.pop()
        if is_reference(here):
            return True
        if isinstance(here, dict):
            stack.extend(here.values())
        elif isinstance(here, list):
            stack.extend(here)
    return False
