"""Patterns of parameters and headers for the OpenAPI document, derived from their parsers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foliot.api.requests.parameters import TEXT_MAX, WORDS
from foliot.model.text_patterns import TIME_FORM

UUID_FORM = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
NAME_FORM = r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}"
# A position in a list of runs: microseconds since 1970, and the id of a run.
PLACE_FORM = rf"[0-9]{{1,16}}\.{UUID_FORM}"
# A duration before now, short enough to end after 1970.
AGO_FORM = r"(?:[1-9][0-9]?w|[1-9][0-9]{0,3}d|[1-9][0-9]{0,4}h|[1-9][0-9]{0,5}m|[1-9][0-9]{0,7}s?)"
# PostgreSQL can't store NUL.
STORABLE = {"pattern": r"^[^\u0000]*$"}
TEXT = STORABLE | {"maxLength": TEXT_MAX}
INSTANT = {"pattern": f"^(?:{TIME_FORM}|{AGO_FORM})?$"}

# Values in payloads: the path of a field, a colon, and the value.
PAYLOAD_VALUE = r"^[^:\u0000]{1,200}:[^\u0000]*$"
PAYLOAD_VALUES = {"items": {"type": "string", "pattern": PAYLOAD_VALUE, "maxLength": TEXT_MAX}, "maxItems": 10}


def words(known: Iterable[str]) -> dict[str, Any]:
    """A list of these words, separated by commas."""
    one = "|".join(sorted(known))
    return {"pattern": f"^(?:(?:{one})(?:,(?:{one}))*)?$"}


STATES = words(WORDS)


def optional(form: str) -> dict[str, Any]:
    """A text of this form, or an empty one, which counts as not given."""
    return {"pattern": f"^(?:{form})?$"}


ALERT_STATES = optional("(?:(?:pending|open|resolved)(?:,|$))*")
RULE_NAME = optional("[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")
