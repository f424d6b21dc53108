"""The announcement of the tasks of an app, for the checks at submission and for the lists of tasks."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property

from foliot.model.namespace import Namespace
from foliot.sdk.app import App, Task
from foliot.store.announcements import TaskVersion, announcement_of

DESCRIPTION_MAX = 300


@dataclass(frozen=True)
class OwnAnnouncement:
    app: App
    namespace: Namespace

    @cached_property
    def versions(self) -> dict[str, TaskVersion]:
        """By qualified name."""
        return {self.namespace.qualified(name): version_of(task) for name, task in self.app.tasks.items()}

    @cached_property
    def _announced(self) -> tuple[str, str]:
        return announcement_of(self.versions)

    @property
    def text(self) -> str:
        return self._announced[1]

    @property
    def hash(self) -> str:
        return self._announced[0]


def version_of(task: Task) -> TaskVersion:
    documented = inspect.getdoc(task.function) or ""
    return TaskVersion(task.signature.schema, documented.partition("\n")[0][:DESCRIPTION_MAX])
