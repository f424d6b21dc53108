"""Namespaces: teams that share an installation and can't see each other.

Queues, tasks, recurring jobs and calendars are stored under a qualified name, `namespace/name`, and so are the keys of
limits, unique jobs and requests. So two namespaces never share a queue, limit or pause, and no frequent statement has
to check. Names in the namespace `default` stay bare. No name contains a slash, so the queue of a run or a job shows its
namespace. Names are qualified when a request comes in, and made bare when an answer goes out.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT = "default"
SEPARATOR = "/"
# Keys may contain slashes, but not this character.
KEY_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class Namespace:
    name: str = DEFAULT

    def qualified(self, name: str) -> str:
        """The stored form of a name."""
        return name if self.name == DEFAULT else f"{self.name}{SEPARATOR}{name}"

    def qualified_key(self, key: str) -> str:
        return key if self.name == DEFAULT else f"{self.name}{KEY_SEPARATOR}{key}"

    def owns(self, qualified: str) -> bool:
        return namespace_of(qualified) == self.name


def namespace_of(qualified: str) -> str:
    namespace, separator, _ = qualified.partition(SEPARATOR)
    return namespace if separator else DEFAULT


def bare(qualified: str) -> str:
    """A name as users write it."""
    return qualified.rpartition(SEPARATOR)[2]


def bare_key(qualified: str) -> str:
    return qualified.rpartition(KEY_SEPARATOR)[2]
