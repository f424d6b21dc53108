"""The size of a page."""

from __future__ import annotations

from foliot.errors import Invalid

PAGE_MAX = 200


def at_most(number: int, most: int, field: str) -> int:
    """Raises `Invalid` for a number below 1 or above `most`."""
    if not 1 <= number <= most:
        raise Invalid(f"{field}: must be between 1 and {most}", field=field)
    return number


def page_size(limit: int) -> int:
    return at_most(limit, PAGE_MAX, "limit")
