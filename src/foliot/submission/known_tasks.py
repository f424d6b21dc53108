"""The tasks that jobs may name: workers have announced them, and nobody has disabled them.

The list is cached for a few seconds. A job whose task is disabled meanwhile is refused when a worker claims it: see
`claim_runs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from foliot.clock import Clock
from foliot.config import did_you_mean
from foliot.errors import TaskDisabled, UnknownTask
from foliot.model.map import MAP_TASK
from foliot.model.namespace import Namespace
from foliot.model.run_request import RunRequest
from foliot.store.announcements import TaskVersion
from foliot.store.store import Store
from foliot.store.workers import DeclaredTask
from foliot.submission.task_versions import TaskVersions, Version

FRESH_SECONDS = 5.0
REFUSED_SECONDS = 0.25
"""The age from which the list is read again before a payload is refused by it."""
A = TypeVar("A", bound=RunRequest)


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one namespace, as last read."""

    read_at: float = float("-inf")
    declared: Mapping[str, DeclaredTask] = field(default_factory=dict)
    disabled: frozenset[str] = frozenset()


NOTHING = Tasks()


class KnownTasks:
    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, Tasks] = {}
        self._versions = TaskVersions(store.announcements)

    async def queue_of(self, namespace: Namespace, task: str) -> str:
        """The queue that the task declares. Raises `TaskDisabled`, or `UnknownTask` for a task that no worker of the
        namespace has announced: its job could never run."""
        known = self._known.get(namespace.name, NOTHING)
        if task not in known.declared or self._clock.monotonic() - known.read_at > FRESH_SECONDS:
            known = await self._read(namespace, known)
        if task in known.disabled:
            raise disabled(namespace, task)
        try:
            return known.declared[task].queue
        except KeyError:
            raise unknown_task(task, known.declared) from None

    async def tags_of(self, namespace: Namespace, task: str) -> tuple[str, ...] | None:
        """The tags that the task gives to jobs without tags of their own. Raises as `queue_of` does."""
        await self.queue_of(namespace, task)
        return self._known[namespace.name].declared[task].tags

    def with_declared(self, namespace: Namespace, asked: A) -> A:
        """The job or step with the tags that its task declares, unless it has its own. Call `queue_of` first."""
        if asked.tags is not None:
            return asked
        return with_tags(asked, self._known[namespace.name].declared[asked.task_name()])

    def versions_of(self, namespace: Namespace, task: str, *, is_live: bool = False) -> tuple[Version, ...]:
        """The versions of the task that live workers run, as last read. Without such a worker, the version announced
        last, unless `is_live` asks for live ones only. Empty: nothing is known of its payloads."""
        declared = self._known.get(namespace.name, NOTHING).declared.get(task)
        if declared is None or declared.announcement is None:
            return ()
        return self._versions.of(namespace.qualified(task), declared.announcement, is_live=is_live)

    def said_by(self, namespace: Namespace, task: str, announcement: str | None) -> TaskVersion | None:
        """The task as an announcement describes it. None: it does not."""
        return self._versions.said_by(namespace.qualified(task), announcement)

    def is_disabled(self, namespace: Namespace, task: str) -> bool:
        """As last read."""
        return task in self._known.get(namespace.name, NOTHING).disabled

    def has_versions(self, namespace: Namespace, task: str) -> bool:
        """Whether anything is known of the payloads of the task."""
        declared = self._known.get(namespace.name, NOTHING).declared.get(task)
        return declared is not None and declared.announcement is not None

    def has_schema(self, namespace: Namespace, task: str) -> bool:
        return any(version.checker is not None for version in self.versions_of(namespace, task))

    def is_stale(self, namespace: Namespace) -> bool:
        read_at = self._known.get(namespace.name, NOTHING).read_at
        return self._clock.monotonic() - read_at > FRESH_SECONDS

    async def read_again(self, namespace: Namespace) -> bool:
        """Reads the list again, unless it is new. False: it is."""
        known = self._known.get(namespace.name, NOTHING)
        if self._clock.monotonic() - known.read_at < REFUSED_SECONDS:
            return False
        await self._read(namespace, known)
        return True

    async def refuse_disabled(self, namespace: Namespace, task: str) -> None:
        """Raises `TaskDisabled`. For runs that do not need the queue of their task."""
        known = self._known.get(namespace.name, NOTHING)
        if self._clock.monotonic() - known.read_at > FRESH_SECONDS:
            known = await self._read(namespace, known)
        if task in known.disabled:
            raise disabled(namespace, task)

    async def refuse_disabled_items(self, namespace: Namespace, task: str, payload: Mapping[str, Any] | None) -> None:
        """Raises `TaskDisabled` for the task of a map's items."""
        if task == MAP_TASK and payload is not None:
            named = "shell" if "command" in payload else payload.get("task") or payload.get("job_type")
            if isinstance(named, str):
                await self.refuse_disabled(namespace, named)

    def forget(self) -> None:
        """Clears the cache, after a task was disabled or enabled."""
        self._known.clear()

    async def _read(self, namespace: Namespace, known: Tasks) -> Tasks:
        now = self._clock.monotonic()
        # Only one caller reads; the others use the cached list meanwhile.
        self._known[namespace.name] = Tasks(now, known.declared, known.disabled)
        await self._versions.read()
        disabled = await self._store.disabled_tasks.list_disabled_tasks(namespace.name)
        found = Tasks(now, await self._store.workers.list_tasks(namespace), frozenset(one.task for one in disabled))
        self._known[namespace.name] = found
        return found


def with_tags(asked: A, declared: DeclaredTask) -> A:
    """The job or step with the tags of its task, unless it has tags of its own."""
    if asked.tags is not None or declared.tags is None:
        return asked
    return msgspec.structs.replace(asked, tags=declared.tags)


def unknown_task(task: str, declared: Mapping[str, DeclaredTask]) -> UnknownTask:
    return UnknownTask(f"task: no worker knows a task named {task!r}{did_you_mean(task, declared)}", field="task")


def disabled(namespace: Namespace, task: str) -> TaskDisabled:
    return TaskDisabled(
        f"task: {task!r} is disabled in the namespace {namespace.name!r}; `foliot tasks --disabled` says by whom and "
        f"why",
        field="task",
    )
