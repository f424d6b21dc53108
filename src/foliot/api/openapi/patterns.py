"""How the texts in parameters and headers look, as patterns for the API's document: made from what reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foliot.api.requests.parameters import TEXT_MAX, WORDS
from foliot.model.text_patterns import TIME_FORM

UUID_FORM = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
# The place of a run in an order: microseconds since 1970, and its id.
PLACE_FORM = rf"[0-9]{{1,16}}\.{UUID_FORM}"
# How long ago: no longer than there has been time in this sense.
AGO_FORM = r"(?:[1-9][0-9]?w|[1-9][0-9]{0,3}d|[1-9][0-9]{0,4}h|[1-9][0-9]{0,5}m|[1-9][0-9]{0,7}s?)"
# Nothing that is stored holds the character NUL.
STORABLE = {"pattern": r"^[^\u0000]*$"}
TEXT = STORABLE | {"maxLength": TEXT_MAX}
INSTANT = {"pattern": f"^(?:{TIME_FORM}|{AGO_FORM})?$"}


def words(known: Iterable[str]) -> dict[str, Any]:
    """Some of them, with commas between."""
    one = "|".join(sorted(known))
    return {"pattern": f"^(?:(?:{one})(?:,(?:{one}))*)?$"}


STATES = words(WORDS)


def optional(form: str) -> dict[str, Any]:
    """Of this form, or empty, which is the same as not given."""
    return {"pattern": f"^(?:{form})?$"}
