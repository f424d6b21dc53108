"""The address and the headers of the OpenTelemetry collector, and the template of links to traces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from foliot.config.sections.traces import TracesSettings

HEADER_NAME = re.compile(r"[A-Za-z0-9_.-]+")
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
IN_A_LINK = ("trace_id", "span_id", "run_id")


def check_otlp(settings: TracesSettings) -> None:
    """Raises `ValueError` with the name of the setting."""
    if settings.otel_endpoint:
        _check_endpoint(settings.otel_endpoint)
    headers_of(settings.otel_headers)
    template = settings.trace_url_template
    if template and not template.startswith(("http://", "https://")):
        raise ValueError("trace_url_template must begin with http:// or https://")
    for name in PLACEHOLDER.findall(template):
        if name not in IN_A_LINK:
            known = ", ".join(f"{{{word}}}" for word in IN_A_LINK)
            raise ValueError(f"trace_url_template: {{{name}}} is unknown; write {known}")


def headers_of(text: str) -> dict[str, str]:
    """The headers of `name=value,name=value`, with lower-case names. Raises `ValueError` without quoting a value."""
    headers = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, is_pair, value = part.partition("=")
        if not is_pair or not HEADER_NAME.fullmatch(name.strip()) or not HEADER_VALUE.fullmatch(value):
            raise ValueError("otel_headers must look like name=value,name=value")
        headers[name.strip().lower()] = value.strip()
    return headers


def _check_endpoint(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query
        is_usable = is_usable and parts.username is None and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        # Do not quote it: it may contain a password.
        raise ValueError(
            "otel_endpoint must look like http://collector:4318, without a user or password; "
            "give credentials as otel_headers"
        )
