"""`foliot sources`: rules that turn messages into jobs, and the messages that could not become jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from foliot.cli.apply_plan import as_items, carry_out, find_source_steps, finish, show
from foliot.cli.columns import Column
from foliot.cli.job_files import read_documents
from foliot.cli.options import json_option
from foliot.cli.output import Output, output_options
from foliot.cli.source_files import DeclaredSource, checked_source
from foliot.cli.tables import Cell, at, away, clean, facts, table
from foliot.errors import Invalid, NotFound
from foliot.sdk.http_protocol import Answer, Document
from foliot.sdk.source_operations import SourceOperations

HEADERS = (
    Column("SOURCE", "text"),
    "FROM",
    Column("TOPIC", "text", 1),
    Column("TASK", "text"),
    "STATE",
    Column("RECEIVED", leaves=2),
    Column("ERROR", "wrapped"),
)
DEAD_HEADERS = (Column("ID", "id"), "AT", Column("REASON", "wrapped"), Column("MESSAGE", "text", 1))
COLOURS = {"paused": "yellow", "failing": "red"}


@click.group(invoke_without_command=True)
@output_options
@click.pass_context
def command(context: click.Context, output: Output) -> None:
    """List the sources of jobs; show, put, pause or delete one; or retry messages that could not become jobs."""
    if output.pass_to_subcommand(context):
        return
    with SourceOperations.from_environment() as client:
        output.show(client.list_sources, source_table, nothing="No sources.")


def source_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            one["name"], one["definition"]["kind"], one["definition"].get("topic") or "", one["definition"]["task"],
            state_of(one), away(one["received_at"], now), one["error"] or "",
        )
        for one in answer["items"]
    ]  # fmt: skip
    return table(HEADERS, rows) if rows else ""


def state_of(one: Mapping[str, Any]) -> Cell:
    state = "paused" if one["definition"].get("paused") else "failing" if one["failing_since"] else "active"
    return Cell(state, COLOURS.get(state))


@command.command("show")
@click.argument("name")
@output_options
def show_command(name: str, output: Output) -> None:
    """Show a source."""
    with SourceOperations.from_environment() as client:
        output.show(lambda: client.get_source(name), source_text)


def source_text(one: dict[str, Any], now: datetime) -> str:
    definition = one["definition"]
    fields = [(field, _shown(value)) for field, value in definition.items() if field not in ("kind", "paused")]
    return facts([
        ("source", one["name"]),
        ("from", definition["kind"]),
        *fields,
        ("state", state_of(one)),
        ("received", at(one["received_at"], now)),
        ("failing since", at(one["failing_since"], now)),
        ("error", one["error"]),
        ("version", str(one["version"])),
        ("changed", at(one["updated_at"], now)),
    ])  # fmt: skip


@command.command("put")
@click.argument("name")
@click.argument("path", metavar="FILE")
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@json_option
def put_command(name: str, path: str, dry_run: bool, as_json: bool) -> None:
    """Create a source, or change it to match a file.

    FILE is a YAML or JSON file with the fields of the API, or - for standard input. `foliot apply` takes several
    sources from files.
    """
    source = DeclaredSource(name, path, 1, checked_source(fields_in(path)))
    with SourceOperations.from_environment() as client:
        steps = find_source_steps(client, [source])
        if not dry_run:
            steps = carry_out(client, steps, is_quiet=True)
    if as_json:
        click.echo(msgspec.json.encode({"dry_run": dry_run, "items": as_items(steps)}))
    else:
        click.echo(show(steps, is_dry_run=dry_run))
    finish(steps)


def fields_in(path: str) -> dict[str, Any]:
    """The one object of a file."""
    documents, errors = read_documents(path)
    if errors:
        raise click.UsageError(str(errors[0]))
    found = [value for _, value, _ in documents]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise click.UsageError(f"{path}: it must contain one object with the fields of a source")
    return {str(field): value for field, value in found[0].items()}


@command.command("pause")
@click.argument("name")
@json_option
def pause_command(name: str, as_json: bool) -> None:
    """Pause a source: its messages wait at the broker. A paused webhook answers 404, and the sender tries again."""
    _set_paused(name, is_paused=True, as_json=as_json)


@command.command("resume")
@click.argument("name")
@json_option
def resume_command(name: str, as_json: bool) -> None:
    """Resume a paused source."""
    _set_paused(name, is_paused=False, as_json=as_json)


def _set_paused(name: str, *, is_paused: bool, as_json: bool) -> None:
    with SourceOperations.from_environment() as client:
        before = client.get_source(name)
        # Refused if somebody has changed the source meanwhile.
        answer = client.put_source(name, before.document["definition"] | {"paused": is_paused}, if_match=before.etag)
    done = f"{clean(name)} is {'paused' if is_paused else 'resumed'}"
    click.echo(answer.content if as_json else done, err=not as_json)


@command.command("delete")
@click.argument("name")
def delete_command(name: str) -> None:
    """Delete a source and its dead messages. Its topic stays as it is."""
    with SourceOperations.from_environment() as client:
        client.delete_source(name)
    click.echo(f"{clean(name)} was deleted", err=True)


@command.command("dead")
@click.argument("name")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number.")
@output_options
def dead_command(name: str, limit: int, output: Output) -> None:
    """List messages that could not become jobs, newest first, with the reasons."""
    with SourceOperations.from_environment() as client:
        output.show(lambda: _dead_page(client, name, limit), dead_table, nothing="No dead messages.")


def _dead_page(client: SourceOperations, name: str, limit: int) -> Answer:
    items: list[dict[str, Any]] = []
    after = ""
    while len(items) < limit:
        page = client.list_dead_messages(name, after=after).document
        items += page["items"]
        if page["next"] is None:
            break
        after = page["next"]
    document = Document(items=items[:limit])
    return Answer(msgspec.json.encode(document), document)


def dead_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [(one["id"], away(one["at"], now), one["reason"], one["body"]) for one in answer["items"]]
    return table(DEAD_HEADERS, rows) if rows else ""


@command.command("retry")
@click.argument("name")
@click.argument("message_ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="All dead messages of the source.")
@json_option
def retry_command(name: str, message_ids: Sequence[str], is_all: bool, as_json: bool) -> None:
    """Try again to make jobs of dead messages, by the rules of the source as they are now.

    Exit codes: 0 success; 1 some messages still can't become jobs.
    """
    results: list[dict[str, Any]] = []
    with SourceOperations.from_environment() as client:
        for message_id in _chosen(client, name, message_ids, is_all=is_all):
            result: dict[str, Any] = {"id": message_id, "run_id": None, "error": None}
            try:
                result["run_id"] = client.retry_dead_message(name, message_id).document["run_id"]
            except (Invalid, NotFound) as error:
                result["error"] = error.detail
            results.append(result)
    if as_json:
        click.echo(msgspec.json.encode({"items": results}))
    for result in results if not as_json else ():
        told = result["error"] or (f"run {result['run_id']}" if result["run_id"] else "no new job")
        click.secho(f"{result['id']}: {clean(told)}", fg="red" if result["error"] else None, err=True)
    if any(result["error"] for result in results):
        raise click.exceptions.Exit(1)


@command.command("discard")
@click.argument("name")
@click.argument("message_ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="All dead messages of the source.")
@json_option
def discard_command(name: str, message_ids: Sequence[str], is_all: bool, as_json: bool) -> None:
    """Delete dead messages for good."""
    discarded = []
    with SourceOperations.from_environment() as client:
        for message_id in _chosen(client, name, message_ids, is_all=is_all):
            client.delete_dead_message(name, message_id)
            discarded.append(message_id)
    done = f"{len(discarded)} discarded"
    click.echo(msgspec.json.encode({"discarded": discarded}) if as_json else done, err=not as_json)


def _chosen(client: SourceOperations, name: str, references: Sequence[str], *, is_all: bool) -> list[str]:
    """The ids of the dead messages that these references begin, or of all of them. Raises before any change."""
    if bool(references) == is_all:
        raise click.UsageError("give either ids of dead messages or --all")
    known = list(_dead_ids(client, name))
    return known if is_all else [_only(reference, known) for reference in references]


def _dead_ids(client: SourceOperations, name: str) -> Iterator[str]:
    after = ""
    while True:
        page = client.list_dead_messages(name, after=after).document
        yield from (one["id"] for one in page["items"])
        if page["next"] is None:
            return
        after = page["next"]


def _only(reference: str, known: Sequence[str]) -> str:
    found = [message_id for message_id in known if message_id.startswith(reference.lower())]
    if not found:
        raise NotFound(f"there is no dead message {reference!r}")
    if len(found) > 1:
        raise Invalid(f"{reference}: several dead messages begin so; give more of the id")
    return found[0]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
