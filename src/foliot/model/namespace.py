"""Namespaces: teams that share an installation and can't see each other.

Whatever is named within a namespace (queues, tasks, recurring jobs, calendars) is stored under its qualified name,
`namespace/name`, and its keys (of limits, of uniqueness, of requests) likewise. So two namespaces can't meet in any
line, limit or pause, and no statement of the hot path has to think of them. In the namespace `default` a name stays as
it is. No name has a slash, so the queue of a run or a job tells whose it is. Names are qualified where a request comes
in, and made bare where an answer goes out.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT = "default"
SEPARATOR = "/"
# Keys may have slashes; this character they may not have.
KEY_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class Namespace:
    name: str = DEFAULT

    def qualified(self, name: str) -> str:
        """A name as it is stored."""
        return name if self.name == DEFAULT else f"{self.name}{SEPARATOR}{name}"

    def qualified_key(self, key: str) -> str:
        return key if self.name == DEFAULT else f"{self.name}{KEY_SEPARATOR}{key}"

    def owns(self, qualified: str) -> bool:
        return namespace_of(qualified) == self.name


def namespace_of(qualified: str) -> str:
    namespace, separator, _ = qualified.partition(SEPARATOR)
    return namespace if separator else DEFAULT


def bare(qualified: str) -> str:
    """A name as its users know it."""
    return qualified.rpartition(SEPARATOR)[2]


def bare_key(qualified: str) -> str:
    return qualified.rpartition(KEY_SEPARATOR)[2]
