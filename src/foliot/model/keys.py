"""The keys that users choose for limits, fairness and uniqueness."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from foliot.validation_errors import form

# No control characters: one of them separates a namespace from the key (see `namespace.KEY_SEPARATOR`).
KEY = form(r"^[^\x00-\x1f]*$(?!\n)", "have no control characters")
Key = Annotated[str, Meta(min_length=1, max_length=200, pattern=KEY)]
