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
    "--queue", "queues", multiple=True, metavar="NAME[=SLOTS]", help="A queue to work on; may be given several times."
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME=VALUE",
    help="Something to know this worker by; may be given several times.",
)
@click.option("--namespace", help="Whose queues to work on.  [default: default]")
@click.option("--data", help="Directory of an embedded PostgreSQL that `foliot up` runs.")
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

    MODULE:APP names a foliot.App whose tasks this worker executes; the built-in tasks are always there.
    """
    loaded = config.load({"data": data, "namespace": namespace})
    tasks = load_app(app) if app else App()
    slots = parse_queues(queues, loaded.slots) if queues else queues_of(tasks, loaded.slots)
    said = parse_labels(labels)
    run(
        lambda stop: run_worker(loaded, stop, app=tasks, queues=slots, labels=said),
        is_supervised=supervised,
        ends_within=loaded.grace_seconds,
    )


def queues_of(app: App, slots: int) -> dict[str, int]:
    """The default queue and those that the app's tasks declare."""
    return dict.fromkeys([DEFAULT_QUEUE, *(task.queue for task in app.tasks.values())], slots)


def parse_labels(given: tuple[str, ...]) -> dict[str, str]:
    """`zone=eu`."""
    found = {}
    for text in given:
        name, has_value, value = text.partition("=")
        if not has_value or not NAME_PATTERN.fullmatch(name) or len(value) > 200:
            raise Invalid(f"--label {text!r}: a label looks like zone=eu", field="label")
        found[name] = value
    return found


def parse_queues(given: tuple[str, ...], default_slots: int) -> dict[str, int]:
    """`mail=20` or `mail`."""
    found = {}
    for text in given:
        name, has_slots, slots = text.partition("=")
        if not NAME_PATTERN.fullmatch(name):
            raise Invalid(f"--queue {text!r}: a queue's name has letters, digits, and . _ : -", field="queue")
        if has_slots and not (SLOTS.fullmatch(slots) and 1 <= int(slots) <= 100_000):
            raise Invalid(f"--queue {text!r}: slots are a number from 1 to 100000, as in {name}=20", field="queue")
        found[name] = int(slots) if has_slots else default_slots
    return found
