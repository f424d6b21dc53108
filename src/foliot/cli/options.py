"""Options that several commands share, and how the values of options are read."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from pathlib import Path

import click
import msgspec

from foliot.errors import Invalid
from foliot.triggers.durations import parse_duration

NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")

json_option = click.option("--json", "as_json", is_flag=True, help="Print the API's own JSON.")


def instant(text: str) -> str:
    """An ISO 8601 time with an offset. Without one it could be in the zone of the user, of the job or of the server."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not an ISO 8601 time, such as 2026-12-31T23:59:59+01:00") from None
    if moment.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no offset; write it like 2026-12-31T23:59:59Z or 2026-12-31T23:59:59+01:00")
    return moment.isoformat()


def seconds(text: str) -> int | float:
    """A number of seconds, or a duration such as 5m."""
    if NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    try:
        return parse_duration(text, field="duration")
    except Invalid as error:
        raise click.BadParameter(error.detail.removeprefix("duration: ")) from None


def json_value(text: str) -> msgspec.Raw:
    """JSON itself, `@FILE`, or `-` for standard input. Handed on as it is written, so that no number loses a digit."""
    try:
        content = _content(text).decode("utf-8-sig")
        msgspec.json.decode(content)
    except OSError as error:
        raise click.BadParameter(f"{text.removeprefix('@')}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}") from None
    return msgspec.Raw(content)


def _content(text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    return Path(text[1:]).read_bytes() if text.startswith("@") else text.encode()
