"""Checks payloads by the schemas that workers announce: of jobs, of steps, of the items of maps, of changes and reruns.

The check accepts in doubt: a task without a schema, a schema that is not understood, a value that is filled in later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foliot.clock import give_way
from foliot.errors import Invalid
from foliot.model.json_schema import invalid
from foliot.model.json_schema_check import Fault, Unknown
from foliot.model.map import MAP_TASK, Map, MapPayload
from foliot.model.namespace import Namespace
from foliot.model.payloads import is_later, is_template, payload_of, within_payload
from foliot.submission.known_tasks import KnownTasks

TURN = 500
# Stands for an item that is not known yet.
LATER: Any = object()


class PayloadChecks:
    def __init__(self, known_tasks: KnownTasks) -> None:
        self._known_tasks = known_tasks

    async def check(
        self, namespace: Namespace, task: str, payload: Mapping[str, Any] | None, *, has_upstream: bool = False
    ) -> None:
        """Raises `Invalid` for a payload that no version of the task takes. With `has_upstream`, references stand for
        results of earlier steps."""
        if task == MAP_TASK:
            await self._check_map_job(namespace, payload or {})
        else:
            await self._check(namespace, task, payload or {}, is_later if has_upstream else is_template)

    async def check_many(self, namespace: Namespace, task: str, payloads: Sequence[Mapping[str, Any]]) -> None:
        """Raises `Invalid`, which names the job by its place."""
        versions = self._known_tasks.versions_of(namespace, task)
        if all(version.checker is None for version in versions):
            return
        if any(version.takes_all(payloads) for version in versions):
            return
        for place, payload in enumerate(payloads):
            if place % TURN == TURN - 1:
                await give_way()
            if self._fault_in(namespace, task, payload or {}, is_template) is None:
                continue
            try:
                await self._check(namespace, task, payload or {}, is_template)
            except Invalid as error:
                raise type(error)(f"jobs[{place}].{error.detail}", field=f"jobs[{place}].{error.field}") from None

    async def check_map(
        self,
        namespace: Namespace,
        task: str,
        payload: Mapping[str, Any] | None,
        over: Map,
        *,
        has_upstream: bool = False,
    ) -> None:
        """The payload of a map's runs, and with it each item that is known."""
        if not self._known_tasks.has_schema(namespace, task):
            return
        unknown = is_later if has_upstream else is_template
        template = dict(payload or {})
        await self._check(
            namespace,
            task,
            {**template, over.item_name: LATER},
            lambda value: value is LATER or unknown(value),
        )
        for place, item in enumerate(_arguments_of(over)):
            if place % TURN == TURN - 1:
                await give_way()
            try:
                await self._check(namespace, task, {**template, over.item_name: item}, unknown)
            except Invalid as error:
                raise _in_item(error, place, over) from None

    async def _check_map_job(self, namespace: Namespace, payload: Mapping[str, Any]) -> None:
        try:
            asked = payload_of(dict(payload), MapPayload)
            task = asked.task_name()
            if task != MAP_TASK:
                await self.check_map(namespace, task, asked.payload_tree(), asked.map)
        except Invalid as error:
            raise within_payload(error) from None

    async def _check(self, namespace: Namespace, task: str, payload: Mapping[str, Any], unknown: Unknown) -> None:
        if self._known_tasks.is_stale(namespace):
            await self._known_tasks.read_again(namespace)
        fault = self._fault_in(namespace, task, payload, unknown)
        # A worker with another version may have started just now.
        if fault is not None and await self._known_tasks.read_again(namespace):
            fault = self._fault_in(namespace, task, payload, unknown)
        if fault is not None:
            raise invalid(fault, "payload")

    def _fault_in(self, namespace: Namespace, task: str, payload: Mapping[str, Any], unknown: Unknown) -> Fault | None:
        """The fault that the latest version finds, if all versions find one."""
        first: Fault | None = None
        versions = self._known_tasks.versions_of(namespace, task)
        for version in versions:
            fault = version.fault_in(payload, unknown)
            if fault is None:
                return None
            first = first or fault
        if first is not None and len(versions) > 1:
            first.message += f" (by the latest of the {len(versions)} versions that run; the others refuse it, too)"
        return first


def _arguments_of(over: Map) -> Iterator[Any]:
    """The argument of each run, as far as it is known. The numbers of a range are alike: the first stands for all."""
    items = over.items if over.range is None else [over.range.start][: over.range.count]
    if over.chunk_size == 1 or items is None:
        yield from items or ()
        return
    for begin in range(0, len(items), over.chunk_size):
        yield items[begin : begin + over.chunk_size]


def _in_item(error: Invalid, place: int, over: Map) -> Invalid:
    """The error with the place of the item."""
    inside = f"payload.{over.item_name}"
    if not error.field.startswith(inside):
        return error
    rest, why = error.field.removeprefix(inside), error.detail.partition(": ")[2]
    field = "map.range" if over.range is not None else f"map.items[{place * over.chunk_size}]"
    if over.range is None and over.chunk_size == 1:
        field += rest
    return type(error)(f"{field}: {why}", field=field)
