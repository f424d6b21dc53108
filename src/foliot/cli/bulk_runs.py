"""Changes many runs: counts them, shows some, asks for confirmation, and changes them in batches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
import msgspec

from foliot.cli.columns import Column
from foliot.cli.local_times import locate_range
from foliot.cli.tables import table, word
from foliot.clock import block
from foliot.errors import Conflict, StoreUnavailable, Unreachable
from foliot.sdk.http_protocol import Answer

Call = Callable[[Mapping[str, Any]], Answer]
HEADERS: tuple[str | Column, ...] = (
    Column("RUN", "id"),
    "STATUS",
    *(Column(name, "text") for name in ("TASK", "NAME", "QUEUE")),
)
PAUSES_SECONDS = (0.5, 2.0, 5.0)

FILTERS = (
    click.option(
        "--status",
        "--state",
        "state",
        metavar="WORD",
        help="All runs with this status, such as failed or pending; separate several with commas.",
    ),
    click.option("--queue", help="All runs in this queue."),
    click.option("--task", help="All runs of this task."),
    click.option("--job", metavar="NAME_OR_ID", help="All runs of this recurring job."),
    click.option("--tag", help="All runs with this tag."),
    click.option(
        "--since", metavar="TIME", help="Only runs created since an ISO time, or within a duration such as 2h."
    ),
    click.option(
        "--until", metavar="TIME", help="Only runs created before an ISO time, or a duration ago.  [default: now]"
    ),
    click.option("--text", help="All runs with this text in the name, the task or the error."),
    click.option("--all", "is_all", is_flag=True, help="All runs."),
    click.option("--dry-run", is_flag=True, help="Show how many runs match, without changing them."),
    click.option("--yes", "is_sure", is_flag=True, help="Do not ask for confirmation."),
)


def group_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(FILTERS):
        function = option(function)
    return function


def filters_of(run_id: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The given filters; empty for a single run. Requires either a run or filters, but not both."""
    filters = {name: value for name, value in options.items() if name not in ("is_all", "dry_run", "is_sure") and value}
    filters = locate_range(filters)
    filters |= {"all": True} if options["is_all"] else {}
    if (run_id is not None) == bool(filters):
        raise click.UsageError(
            "give a RUN_ID, or filters (--status, --queue, --task, --job, --tag, --since, --until, --text), or --all"
        )
    if run_id is not None and (options["dry_run"] or options["is_sure"]):
        raise click.UsageError("--dry-run and --yes can't be used with a RUN_ID")
    return filters


def change_runs(
    call: Call, verb: str, past: str, request: Mapping[str, Any], *, dry_run: bool, is_sure: bool, as_json: bool
) -> None:
    count, first = _count(call, request)
    if dry_run or not count:
        sentence = f"{_runs(count)} would be {past}" if count else "No matching runs."
        click.echo(_json(count, first, is_dry_run=dry_run) if as_json else sentence, err=not as_json and not dry_run)
        return
    if not is_sure:
        rows = [
            (run["id"], word(run["status"]), run["task"], run["name"] or "", run["queue"]) for run in first["sample"]
        ]
        click.echo(table(HEADERS, rows) + ("\n..." if count > len(rows) else ""), err=True)
        click.confirm(f"{verb.capitalize()} {_runs(count)}?", abort=True, err=True)
    done = 0
    try:
        with click.progressbar(length=count, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
            for number in _batches(call, {**request, "until": first["until"]}, count):
                done += number
                bar.update(number)
    except Conflict as error:
        raise Conflict(f"{_runs(done)} {past} before an error: {error.detail}") from None
    click.echo(_json(done, first, is_dry_run=False) if as_json else f"{_runs(done)} {past}", err=not as_json)


def _count(call: Call, request: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    """The number of matching runs, and the first answer, which has a sample of them."""
    first = answer = _call_with_retries(call, {**request, "dry_run": True}).document
    count = int(first["count"])
    while answer["more"]:
        answer = _call_with_retries(
            call, {**request, "dry_run": True, "until": first["until"], "after": answer["next"]}
        ).document
        count += answer["count"]
    return count, first


def _batches(call: Call, request: Mapping[str, Any], count: int) -> Iterator[int]:
    """Yields the size of each changed batch. Their sum never exceeds `count`."""
    left, following = count, ""
    while following is not None:
        answer = _call_with_retries(call, {**request, "expected": left, "after": following}).document
        left -= answer["count"]
        following = answer["next"]
        yield answer["count"]


def _call_with_retries(call: Call, request: Mapping[str, Any]) -> Answer:
    """Retries a request whose answer was lost. This is safe: no run is changed twice."""
    for pause in PAUSES_SECONDS:
        try:
            return call(request)
        except (Unreachable, StoreUnavailable) as error:
            if isinstance(error, Unreachable) and not error.is_doubtful:
                raise
            block(pause)
    return call(request)


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _json(count: int, first: Mapping[str, Any], *, is_dry_run: bool) -> bytes:
    return msgspec.json.encode({"count": count, "until": first["until"], "dry_run": is_dry_run})
