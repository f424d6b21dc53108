"""`foliot worker`."""

from __future__ import annotations

import os
import re
from collections.abc import Coroutine
from typing import Any

import click

from foliot import config
from foliot.assembly import Stop
from foliot.cli.process import run, supervised_option
from foliot.config import from_environment
from foliot.errors import Invalid
from foliot.sdk.app import DEFAULT_QUEUE, NAME_PATTERN, App
from foliot.sdk.app_loading import load_app
from foliot.sdk.server_address import ServerAddress
from foliot.worker_assembly import Work, run_remote_worker, run_worker

SLOTS = re.compile(r"[0-9]{1,6}")


@click.command()
@click.argument("app", required=False, metavar="[MODULE:APP]")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME[=SLOTS]",
    help="Queue to work on, with its number of slots; repeatable.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME=VALUE",
    help="Label of this worker; repeatable.",
)
@click.option("--namespace", help="Namespace whose queues to work on.  [default: default]")
@click.option("--data", help="Data directory of a running `foliot up`, whose PostgreSQL to use.")
@click.option(
    "--server",
    metavar="URL",
    help="Work through the API of this server, without access to the database. The token comes from FOLIOT_TOKEN or "
    "FOLIOT_TOKEN_FILE.",
)
@click.option(
    "--token",
    help="Token for --server. Better FOLIOT_TOKEN or FOLIOT_TOKEN_FILE: other users of this machine can see arguments.",
)
@supervised_option
def command(
    app: str | None,
    queues: tuple[str, ...],
    labels: tuple[str, ...],
    namespace: str | None,
    data: str | None,
    server: str | None,
    token: str | None,
    supervised: bool,
) -> None:
    """Run a worker node.

    MODULE:APP names the foliot.App whose tasks this worker runs. The built-in tasks are always available.
    """
    address = address_of(server, token, namespace, data)
    loaded = config.load({"data": data, "namespace": namespace})
    tasks = load_app(app) if app else App()
    slots = parse_queues(queues, loaded.slots) if queues else queues_of(tasks, loaded.slots)
    work = Work(tasks, slots, parse_labels(labels))

    def working(stop: Stop) -> Coroutine[Any, Any, None]:
        return run_worker(loaded, stop, work) if address is None else run_remote_worker(loaded, stop, work, address)

    run(
        working,
        is_supervised=supervised,
        ends_within=loaded.grace_seconds,
    )


def address_of(server: str | None, token: str | None, namespace: str | None, data: str | None) -> ServerAddress | None:
    """The server of a worker without database access, and its token."""
    if server is None:
        if token is not None:
            raise Invalid("--token: only together with --server", field="token")
        return None
    if data is not None:
        raise Invalid("--data: a worker with --server uses no database", field="data")
    address = ServerAddress(server, from_environment("FOLIOT_TOKEN") if token is None else token, namespace or "")
    # Tasks that submit jobs use the same server, unless FOLIOT_URL names another one.
    os.environ.setdefault("FOLIOT_URL", server)
    return address


def queues_of(app: App, slots: int) -> dict[str, int]:
    """The default queue and the queues that the app's tasks declare."""
    return dict.fromkeys([DEFAULT_QUEUE, *(task.queue for task in app.tasks.values())], slots)


def parse_labels(given: tuple[str, ...]) -> dict[str, str]:
    """Parses labels such as `zone=eu`."""
    found = {}
    for text in given:
        name, has_value, value = text.partition("=")
        if not has_value or not NAME_PATTERN.fullmatch(name) or len(value) > 200:
            raise Invalid(f"--label {text!r}: must be NAME=VALUE, such as zone=eu", field="label")
        found[name] = value
    return found


def parse_queues(given: tuple[str, ...], default_slots: int) -> dict[str, int]:
    """Parses queues such as `mail=20` or `mail`."""
    found = {}
    for text in given:
        name, has_slots, slots = text.partition("=")
        if not NAME_PATTERN.fullmatch(name):
            raise Invalid(f"--queue {text!r}: a queue name can contain letters, digits, and . _ : -", field="queue")
        if has_slots and not (SLOTS.fullmatch(slots) and 1 <= int(slots) <= 100_000):
            raise Invalid(f"--queue {text!r}: slots must be a number from 1 to 100000, as in {name}=20", field="queue")
        found[name] = int(slots) if has_slots else default_slots
    return found
