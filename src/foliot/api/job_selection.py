"""Selects several recurring jobs by a filter."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.errors import Conflict, Invalid
from foliot.model.field_rules import Rule, any_given, any_of, field_is, given
from foliot.model.namespace import Namespace, bare
from foliot.model.run import Tag
from foliot.model.run_request import Name
from foliot.store.store import Store

MOST = 1000
COUNT_MAX = 9_007_199_254_740_991
LIKE_WORDS = {"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": r"\\"}
# A request that changes something says how many it expects to change.
IS_COUNTED = any_of(given("expected"), field_is("dry_run", {"const": True}, required=True))


class GroupRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Selects jobs by at least one of `name`, `task`, `queue` and `tag`. `dry_run` counts them and changes nothing;
    `expected` is that count."""

    name: (
        Annotated[str, Meta(min_length=1, max_length=200, description="A pattern: * is anything, ? is one character.")]
        | None
    ) = None
    task: Name | None = None
    queue: Name | None = None
    tag: Tag | None = None
    dry_run: bool = False
    expected: (
        Annotated[int, Meta(ge=0, le=COUNT_MAX, description="If another number of jobs matches, nothing changes: 409.")]
        | None
    ) = None

    RULES: ClassVar[tuple[Rule, ...]] = (any_given("name", "task", "queue", "tag"),)


def refuse_empty(asked: GroupRequest) -> None:
    if asked.name is None and asked.task is None and asked.queue is None and asked.tag is None:
        raise Invalid("name: give name, task, queue or tag to select jobs; the name * selects all", field="name")


async def matched_jobs(
    store: Store, namespace: Namespace, asked: GroupRequest, *, is_paused: bool | None
) -> list[tuple[UUID, str]]:
    """The id and name of the jobs that match; with `is_paused` None, paused or not. Raises `Conflict` if their
    number is not the expected one."""
    pattern = None if asked.name is None else like(namespace.qualified(asked.name))
    task = None if asked.task is None else namespace.qualified(asked.task)
    queue = None if asked.queue is None else namespace.qualified(asked.queue)
    whole_name = None if asked.name is None or set(asked.name) & set("*?") else namespace.qualified(asked.name)
    matched = await store.jobs.match_jobs(
        namespace, pattern, task, queue, asked.tag, is_paused=is_paused, limit=MOST + 1, whole_name=whole_name
    )
    if len(matched) > MOST:
        raise Invalid(f"name: more than {MOST} jobs match; use a narrower filter", field="name")
    if asked.expected is not None and asked.expected != len(matched):
        raise Conflict(f"expected: {len(matched)} jobs match now, not {asked.expected}; nothing was changed")
    return [(job_id, bare(name)) for job_id, name in matched]


def like(pattern: str) -> str:
    """The pattern for SQL's LIKE. Raises `Invalid` for a NUL."""
    if "\0" in pattern:
        raise Invalid("name: the character NUL is in no name", field="name")
    return re.sub(r"[*?%_\\]", lambda found: LIKE_WORDS[found[0]], pattern)
