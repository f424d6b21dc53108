"""Namespaces: teams that share an installation and can't see each other.

Whatever is named within a namespace (queues, tasks, recurring jobs, calendars, and keys of all kinds) is stored under its qualified name:
`namespace/name`. So two namespaces can't meet in any key, line, limit or pause, and no statement has to think of them. In the namespace
`default` a name stays as it is, unless it has a slash itself. Queues never have one, so the queue of a run or a job tells whose it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

DEFAULT = "default"
SEPARATOR = "/"

NamespaceName = Annotated[str, Meta(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9_-]*$(?!\n)")]


@dataclass(frozen=True, slots=True)
class Namespace:
    name: str = DEFAULT

    def qualified(self, name: str) -> str:
        """As it is stored."""
        return name if self.name == DEFAULT and SEPARATOR not in name else f"{self.name}{SEPARATOR}{name}"

    def owns(self, qualified: str) -> bool:
        return namespace_of(qualified) == self.name


def namespace_of(qualified: str) -> str:
    namespace, separator, _ = qualified.partition(SEPARATOR)
    return namespace if separator else DEFAULT


def bare(qualified: str) -> str:
    """As its users know it."""
    _, separator, name = qualified.partition(SEPARATOR)
    return name if separator else qualified
