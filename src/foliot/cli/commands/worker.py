"""`foliot worker`."""

from __future__ import annotations

import re

import click

from foliot import config
from foliot.assembly import run_worker
from foliot.cli.process import run, supervised_option
from foliot.errors import Invalid
from foliot.sdk.app import DEFAULT_QUEUE, NAME_PATTERN, App, load_app

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
@supervised_option
def command(
    app: str | None,
    queues: tuple[str, ...],
    labels: tuple[str, ...],
    namespace: str | None,
    data: str | None,
    supervised: bool,
) -> None:
    """Run a worker node.

    MODULE:APP names the foliot.App whose tasks this worker runs. The built-in tasks are always available.
    """
    loaded = config.load({"data": data, "namespace": namespace})
    tasks = load_app(app) if app else App()
    slots = parse_queues(queues, loaded.slots) if queues else queues_of(tasks, loaded.slots)
    parsed_labels = parse_labels(labels)
    run(
        lambda stop: run_worker(loaded, stop, app=tasks, queues=slots, labels=parsed_labels),
        is_supervised=supervised,
        ends_within=loaded.grace_seconds,
    )


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
