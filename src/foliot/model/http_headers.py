"""Checks the headers that a job sets on its request: it may set any header that does not frame or route the message."""

from __future__ import annotations

import re
from collections.abc import Mapping

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,8000}")
# For the OpenAPI document, which does not list the headers that can't be set.
NAMES_FORM = {"propertyNames": {"pattern": f"^{TOKEN.pattern}$"}}
VALUE_FORM = {"pattern": f"^{VALUE.pattern}$"}
OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect"}
)


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises `ValueError`, which a decoder turns into the name of the field."""
    for name, value in headers.items():
        if not TOKEN.fullmatch(name) or name.lower() in OURS or name.lower().startswith("proxy-"):
            raise ValueError(f"`headers`: {name!r} can't be set")
        if not VALUE.fullmatch(value):
            raise ValueError(f"`headers`: the value of {name!r} has invalid characters, or more than 8000")
