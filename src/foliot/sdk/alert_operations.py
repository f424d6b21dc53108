"""Alerts over the API, for the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foliot.sdk.http_protocol import Answer, path_of
from foliot.sdk.operations import Operations

RULES, ALERTS, SILENCES = "/v1/alert-rules", "/v1/alerts", "/v1/alert-silences"


class AlertOperations(Operations):
    def list_alert_rules(self) -> Answer:
        return self._answer("GET", RULES)

    def get_alert_rule(self, name: str) -> Answer:
        return self._answer("GET", path_of(name, root=RULES, kind="alert rule"))

    def put_alert_rule(self, name: str, rule: Mapping[str, Any]) -> Answer:
        """Creates a rule, or replaces it."""
        return self._answer("PUT", path_of(name, root=RULES, kind="alert rule"), rule)

    def delete_alert_rule(self, name: str) -> None:
        self._send("DELETE", path_of(name, root=RULES, kind="alert rule"))

    def list_alerts(self, filters: Mapping[str, str], *, limit: int) -> Answer:
        """Lists up to `limit` alerts, latest first, as a single page."""
        return self._list(ALERTS, filters, limit)

    def get_alert(self, alert_id: str) -> Answer:
        return self._answer("GET", path_of(alert_id, root=ALERTS, kind="alert"))

    def acknowledge_alert(self, alert_id: str, note: Mapping[str, str]) -> Answer:
        return self._answer("POST", path_of(alert_id, "/acknowledge", root=ALERTS, kind="alert"), note)

    def resolve_alert(self, alert_id: str) -> Answer:
        return self._answer("POST", path_of(alert_id, "/resolve", root=ALERTS, kind="alert"))

    def list_silences(self) -> Answer:
        return self._answer("GET", SILENCES)

    def create_silence(self, silence: Mapping[str, str]) -> Answer:
        return self._answer("POST", SILENCES, silence)

    def delete_silence(self, silence_id: str) -> None:
        self._send("DELETE", path_of(silence_id, root=SILENCES, kind="silence"))

    def list_heartbeats(self) -> Answer:
        return self._answer("GET", "/v1/heartbeats")
