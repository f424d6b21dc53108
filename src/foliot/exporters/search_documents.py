"""Turns ended runs and the lines of their output into documents for a search engine. Pure.

The id of a document follows from run, attempt and line, and its index from the day. So a document that is sent again
replaces itself. JSON of users is stored as text that is not indexed, so that it can't add fields to the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from foliot.model.archive import Kind

Row = Mapping[str, Any]
KEYWORD = {"type": "keyword", "ignore_above": 1024}
TEXT = {"type": "text"}
NUMBER = {"type": "long"}
TIME = {"type": "date"}
NOT_INDEXED = {"type": "text", "index": False}
RUN_FIELDS: Mapping[str, Any] = {
    "@timestamp": TIME, "id": KEYWORD, "namespace": KEYWORD, "name": KEYWORD, "task": KEYWORD, "queue": KEYWORD,
    "state": KEYWORD, "reason": KEYWORD, "priority": NUMBER, "attempt": NUMBER, "lost": NUMBER, "worker_id": KEYWORD,
    "job_id": KEYWORD, "tick_at": TIME, "parent_id": KEYWORD, "step": KEYWORD, "rerun_of": KEYWORD,
    "fingerprint": KEYWORD, "tags": KEYWORD, "created_at": TIME, "due_at": TIME, "started_at": TIME,
    "finished_at": TIME, "seconds": {"type": "double"}, "error_kind": KEYWORD, "error_message": TEXT,
    "error": NOT_INDEXED, "payload": NOT_INDEXED, "result": NOT_INDEXED,
}  # fmt: skip
LINE_FIELDS: Mapping[str, Any] = {
    "@timestamp": TIME, "run_id": KEYWORD, "namespace": KEYWORD, "name": KEYWORD, "task": KEYWORD, "queue": KEYWORD,
    "token": NUMBER, "attempt": NUMBER, "worker_id": KEYWORD, "outcome": KEYWORD, "line": NUMBER, "message": TEXT,
}  # fmt: skip
FIELDS_OF = {"runs": RUN_FIELDS, "logs": LINE_FIELDS}
COPIED = [
    "id", "namespace", "name", "task", "queue", "state", "reason", "priority", "attempt", "lost", "worker_id",
    "job_id", "tick_at", "parent_id", "step", "rerun_of", "fingerprint", "created_at", "due_at", "started_at",
    "finished_at", "error", "payload", "result",
]  # fmt: skip
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    lines: bytes
    """Two lines of a bulk request: the action, and the document."""


def documents_of(kind: Kind, row: Row, prefix: str) -> Iterator[Document]:
    """The documents of an ended run, or of an attempt before the last one."""
    if kind == "runs":
        yield _document(f"{prefix}-runs", str(row["id"]), _run(row))
        yield from _output(row, row["id"], row["state"], prefix)
    else:
        yield from _output(row, row["run_id"], row["outcome"], prefix)


def batches_of(documents: Iterable[Document], most: int, most_bytes: int) -> Iterator[list[Document]]:
    """Batches with bounded numbers and bytes. A larger document has a batch of its own."""
    batch: list[Document] = []
    size = 0
    for one in documents:
        if batch and (len(batch) >= most or size + len(one.lines) > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one.lines)
    if batch:
        yield batch


def template_of(kind: str, prefix: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A composable index template. Fields that it does not name are stored and not indexed."""
    return {
        "index_patterns": [f"{prefix}-{kind}-*"],
        "priority": 200,
        "template": {
            "settings": {"number_of_shards": 1, "auto_expand_replicas": "0-1", **settings},
            "mappings": {"dynamic": False, "properties": FIELDS_OF[kind]},
        },
    }


def ilm_policy(days: int) -> dict[str, Any]:
    """A policy of Elasticsearch."""
    phases = {"hot": {"actions": {}}, "delete": {"min_age": f"{days}d", "actions": {"delete": {}}}}
    return {"policy": {"phases": phases}}


def ism_policy(prefix: str, days: int) -> dict[str, Any]:
    """A policy of OpenSearch."""
    deleting = {"state_name": "deleted", "conditions": {"min_index_age": f"{days}d"}}
    return {
        "policy": {
            "description": f"Deletes the indexes of Foliot after {days} days.",
            "default_state": "kept",
            "states": [
                {"name": "kept", "actions": [], "transitions": [deleting]},
                {"name": "deleted", "actions": [{"delete": {}}], "transitions": []},
            ],
            "ism_template": [{"index_patterns": [f"{prefix}-runs-*", f"{prefix}-logs-*"], "priority": 200}],
        }
    }


def _run(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {name: row[name] for name in COPIED if row[name] is not None}
    found["@timestamp"] = row["finished_at"]
    if row["started_at"] is not None:
        found["seconds"] = (row["finished_at"] - row["started_at"]).total_seconds()
    if row["tags"] is not None:
        found["tags"] = decode(row["tags"])
    error = decode(row["error"]) if row["error"] is not None else None
    if isinstance(error, dict):
        found["error_kind"], found["error_message"] = str(error.get("kind", "")), str(error.get("message", ""))
    return found


def _output(row: Row, run_id: Any, outcome: str, prefix: str) -> Iterator[Document]:
    if not row["output"]:
        return
    # An attempt before the last one knows its run by the id only.
    about = {name: row[name] for name in ("name", "task", "queue") if row.get(name) is not None}
    about |= {
        "@timestamp": row["finished_at"], "run_id": run_id, "namespace": row["namespace"], "token": row["token"],
        "attempt": row["attempt"], "worker_id": row["worker_id"], "outcome": outcome,
    }  # fmt: skip
    for number, line in enumerate(bytes(row["output"]).split(b"\n"), 1):
        if message := line.decode("utf-8", "replace").rstrip("\r"):
            name = f"{run_id}-{row['token']}-{number}"
            yield _document(f"{prefix}-logs", name, about | {"line": number, "message": message})


def _document(index: str, name: str, content: Mapping[str, Any]) -> Document:
    at: datetime = content["@timestamp"]
    action = {"index": {"_index": f"{index}-{at.astimezone(UTC):%Y.%m.%d}", "_id": name}}
    return Document(name, encode(action) + b"\n" + encode(content) + b"\n")
