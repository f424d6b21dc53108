"""The built-in task `wait`: succeeds as soon as it starts.

Its run starts only when the instant or the signal that it waits for has come. Its result is the payload of the signal.
"""

from __future__ import annotations

from typing import Any

import msgspec

from foliot.errors import Invalid
from foliot.model.outcome import Attempted, Ending
from foliot.model.payloads import WaitPayload, payload_of
from foliot.sdk.context import Context
from foliot.worker.executors.base import invalid_payload


async def wait(payload: dict[str, Any], context: Context) -> Attempted:
    try:
        payload_of(payload, WaitPayload)
    except Invalid as error:
        return invalid_payload(error)
    return Attempted(
        Ending.SUCCEEDED, result=None if context.signal is None else msgspec.json.encode(context.signal).decode()
    )
