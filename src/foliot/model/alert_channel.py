"""The configuration of alert channels, one type for each kind.

A field named in `SECRETS` holds a secret, or a reference to one (`env:NAME`, `file:/path`). The fields in `DESTINATION`
decide who gets the secrets: while they stay as they are, `***` in a request means the stored secret.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from foliot.errors import Invalid
from foliot.model.templates import TemplateError, check_text
from foliot.model.urls import check_url
from foliot.validation_errors import form

HIDDEN = "***"
REFERENCES = ("env:", "file:")
SIGNING_PREFIX = "whsec_"
TEXT_NAMES = {
    "title": False, "summary": False, "event": False, "severity": False, "namespace": False, "rule": False,
    "since": True, "resolved_at": True, "count": False, "subjects": False, "log_tail": False, "link": False,
    "alert_id": False,
}  # fmt: skip
"""The names that `title` and `body` may use, and whether each is a time."""
MAY_BE_EMPTY = "resolved_at"
ADDRESS = r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$(?!\n)"
# As the API's document describes it; names in other letters than ASCII are taken too.
URL_FORM = r"^https?://(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[::1\])(?::[0-9]{1,4})?(?:[/?#][!-~]*)?$"
HOST = form(
    r"^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,250}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45})$(?!\n)", "be a host name or an address"
)

NAME = form(
    r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$(?!\n)",
    "consist of letters, digits and _ . -, and begin with a letter, a digit or _",
)
Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=NAME)]
Template = Annotated[str, Meta(min_length=1, max_length=10_000)]
SECRET = form(
    r"^[!-~](?:[ -~]*[!-~])?$(?!\n)",
    "consist of printable ASCII characters, without a space at either end",
)
Secret = Annotated[str, Meta(min_length=1, max_length=4000, pattern=SECRET)]
Url = Annotated[str, Meta(min_length=1, max_length=2000, extra_json_schema={"format": "uri", "pattern": URL_FORM})]
MailAddress = Annotated[str, Meta(min_length=3, max_length=320, pattern=form(ADDRESS, "be an email address"))]
PHONE_NUMBER = form(
    r"^\+[1-9][0-9]{4,14}$(?!\n)",
    "be a phone number such as +4930123456",
)
PhoneNumber = Annotated[str, Meta(pattern=PHONE_NUMBER)]


class ChannelFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """The fields of every channel: templates that replace the default texts."""

    SECRETS: ClassVar[tuple[str, ...]] = ()
    DESTINATION: ClassVar[tuple[str, ...]] = ()

    title: Template | None = None
    body: Template | None = None


class EmailChannel(ChannelFields, frozen=True, kw_only=True, tag="email"):
    SECRETS = ("password",)
    DESTINATION = ("host", "port", "security", "username")

    host: Annotated[str, Meta(min_length=1, max_length=253, pattern=HOST)]
    port: Annotated[int, Meta(ge=1, le=65_535)] | None = None
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: Annotated[str, Meta(min_length=1, max_length=320)] | None = None
    password: Secret | None = None
    sender: MailAddress = msgspec.field(name="from")
    to: Annotated[tuple[MailAddress, ...], Meta(min_length=1, max_length=20)]


class PagerDutyChannel(ChannelFields, frozen=True, kw_only=True, tag="pagerduty"):
    SECRETS = ("routing_key",)
    DESTINATION = ("api_url",)

    routing_key: Secret
    api_url: Url = "https://events.pagerduty.com"


class SlackChannel(ChannelFields, frozen=True, kw_only=True, tag="slack"):
    SECRETS = ("webhook_url",)

    webhook_url: Secret


class TeamsChannel(ChannelFields, frozen=True, kw_only=True, tag="teams"):
    SECRETS = ("webhook_url",)

    webhook_url: Secret


class DiscordChannel(ChannelFields, frozen=True, kw_only=True, tag="discord"):
    SECRETS = ("webhook_url",)

    webhook_url: Secret


class SmsChannel(ChannelFields, frozen=True, kw_only=True, tag="sms"):
    """A text message through Twilio."""

    SECRETS = ("auth_token",)
    DESTINATION = ("account_sid", "api_key_sid", "api_url")

    account_sid: Annotated[str, Meta(pattern=r"^AC[0-9a-fA-F]{32}$(?!\n)")]
    api_key_sid: Annotated[str, Meta(pattern=r"^SK[0-9a-fA-F]{32}$(?!\n)")] | None = None
    auth_token: Secret
    sender: Annotated[str, Meta(pattern=r"^(?:\+[1-9][0-9]{4,14}|MG[0-9a-fA-F]{32}|[A-Za-z0-9 ]{1,11})$(?!\n)")] = (
        msgspec.field(name="from")
    )
    to: PhoneNumber
    api_url: Url = "https://api.twilio.com"


class WebhookChannel(ChannelFields, frozen=True, kw_only=True, tag="webhook"):
    SECRETS = ("signing_secret", "authorization")
    DESTINATION = ("url",)

    url: Url
    signing_secret: Secret
    authorization: Secret | None = None


class AppriseChannel(ChannelFields, frozen=True, kw_only=True, tag="apprise"):
    SECRETS = ("url",)

    url: Secret


AlertChannel = (
    EmailChannel
    | PagerDutyChannel
    | SlackChannel
    | TeamsChannel
    | DiscordChannel
    | SmsChannel
    | WebhookChannel
    | AppriseChannel
)
KINDS: dict[str, type[AlertChannel]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        EmailChannel, PagerDutyChannel, SlackChannel, TeamsChannel, DiscordChannel, SmsChannel, WebhookChannel,
        AppriseChannel,
    )
}  # fmt: skip


class StoredChannel(msgspec.Struct, frozen=True):
    """A channel as it is stored."""

    name: str
    """Qualified with its namespace."""
    version: int
    created_at: datetime
    updated_at: datetime
    channel: AlertChannel
    """With references to secrets, and `***` in place of the others."""
    secrets: dict[str, str]
    """By field, encrypted."""


def is_reference(secret: str) -> bool:
    return secret.startswith(REFERENCES)


def secrets_of(channel: AlertChannel) -> Iterator[tuple[str, str]]:
    """The fields that hold secrets, and their values."""
    for field in channel.SECRETS:
        if (value := getattr(channel, field)) is not None:
            yield field, value


def with_secrets(channel: AlertChannel, changed: dict[str, str]) -> AlertChannel:
    return msgspec.structs.replace(channel, **changed)


def same_destination(one: AlertChannel, other: AlertChannel) -> bool:
    return type(one) is type(other) and all(getattr(one, name) == getattr(other, name) for name in one.DESTINATION)


def check_channel(channel: AlertChannel) -> None:
    """Raises `Invalid` for what the types do not rule out."""
    for field in ("title", "body"):
        if (text := getattr(channel, field)) is not None:
            _check_template(field, text)
    for field, value in secrets_of(channel):
        if field == "webhook_url" and not is_reference(value) and value != HIDDEN:
            check_address(field, value)
    match channel:
        case EmailChannel():
            _check_email(channel)
        case WebhookChannel():
            check_address("url", channel.url)
            check_signing_secret(channel.signing_secret)
        case PagerDutyChannel() | SmsChannel():
            check_address("api_url", channel.api_url)


def check_address(field: str, url: str) -> None:
    try:
        check_url(url)
    except ValueError as error:
        # The URL is not quoted: it may be a secret.
        reason = "it can't be read as a URL" if "names no host" in str(error) else str(error).removeprefix("`url`: ")
        raise Invalid(f"{field}: {reason}", field=field) from None


def check_signing_secret(secret: str) -> None:
    if is_reference(secret) or secret == HIDDEN:
        return
    try:
        signing_key(secret)
    except ValueError as error:
        raise Invalid(f"signing_secret: {error}", field="signing_secret") from None


def signing_key(secret: str) -> bytes:
    """The key in `whsec_` and base64. Raises `ValueError`, which does not quote it."""
    try:
        key = base64.b64decode(secret.removeprefix(SIGNING_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(SIGNING_PREFIX) or not 24 <= len(key) <= 64:
        raise ValueError(f"it must be {SIGNING_PREFIX} and 24 to 64 random bytes in base64; see docs/alert-channels.md")
    return key


def _check_template(field: str, text: str) -> None:
    try:
        check_text(text, TEXT_NAMES)
    except TemplateError as error:
        raise Invalid(f"{field}: {error.detail}", field=field) from None


def _check_email(channel: EmailChannel) -> None:
    if (channel.username is None) != (channel.password is None):
        missing = "password" if channel.password is None else "username"
        raise Invalid(f"{missing}: username and password belong together: give both or neither", field=missing)
    if channel.password is not None and channel.security == "none":
        raise Invalid(
            "security: without TLS the password would travel in plain text; use starttls or tls", field="security"
        )
