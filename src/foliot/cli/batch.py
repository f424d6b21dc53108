"""`foliot submit --batch`: submits one job per line, in batches, so that files of any length work."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from foliot.cli.options import json_value
from foliot.cli.progress import Progress
from foliot.cli.tables import clean
from foliot.errors import FoliotError, Invalid
from foliot.sdk.client import Client

BATCH_SIZE = 1000
NOT_IN_BATCH = ("payload", "cron", "every", "idempotency_key", "unique")


def submit_batch(file: str, job: dict[str, Any], *, is_waiting: bool, as_json: bool) -> None:
    """Checks all lines, then submits the jobs. Prints one id per line, or one JSON object per line with `as_json`."""
    if misplaced := [name for name in NOT_IN_BATCH if name in job]:
        raise click.UsageError(f"--{misplaced[0].replace('_', '-')}: can't be combined with --batch")
    if is_waiting:
        raise click.UsageError("--wait: can't be combined with --batch")
    payloads = list(read_payloads(file))
    done = 0
    with Client.from_environment() as client, Progress("submitting", len(payloads), is_quiet=as_json) as progress:
        while part := payloads[done : done + BATCH_SIZE]:
            try:
                made = client.create_jobs([{**job, "payload": payload} for payload in part]).document["items"]
            except FoliotError:
                click.echo(f"{done} of {len(payloads)} jobs were submitted before an error:", err=True)
                raise
            done += len(part)
            for one in made:
                click.echo(msgspec.json.encode(one) if as_json else one["id"])
            progress.advance(len(part))
    if not as_json:
        click.echo(f"{done} job{'' if done == 1 else 's'} submitted", err=True)


def read_payloads(file: str) -> Iterator[msgspec.Raw]:
    """Yields the payload of each non-empty line, as written, so that no number loses a digit."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        lines = io.StringIO(content.decode("utf-8-sig"))
    except OSError as error:
        raise Invalid(f"--batch {clean(file)}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Invalid(f"--batch {clean(file)}: invalid UTF-8 at byte {error.start}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield json_value(line) if line.lstrip().startswith("{") else _refuse_non_object()
        except click.BadParameter as error:
            raise Invalid(f"{clean(file)}:{number}: {error.message}") from None


def _refuse_non_object() -> msgspec.Raw:
    raise click.BadParameter("a payload must be a JSON object")
