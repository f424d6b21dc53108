"""Renders the placeholders of a payload when an attempt starts. See `model/rendering.py` for the rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foliot.model.namespace import bare, namespace_of
from foliot.model.payloads import LEAVES
from foliot.model.rendering import has_templates, render_payload
from foliot.model.run import Claim, RunOptions
from foliot.model.templates import OPENING, Unrenderable
from foliot.sdk.context import Context
from foliot.worker.upstream_results import AttemptRefused, resolve


def has_placeholders(claim: Claim, options: RunOptions) -> bool:
    return claim.payload is not None and OPENING in claim.payload and has_templates(bare(claim.task), options.templates)


def rendered(
    claim: Claim, options: RunOptions, context: Context, raw: Mapping[str, Any], payload: Mapping[str, Any]
) -> dict[str, Any]:
    """The payload with its placeholders rendered; `raw` is the payload before its references to results were resolved.

    Results may hold braces of their own, so they are resolved after the rendering. Raises `AttemptRefused`.
    """
    try:
        found = render_payload(context.task, raw, values_of(claim, context, payload), skip=options.item)
    except Unrenderable as error:
        raise AttemptRefused("TemplateError", str(error)) from None
    if options.item is not None and is_no_field(context.task, options.item):
        # Only the placeholders use it.
        found.pop(options.item, None)
    return resolve(context.task, found, context.upstream) if context.upstream else found


def values_of(claim: Claim, context: Context, payload: Mapping[str, Any]) -> dict[str, Any]:
    tick = context.tick
    return {
        "scheduled_for": tick and tick.at,
        "previous_tick": tick and tick.previous,
        "next_tick": tick and tick.next,
        "timezone": tick and tick.timezone,
        "job": tick and tick.job,
        "is_backfill": context.is_backfill,
        "run_id": str(claim.run_id),
        "attempt": claim.attempt,
        "task": context.task,
        "queue": bare(claim.queue),
        "namespace": namespace_of(claim.queue),
        "payload": payload,
        "results": context.upstream,
        "signal": context.signal,
    }


def is_no_field(task: str, name: str) -> bool:
    """Whether a built-in task has no field of this name."""
    return task in LEAVES and name not in LEAVES[task].__struct_encode_fields__
