"""`GET /metrics` for Prometheus. `observability/metrics.py` defines the metrics."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.security.permissions import PermissionRoute, requires
from foliot.clock import Clock
from foliot.config import Config
from foliot.model.roles import Permission
from foliot.observability.metrics import MetricsPage
from foliot.store.store import Store


def metrics_router(*, store: Store, config: Config, clock: Clock) -> APIRouter:
    router = APIRouter(tags=["overview"], route_class=PermissionRoute)
    page = MetricsPage(store=store, config=config, clock=clock)
    shows = described(200, str, media=("text/plain", "application/openmetrics-text"))

    @router.get("/metrics", operation_id="get_metrics", openapi_extra=shows)
    @requires(Permission.VIEW, everywhere=True)
    async def metrics(request: Request) -> Response:
        """Shows counters, histograms and gauges in the Prometheus text format, or as OpenMetrics if the client accepts
        that."""
        content, content_type = await page.render(request.headers.get("accept", ""))
        return Response(content, headers={"Content-Type": content_type})

    return router
