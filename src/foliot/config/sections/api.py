"""Settings of the API."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from foliot.config.sections.database import DatabaseSettings
from foliot.config.sections.types import NamespaceName, Seconds


class ApiSettings(DatabaseSettings, frozen=True, kw_only=True):
    host: Annotated[str, Meta(description="Address the API listens on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description="Port the API listens on. 0: any free port.")] = 8000
    body_max_bytes: Annotated[int, Meta(ge=1024, description="Largest request body.")] = 1_048_576
    batch_max_bytes: Annotated[int, Meta(ge=1024, description="Largest request body of `POST /v1/jobs/batch`.")] = (
        33_554_432
    )
    connections_max: Annotated[
        int,
        Meta(
            ge=8,
            le=1_000_000,
            description="Most connections that one API process keeps open; fewer if its limit of open files is lower. "
            "Above it, a new connection replaces the one that has been idle longest, or gets 503 if all are busy.",
        ),
    ] = 2_000
    request_head_max_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1_048_576,
            description="Largest request head (request line and headers). A larger one gets 431.",
        ),
    ] = 32_768
    request_head_seconds: Annotated[
        Seconds, Meta(description="How long a request head may take to arrive before the client gets 408.")
    ] = 10
    request_body_seconds: Annotated[
        Seconds,
        Meta(
            description="How long a body may take to arrive, plus a second for each 64 KiB received, before "
            "the client gets 408."
        ),
    ] = 30
    connection_idle_seconds: Annotated[
        Seconds, Meta(description="How long a connection may stay idle between requests.")
    ] = 30
    response_unread_seconds: Annotated[
        Seconds, Meta(description="How long a client may leave a response unread before its connection is closed.")
    ] = 60
    idempotency_hours: Annotated[
        float,
        Meta(gt=0, le=87_600, description="How long a repeated Idempotency-Key gets the first answer."),
    ] = 24
    namespace: Annotated[
        NamespaceName,
        Meta(description="Namespace whose queues a worker serves, and default namespace of clients."),
    ] = "default"
    tls_certificate_file: Annotated[
        str, Meta(description="PEM file of the API's certificate chain. Empty: plain HTTP.")
    ] = ""
    tls_key_file: Annotated[str, Meta(description="PEM file of the certificate's private key.")] = ""
    plain_http_allowed: Annotated[
        bool,
        Meta(description="Whether the API may serve plain HTTP on a public address, because a proxy does TLS."),
    ] = False
    trusted_proxies: Annotated[
        str,
        Meta(
            description="Addresses and networks of reverse proxies whose X-Forwarded-For is trusted, "
            "separated by commas. Empty: none."
        ),
    ] = ""
    requests_per_second: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Requests per second of one token that one process answers; more get 429. 0: no limit.",
        ),
    ] = 5_000
    public_url: Annotated[
        str,
        Meta(
            max_length=1000,
            pattern=r"^(https?://[^\s]+)?$(?!\n)",
            description="Address at which people reach this server, for links in alerts. Empty: no links.",
        ),
    ] = ""
    ui: Annotated[Literal["on", "off"], Meta(description="Whether the server shows the web UI at `/ui/`.")] = "on"
    ui_path_prefix: Annotated[
        str,
        Meta(
            max_length=200,
            pattern=r"^(/[A-Za-z0-9._~-]+)*$(?!\n)",
            description="Path in front of `/ui/` and `/v1/` at a reverse proxy that removes it, such as `/foliot`.",
        ),
    ] = ""
    audit_retention_days: Annotated[int, Meta(ge=1, le=36_500, description="Days to keep audit records.")] = 90
    log_followers_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Log streams that one process serves at once; more get 429.",
        ),
    ] = 200
    event_followers_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Event streams that one process serves at once; more get 429.",
        ),
    ] = 200
    followers_per_token_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Log and event streams of one token at once; in local open mode, of one address.",
        ),
    ] = 50
    followers_per_namespace_max: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="Log and event streams of one namespace that one process serves at once.",
        ),
    ] = 100
