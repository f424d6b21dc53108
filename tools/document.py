"""Writes the reference pages that are made from code: docs/configuration.md, metrics.md, http-api.md and
command-line.md."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta
from msgspec.structs import fields

from foliot.config import Config
from foliot.observability.metrics import METRICS
from tools import command_line
from tools.document_api import api_page

DOCS = Path(__file__).resolve().parent.parent / "docs"
TARGET = DOCS / "configuration.md"
METRICS_TARGET = DOCS / "metrics.md"
API_TARGET = DOCS / "http-api.md"
HEADER = """\
# Configuration

Made by `make docs` from `src/foliot/config/settings.py`. Do not edit.

Nothing has to be configured. A setting comes from, in rising order: its default, a TOML file (`foliot.toml` in the working directory,
or the one that `FOLIOT_CONFIG` names), the environment (`FOLIOT_` and its name in capitals), the command line. An unknown name is
refused, with the nearest known one. `foliot check` shows what is in force and warns of what is probably not meant.

The clients read `FOLIOT_URL`, `FOLIOT_TOKEN` and `FOLIOT_NAMESPACE`. `FOLIOT_URL_FILE` and `FOLIOT_TOKEN_FILE` name files that hold the
first two. Settings that hold several words take a text with commas, and in the TOML file a list as well.

| setting | default | meaning |
|---|---|---|
"""
METRICS_HEADER = """\
# Metrics

Made by `make docs` from `src/foliot/observability/metrics.py`. Do not edit.

`GET /metrics` of any server shows them all, in the text format of Prometheus, or as OpenMetrics where that is asked for.

**Counters and histograms** are sums over all processes, kept in the database: every server, scheduler and worker adds what it has counted
about once a second and when it stops. They outlive restarts of everything. A process that is killed takes the counts of its last second
with it.

`jobs_scheduled_total` counts every run that is stored, once, whoever asked for it: jobs over HTTP, from the command line, from Python and
from SQL (`submit_in`, `foliot.submit`: with the commit); ticks of recurring jobs, and runs that other jobs, a trigger, a backfill, a rerun,
a replay or a redrive make; workflows and maps themselves, each of their steps and each of their items; and notices. A repeated request and
a recurring job itself count nothing. `jobs_completed_total` counts the ends of the same runs.

**Gauges** are read from the database, at most once a second, by statements that look at a bounded number of rows; a ratio of nothing is
left out. Only the `process_...` metrics are about the one server process that answers.

No label holds anything that a caller can make up but `queue`, and of queues only the deepest hundred have a series of their own; the others
share `(other)`. Useful sums: `rate(jobs_failed_total[5m])`, `histogram_quantile(0.95, rate(job_queue_wait_seconds_bucket[5m]))`.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def metrics_page() -> str:
    rows = [f"| `{m.name}` | {m.kind} | {', '.join(f'`{label}`' for label in m.labels)} | {m.text} |" for m in METRICS]
    return METRICS_HEADER + "\n".join(rows) + "\n"


def page() -> str:
    hints = get_type_hints(Config, include_extras=True)
    rows = []
    for field in fields(Config):
        default = "`~/.local/share/foliot`" if field.default is NODEFAULT else f"`{field.default!r}`"
        rows.append(f"| `{field.name}` | {default} | {describe(hints[field.name])} |")
    return HEADER + "\n".join(rows) + "\n"


def describe(hint: object) -> str:
    if get_origin(hint) is not Annotated:
        raise ValueError(f"a setting without a description: {hint}")
    found = [meta.description for meta in get_args(hint)[1:] if isinstance(meta, Meta) and meta.description]
    return str(found[-1])


if __name__ == "__main__":
    TARGET.write_text(page())
    METRICS_TARGET.write_text(metrics_page())
    API_TARGET.write_text(api_page())
    command_line.TARGET.write_text(command_line.page())
