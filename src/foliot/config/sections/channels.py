"""Settings of the channels of alerts."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from foliot.config.sections.traces import TracesSettings


class ChannelsSettings(TracesSettings, frozen=True, kw_only=True):
    secret_key: Annotated[
        str,
        Meta(
            description="Key that encrypts the secrets of alert channels: 32 random bytes in base64. Several keys are "
            "separated by commas: the first one encrypts, all decrypt."
        ),
    ] = ""
    secret_key_file: Annotated[str, Meta(description="File that contains `secret_key`.")] = ""
    secret_references: Annotated[
        str,
        Meta(
            description="Secrets that alert channels may refer to, separated by commas, such as `env:SMTP_PASSWORD`, "
            "`env:ALERTS_*` or `file:/run/secrets/*`. Empty: none."
        ),
    ] = ""
    alert_timeout_seconds: Annotated[
        float, Meta(gt=0, le=15, description="How long one delivery to an alert channel may take.")
    ] = 10
