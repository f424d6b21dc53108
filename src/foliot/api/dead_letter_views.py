"""Dead letters and their groups as the API shows them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from foliot.model.namespace import bare
from foliot.store.dead_letters import DeadGroup, DeadLetter

LOOK_BACK = timedelta(days=7)
GROUP_SCAN_MAX = 50_000
Found = TypeVar("Found", DeadLetter, DeadGroup)


def with_bare_names(found: Found) -> Found:
    return replace(found, task=bare(found.task), queue=bare(found.queue))
