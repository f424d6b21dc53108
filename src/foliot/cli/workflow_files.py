"""Reads one workflow from a YAML or JSON file. Each error names the file, the line and the field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click
import msgspec
import yaml

from foliot.api.requests.bodies import decode
from foliot.cli.file_errors import find_errors
from foliot.cli.job_files import FileError, InvalidFiles, documents_of, line_of, refuse_unwritable, workflow_decoder
from foliot.cli.options import content_of
from foliot.errors import Invalid
from foliot.model.workflow import check

NAME_OF_INPUT = "standard input"


def read_workflow(file: str) -> dict[str, Any]:
    """The body of `POST /v1/workflows` that the file holds. Raises `InvalidFiles`, or `BadParameter` for a file that
    can't be read."""
    place = NAME_OF_INPUT if file == "-" else file
    try:
        text = content_of(file if file == "-" else f"@{file}").decode("utf-8-sig")
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}", param_hint="FILE") from None
    except UnicodeDecodeError as error:
        raise InvalidFiles([FileError(place, 1, "", f"invalid UTF-8 at byte {error.start}")]) from None
    is_json = file.endswith(".json") or _is_json(text)
    documents = list(documents_of(f"{place}.json" if is_json else place, text, place))
    if len(documents) != 1:
        raise InvalidFiles([FileError(place, 1, "", f"one workflow is expected, not {len(documents)} documents")])
    value, node = documents[0]
    if not isinstance(value, dict):
        raise InvalidFiles([FileError(place, 1, "", "a workflow must be an object with steps")])
    kind = value.pop("kind", "workflow")
    if kind != "workflow":
        raise InvalidFiles([_at(Invalid(f"kind: must be workflow, not {kind!r}", field="kind"), place, node)])
    if errors := find_errors(value, _check):
        raise InvalidFiles([_at(error, place, node) for error in errors])
    if not is_json:
        return value
    # JSON is sent as written, so that no number loses a digit.
    raw: dict[str, Any] = dict(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    raw.pop("kind", None)
    return raw


def _check(fields: Mapping[str, Any]) -> None:
    refuse_unwritable(fields, "")
    asked = decode(msgspec.json.encode(fields), workflow_decoder)
    check(asked.definition())


def _at(error: Invalid, place: str, node: yaml.Node | None) -> FileError:
    return FileError(place, line_of(node, error.field), error.field, error.detail)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
