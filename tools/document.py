"""Writes what is made from code: the pages configuration.md, metrics.md, logs.md, http-api.md and command-line.md,
ui/openapi.json, the schemas of the forms for alerts, and the dashboards of Grafana."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta
from msgspec.structs import fields

from foliot.config import Config
from foliot.observability.metrics import METRICS
from tools import command_line, dashboards, log_schema, ui_document
from tools.document_api import api_page

DOCS = Path(__file__).resolve().parent.parent / "docs"
TARGET = DOCS / "configuration.md"
METRICS_TARGET = DOCS / "metrics.md"
API_TARGET = DOCS / "http-api.md"
HEADER = """\
# Configuration

Made by `make docs` from `src/foliot/config/`. Do not edit.

Foliot runs without any configuration. A setting comes from these sources; later ones override earlier ones:

1. its default;
2. a TOML file: `foliot.toml` in the working directory, or the file that `FOLIOT_CONFIG` names;
3. the environment: `FOLIOT_` and the setting's name in capitals;
4. the command line.

Foliot rejects an unknown name and suggests the nearest known one. `foliot check` shows the settings in force and
warns of likely mistakes. A setting that holds several words takes a comma-separated text; in the TOML file, a list
works too.

Clients read `FOLIOT_URL`, `FOLIOT_TOKEN` and `FOLIOT_NAMESPACE`. `FOLIOT_URL_FILE` and `FOLIOT_TOKEN_FILE` name
files that hold the first two.

| setting | default | meaning |
|---|---|---|
"""
METRICS_HEADER = """\
# Metrics

Made by `make docs` from `src/foliot/observability/`. Do not edit.

`GET /metrics` on any server returns all metrics in the Prometheus text format, or as OpenMetrics on request. Useful
queries: `rate(jobs_failed_total[5m])` and `histogram_quantile(0.95, rate(job_queue_wait_seconds_bucket[5m]))`.

**Counters and histograms** are sums over all processes, stored in the database. Every process adds its counts about
once a second and when it stops, so they survive restarts. A killed process loses the counts of its last second.

**Gauges** are read from the database at most once a second, by statements that read a bounded number of rows. A
ratio without data is left out. The health of PostgreSQL is read every ten seconds. Only the `process_...` metrics
describe the server process that answers.

All servers show the same values, so add nothing up over instances. Let Prometheus scrape one server, or scrape all of
them and write `max by (queue) (foliot_queue_depth)` and `max by (status) (rate(jobs_completed_total[5m]))`.

**Labels** never hold text from callers, except `queue` and `job_name`. The hundred deepest queues have their own
series; the others share `(other)`.

**Exemplars** lead from a bucket of a histogram to its latest run. Each names the `run_id`, and the `trace_id` if the
trace has been [sent](traces.md). They are part of the OpenMetrics format, which Prometheus accepts; it stores them with
`--enable-feature=exemplar-storage`.

**Series of single jobs** are for the jobs that ask for them by a tag. Name the tag in the configuration of servers and
scheduler nodes:

```console
export FOLIOT_JOB_METRICS_TAG=metrics
foliot submit charge --tag metrics
```

The metrics `foliot_job_...` then show each such job: a recurring job by its name, other jobs by the name of their task.
One scheduler node at a time counts the ends of their runs, from the history, so jobs pay nothing for it. The first
hundred jobs get series. `foliot_exports_dropped_total{export="job_series"}` counts the ends of runs of further jobs. A
job that has not ended for 40 days makes room for another.

**Dashboards and rules** are in [deploy/compose](../deploy/compose/README.md), for a Prometheus and a Grafana of your
own: dashboards of the installation, of queues, of jobs and of PostgreSQL in `grafana/dashboards/`, recording rules in
`prometheus/rules.yml` and alerts in `prometheus/alerts.yml`. The lab loads all of them. The tests ask a real Prometheus
every query of the dashboards, and `promtool` tests the rules. No Grafana is available to the tests.

`jobs_scheduled_total` counts every stored run once: jobs from HTTP, the command line, Python and SQL (`submit_in`
and `foliot.submit`, at the commit); ticks; runs from dependencies, triggers, backfills, reruns, replays and
redrives; workflows, maps, their steps and items; and notifications. Repeated requests and recurring jobs themselves
do not count. `jobs_completed_total` counts the ends of the same runs.

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
    ui_document.TARGET.write_text(ui_document.text())
    ui_document.ALERTS_TARGET.write_text(ui_document.alert_schemas())
    dashboards.write()
    log_schema.write()
