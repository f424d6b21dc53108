"""Types that several settings share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

NamespaceName = Annotated[str, Meta(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9_-]*$(?!\n)")]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
