"""Circuit breakers of tasks."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.names import stored_name
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.store.circuit_breaker import CircuitState
from foliot.store.hints import ALL_QUEUES_TOPIC, GATES_TOPIC
from foliot.store.store import Store


class CircuitList(msgspec.Struct, frozen=True):
    items: list[CircuitState]


def circuits_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["limits and pauses"], route_class=PermissionRoute)
    closes = described(200, CircuitList, problems=(422, 503))

    async def circuits_of(namespace: Namespace) -> Response:
        found = [circuit for circuit in await store.circuit_breaker.list_circuits() if namespace.owns(circuit.task)]
        return json_response(CircuitList([replace(circuit, task=bare(circuit.task)) for circuit in found]))

    @router.get("/v1/circuits", openapi_extra=described(200, CircuitList))
    @requires(Permission.VIEW)
    async def list_circuits(namespace: Within) -> Response:
        """Lists the tasks whose last run failed: how often in a row, and until when the circuit is open."""
        return await circuits_of(namespace)

    @router.post("/v1/circuits/{name}/close", openapi_extra=closes)
    @requires(Permission.OPERATE)
    async def close_circuit(name: str, namespace: Within) -> Response:
        """Closes the circuit of a task and forgets its failures: its runs start again at once, without a probe.
        Closing a circuit that is not open changes nothing."""
        await store.circuit_breaker.close_circuit(stored_name(namespace, name))
        store.hints.send([GATES_TOPIC, ALL_QUEUES_TOPIC])
        return await circuits_of(namespace)

    return router
