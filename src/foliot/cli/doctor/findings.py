"""Decides what is wrong with an installation, from its state as a server or the database describes it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from foliot.model.database_advice import of_archive

LAG_SECONDS = 60.0
BEHIND_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Literal["problem", "notice"]
    text: str
    """The trouble."""
    action: str = ""
    """The remedy."""


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    ready: int
    lag_seconds: float
    workers: int
    is_paused: bool


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    is_running: bool
    behind_seconds: float


@dataclass(frozen=True, slots=True)
class Picture:
    """The state of an installation, as far as it is known."""

    schedulers: int
    """Nodes that are alive."""
    unowned_shards: int
    workers: int
    queues: Sequence[Queue] = ()
    outdated: Sequence[str] = ()
    """Processes that do not know the newest migration."""
    exports: Sequence[Export] = ()
    archive_errors: Sequence[str] = ()


def problem(text: str, action: str = "") -> Finding:
    return Finding("problem", text, action)


def notice(text: str, action: str = "") -> Finding:
    return Finding("notice", text, action)


def findings_on(picture: Picture) -> Iterator[Finding]:
    yield from _on_nodes(picture)
    for queue in picture.queues:
        yield from _on_queue(queue, picture.workers)
    for name in picture.outdated:
        yield notice(f"The process {name} is older than the schema.", "Restart it with the new version.")
    for export in picture.exports:
        if not export.is_running and export.behind_seconds > BEHIND_SECONDS:
            yield notice(
                f"Nobody sends the export {export.name}; it stands still.",
                "If it is still wanted, give the scheduler nodes its settings.",
            )
        elif export.behind_seconds > BEHIND_SECONDS:
            yield problem(
                f"The export {export.name} is {export.behind_seconds / 60:.0f} minutes behind.",
                "Look for ServiceFailed and ExportDropped in the log of the scheduler nodes.",
            )
    for one in of_archive(picture.archive_errors, waiting_days=0):
        yield Finding(one.severity, one.text, one.action)


def _on_nodes(picture: Picture) -> Iterator[Finding]:
    if not picture.schedulers:
        yield problem(
            "No scheduler node is alive, so recurring and delayed jobs do not start.", "Start `foliot scheduler`."
        )
    elif picture.unowned_shards:
        yield problem(
            f"{picture.unowned_shards} of the shards belong to no scheduler node, so their jobs do not fire.",
            "Nodes take free shards within seconds. If this stays, look at the log of the scheduler nodes.",
        )
    if not picture.workers:
        yield problem("No worker is alive, so nothing runs.", "Start `foliot worker`.")


def _on_queue(queue: Queue, workers: int) -> Iterator[Finding]:
    if queue.is_paused:
        if queue.ready:
            yield notice(
                f"The queue {queue.name} is paused, and {queue.ready} jobs wait in it.",
                f"`foliot resume --queue {queue.name}` resumes it.",
            )
    elif queue.ready and workers and not queue.workers:
        yield problem(
            f"No worker serves the queue {queue.name}, in which {queue.ready} jobs wait.",
            f"Start a worker with `--queue {queue.name}=10`.",
        )
    elif queue.lag_seconds > LAG_SECONDS:
        yield notice(
            f"The first job in the queue {queue.name} has been due for {queue.lag_seconds:.0f} seconds.",
            "`foliot explain` with the id of a run tells why it waits.",
        )
