"""Options that several commands share, and parsers for option values."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.triggers.durations import parse_duration

NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")

json_option = click.option("--json", "as_json", is_flag=True, help="Print the JSON response of the API.")


class Choice(click.Choice[str]):
    """A choice that suggests the nearest valid word."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            complaint = f"{error.message.rstrip('.')}{did_you_mean(str(value), self.choices)}"
            raise click.BadParameter(complaint, ctx, param) from None


def given(**options: str | None) -> dict[str, str]:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value}


def instant(text: str) -> str:
    """Parses an ISO 8601 time. One without a UTC offset gets it from `zones.located`."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not an ISO 8601 time, such as 2026-12-31T23:59 or 2026-12-31T23:59:59+01:00"
        ) from None
    return text if moment.tzinfo is None else moment.isoformat()


def seconds(text: str) -> int | float:
    """Parses a number of seconds, or a duration such as 5m."""
    if NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    try:
        return parse_duration(text, field="duration")
    except Invalid as error:
        raise click.BadParameter(error.detail.removeprefix("duration: ")) from None


def unique(key: str) -> dict[str, str]:
    return {"key": key}


def concurrency(text: str) -> dict[str, str | int]:
    """Parses `KEY=LIMIT`. The limit defaults to 1."""
    key, has_limit, limit = text.rpartition("=")
    if not has_limit:
        return {"key": text, "limit": 1}
    if not key or not limit.isdecimal():
        raise click.BadParameter(f"{text!r} is not KEY=LIMIT, such as customer-7=2")
    return {"key": key, "limit": int(limit)}


def rate(text: str) -> dict[str, str | int | float]:
    """Parses `KEY=LIMIT/PERIOD`."""
    key, _, quota = text.rpartition("=")
    limit, _, period = quota.partition("/")
    if not key or not limit.isdecimal() or not period:
        raise click.BadParameter(f"{text!r} is not KEY=LIMIT/PERIOD, such as mail=100/1m")
    return {"key": key, "limit": int(limit), "period_seconds": seconds(period)}


def notification(text: str) -> dict[str, str] | msgspec.Raw:
    """Parses a notification: a URL, or a JSON object with more fields."""
    return json_value(text) if text.startswith("{") else {"url": text}


def cause(text: str) -> str | int:
    """Parses the name of an error, or an exit code."""
    return int(text) if text.isdecimal() else text


def json_value(text: str) -> msgspec.Raw:
    """Reads JSON, `@FILE`, or `-` for standard input. The text is kept as written, so that no number loses a digit."""
    try:
        content = content_of(text).decode("utf-8-sig")
        msgspec.json.decode(content)
    except OSError as error:
        raise click.BadParameter(f"{text.removeprefix('@')}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"invalid JSON: {error}") from None
    return msgspec.Raw(content)


def content_of(text: str) -> bytes:
    """The text itself, the content of `@FILE`, or standard input for `-`."""
    if text == "-":
        return sys.stdin.buffer.read()
    return Path(text[1:]).read_bytes() if text.startswith("@") else text.encode()
