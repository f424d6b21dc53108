"""`foliot submit --batch`: a job a line, sent in batches, so that a file of any length can be submitted."""

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
ONE_OFF = ("payload", "cron", "every", "idempotency_key", "unique")


def submit_batch(file: str, job: dict[str, Any], *, is_waiting: bool, as_json: bool) -> None:
    """All lines are looked at before the first job is submitted. Prints an id a line, or with `as_json` a line of JSON
    a job."""
    if misplaced := [name for name in ONE_OFF if name in job]:
        raise click.UsageError(
            f"--{misplaced[0].replace('_', '-')}: the jobs of a --batch are many, and run once; leave it out"
        )
    if is_waiting:
        raise click.UsageError("--wait: waits for one job, not for a --batch; leave it out")
    payloads = list(read_payloads(file))
    done = 0
    with Client.from_environment() as client, Progress("submitting", len(payloads), is_quiet=as_json) as progress:
        while part := payloads[done : done + BATCH_SIZE]:
            try:
                made = client.create_jobs([{**job, "payload": payload} for payload in part]).document["items"]
            except FoliotError:
                click.echo(f"{done} of {len(payloads)} jobs are submitted; then:", err=True)
                raise
            done += len(part)
            for one in made:
                click.echo(msgspec.json.encode(one) if as_json else one["id"])
            progress.advance(len(part))
    if not as_json:
        click.echo(f"{done} job{'' if done == 1 else 's'} submitted", err=True)


def read_payloads(file: str) -> Iterator[msgspec.Raw]:
    """Each as it is written, so that no number loses a digit. Empty lines are none."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        lines = io.StringIO(content.decode("utf-8-sig"))
    except OSError as error:
        raise Invalid(f"--batch {clean(file)}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Invalid(f"--batch {clean(file)}: not UTF-8 at byte {error.start}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield json_value(line) if line.lstrip().startswith("{") else _no_object()
        except click.BadParameter as error:
            raise Invalid(f"{clean(file)}:{number}: {error.message}") from None


def _no_object() -> msgspec.Raw:
    raise click.BadParameter("a payload is a JSON object")
