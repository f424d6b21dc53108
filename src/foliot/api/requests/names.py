"""Names of queues, tasks and calendars in a path."""

from __future__ import annotations

import msgspec

from foliot.errors import Invalid
from foliot.model.namespace import Namespace
from foliot.model.run_request import Name


def stored_name(namespace: Namespace, name: str) -> str:
    """Checks a name, and returns it as it is stored."""
    try:
        return namespace.qualified(msgspec.convert(name, Name))
    except msgspec.ValidationError:
        raise Invalid("name: letters, digits and _ . : - only, 200 at most", field="name") from None
