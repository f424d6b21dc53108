"""The versions of tasks that workers run now, with a compiled check of the payloads that each takes.

Workers of different code may run at the same time. A payload is fine if one version takes it: the worker decides last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from foliot.model.json_schema import Checker, UnusableSchema
from foliot.model.json_schema_check import Fault, Unknown
from foliot.store.announcements import Announcements, TaskVersion

CHECKERS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Version:
    """A version of one task."""

    said: TaskVersion
    checker: Checker | None
    """None: nothing is known of its payloads."""

    def fault_in(self, payload: Mapping[str, object], unknown: Unknown | None) -> Fault | None:
        return None if self.checker is None else self.checker.fault_in(payload, unknown=unknown)

    def takes_all(self, payloads: Sequence[Mapping[str, object]]) -> bool:
        """False: perhaps not."""
        return self.checker is None or self.checker.takes_all(payloads)


class TaskVersions:
    """Keeps what has been announced. `read` brings it up to date; the rest costs no query."""

    def __init__(self, announcements: Announcements) -> None:
        self._announcements = announcements
        self._contents: dict[str, Mapping[str, TaskVersion]] = {}
        self._live: frozenset[str] = frozenset()
        self._found: dict[tuple[str, str, bool], tuple[Version, ...]] = {}
        self._checkers: dict[bytes, Checker | None] = {}

    async def read(self) -> None:
        found = await self._announcements.list_announcements(self._contents.keys())
        contents = {
            one.hash: self._contents[one.hash] if one.tasks is None else one.tasks
            for one in found
            if one.tasks is not None or one.hash in self._contents
        }
        live = frozenset(one.hash for one in found if one.is_live)
        if live != self._live or contents.keys() != self._contents.keys():
            self._found.clear()
        self._contents, self._live = contents, live

    def of(self, task: str, latest: str, *, is_live: bool = False) -> tuple[Version, ...]:
        """The versions of live workers, by the qualified name of the task, the latest one first. If no live worker has
        the task, the version of its latest announcement, unless `is_live`. Empty: nothing is known."""
        key = task, latest, is_live
        if key not in self._found:
            self._found[key] = self._versions(task, latest, is_live=is_live)
        return self._found[key]

    def said_by(self, task: str, announcement: str | None) -> TaskVersion | None:
        """The task as an announcement describes it. None: it does not, or it is not known."""
        return self._contents.get(announcement or "", {}).get(task)

    def _versions(self, task: str, latest: str, *, is_live: bool) -> tuple[Version, ...]:
        if not self._live <= self._contents.keys():
            # A worker refers to an announcement that is lost.
            return ()
        latest_first = sorted(self._live, key=lambda one: (one != latest, one))
        said = [self._contents[one][task] for one in latest_first if task in self._contents[one]]
        if not said and not is_live and task in self._contents.get(latest, ()):
            said = [self._contents[latest][task]]
        versions: dict[bytes, Version] = {}
        for one in said:
            text = msgspec.json.encode(one.schema)
            versions.setdefault(text, Version(one, self._checker(text, one)))
        return tuple(versions.values())

    def _checker(self, text: bytes, said: TaskVersion) -> Checker | None:
        if text not in self._checkers:
            if len(self._checkers) >= CHECKERS_MAX:
                self._checkers.clear()
            try:
                self._checkers[text] = None if said.schema is None else Checker.of(said.schema)
            except UnusableSchema:
                self._checkers[text] = None
        return self._checkers[text]
