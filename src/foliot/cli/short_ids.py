"""Completes short ids: the beginning of an id stands for it as long as no other id begins so."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from foliot.cli.columns import Column
from foliot.cli.tables import clean, table, word
from foliot.errors import Invalid, NotFound
from foliot.model.ids import PREFIX_MIN, id_range
from foliot.sdk.client import Client
from foliot.sdk.operations import Operations

TOO_SHORT = re.compile(r"[0-9a-f]{2,7}")
RUNS = ("run", "workflow")
WORKFLOWS = ("workflow",)
HEADERS = ("ID", "STATUS", Column("TASK", "text"), Column("NAME", "text"))


def full_id(client: Client, reference: str, kinds: Collection[str] = RUNS) -> str:
    """The id that begins with `reference`. A full id stays as it is, and so does a text that is no id at all.

    Raises `Invalid` if several ids begin so, and lists them; `NotFound` if none does.
    """
    if _is_full(reference):
        return reference
    noun = "workflow" if kinds == WORKFLOWS else "run"
    if id_range(reference) is None:
        if TOO_SHORT.fullmatch(reference):
            raise NotFound(f"{reference}: give at least the first {PREFIX_MIN} digits of the id of the {noun}")
        return reference
    found = _matching(client, reference, kinds)
    if found is None:
        raise NotFound(f"there is no {noun} whose id begins with {reference}")
    return found


def job_reference(client: Client, reference: str) -> str:
    """The id of the recurring job whose id begins with `reference`; otherwise it is taken for a name."""
    if _is_full(reference) or id_range(reference) is None:
        return reference
    return _matching(client, reference, ("job",)) or reference


def any_reference(client: Client, reference: str) -> str:
    """As `job_reference`, for runs and workflows, too."""
    if _is_full(reference) or id_range(reference) is None:
        return reference
    return _matching(client, reference, (*RUNS, "job")) or reference


def worker_id(client: Operations, reference: str) -> str:
    """The id of the live worker whose id begins with `reference`, or that has this name."""
    if _is_full(reference):
        return reference
    workers = client.list_workers().document["items"]
    found = [one for one in workers if one["name"] == reference or str(one["id"]).startswith(reference.lower())]
    if len(found) > 1:
        listed = "\n".join(f"  {one['id']}  {clean(one['name'])}" for one in found)
        raise Invalid(f"{reference}: several workers are meant by this; give more of the id:\n{listed}")
    return str(found[0]["id"]) if found else reference


def _is_full(reference: str) -> bool:
    try:
        UUID(reference)
    except ValueError:
        return False
    return True


def _matching(client: Client, reference: str, kinds: Collection[str]) -> str | None:
    answer = client.find_ids(reference).document
    found = [one for one in answer["items"] if one["kind"] in kinds]
    if len(found) == 1 and not answer["more"]:
        return str(found[0]["id"])
    if not found and not answer["more"]:
        return None
    more = "\n... and more" if answer["more"] else ""
    raise Invalid(f"{reference}: several ids begin so; give more of one of these:\n{_listed(found)}{more}")


def _listed(found: Sequence[Mapping[str, Any]]) -> str:
    return table(HEADERS, [(one["id"], word(one["status"]), one["task"], one["name"] or "") for one in found])
