"""Computes the schemas of the application's types once for all applications of a test process."""

from __future__ import annotations

import functools
from typing import Any

from foliot.api.openapi import operations


def work_out_schemas_once() -> None:
    """They dominate the cost of building an application. A server builds one, a test run a thousand."""
    work_out = operations._schema

    @functools.cache
    def of(kinds: tuple[Any, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
        components: dict[str, Any] = {}
        return work_out(kinds, components), components

    def schema(kinds: tuple[Any, ...], components: dict[str, Any]) -> dict[str, Any]:
        found, named = of(kinds)
        components.update(named)
        return found

    operations._schema = schema
