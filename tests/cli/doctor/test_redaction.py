"""Secrets are removed from a report, wherever they appear."""

from __future__ import annotations

from foliot.cli.doctor.redaction import redacted, secrets_of
from foliot.config import Config


def test_secrets_are_hidden_wherever_they_appear() -> None:
    config = Config(
        database_url="postgresql://me:p%40ss%2Fw0rd@db/x", otel_endpoint="http://c:4318", otel_headers="key=topsecret"
    )
    secrets = secrets_of(config)
    assert redacted({"a": ["login p@ss/w0rd failed for key=topsecret", "topsecret", 7, None]}, secrets) == {
        "a": ["login *** failed for ***", "***", 7, None]
    }
    assert redacted("p%40ss%2Fw0rd", secrets) == "***"
