"""Maps: one task over many items, one run for each item or chunk of items.

The worker expands a map (worker/executors/workflow.py). The SQL function `foliot.refill` creates the runs of the next
items when runs end, so that at most `CAPACITY` items, or `max_concurrency`, exist at a time.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from foliot.model.field_rules import Rule, exactly_one, field_is
from foliot.model.run_request import RunRequest

OnFailure = Literal["fail_fast", "continue"]
MAP_TASK = "map"
ITEMS_MAX = 100_000_000
CAPACITY = 2_000
"""How many items exist at a time without `max_concurrency`: enough to keep workers busy, and few enough to keep the
table small."""


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers from `start` up to, but not including, `stop`, in steps of `step`."""

    stop: Annotated[int, Meta(ge=-(2**53), le=2**53)]
    start: Annotated[int, Meta(ge=-(2**53), le=2**53)] = 0
    step: Annotated[int, Meta(ge=-(2**53), le=2**53)] = 1

    def __post_init__(self) -> None:
        if self.step == 0:
            raise ValueError("step must not be 0")
        if self.count > ITEMS_MAX:
            raise ValueError(f"a map has at most {ITEMS_MAX:,} items")

    RULES: ClassVar[tuple[Rule, ...]] = (field_is("step", {"not": {"const": 0}}),)

    @property
    def count(self) -> int:
        return len(range(self.start, self.stop, self.step))


class Map(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One run for each item, or for each `chunk_size` items. The item is the argument `item_name`, beside the
    payload."""

    items: list[Any] | None = None
    range: Range | None = None
    result_of: Annotated[str, Meta(description="The upstream step whose result is the list of items.")] | None = None
    chunk_size: Annotated[int, Meta(ge=1, le=100_000)] = 1
    max_concurrency: Annotated[int, Meta(ge=1, le=CAPACITY)] | None = None
    item_name: Annotated[str, Meta(min_length=1, max_length=200)] = "item"
    on_failure: OnFailure = "continue"

    RULES: ClassVar[tuple[Rule, ...]] = (exactly_one("items", "range", "result_of"),)

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.items, self.range, self.result_of)) != 1:
            raise ValueError("give exactly one of `items`, `range` and `result_of`")


class MapPayload(RunRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The payload of the built-in task `map`: the task to run and the items to run it over."""

    map: Map
