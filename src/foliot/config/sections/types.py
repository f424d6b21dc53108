"""Types that several settings share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from foliot.validation_errors import form

NAMESPACE = form(
    r"^[a-z0-9][a-z0-9_-]*$(?!\n)", "consist of lower-case letters, digits and _ -, and begin with a letter or a digit"
)
NamespaceName = Annotated[str, Meta(min_length=1, max_length=63, pattern=NAMESPACE)]
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
