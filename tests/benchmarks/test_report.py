"""The report of `make bench`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from benchmarks.cpu import Meter, tree_seconds
from benchmarks.effects import Effects
from benchmarks.report import Result, Row, at_least, at_most

from benchmarks import document, report
from tests.support.processes import ROOT

RESULT = Result(
    [Row("with", {"per_second": 12345.678, "ratio": 0.7}), Row("without", {"per_second": None})],
    [at_least("fast", 0.7, 0.7), at_most("soon", 5.1, 5), at_most("unseen", None, 1)],
    {"jobs": 1000},
    ["a note"],
)


def test_goal_is_met_at_its_bound_and_unknown_without_a_value() -> None:
    assert [goal.verdict for goal in RESULT.goals] == ["met", "not met", "unknown"]


def test_table_is_made_from_the_json() -> None:
    table = report.table(json.loads(json.dumps(report.document("one", "a title", RESULT))))
    assert table.splitlines()[0] == "one: a title"
    assert "  jobs 1,000" in table
    assert [line.split() for line in table.splitlines() if line.startswith("with")] == [
        ["with", "12,350", "0.7"],
        ["without", "-"],
    ]
    assert "not met  soon: 5.1, wanted <= 5" in table
    assert "a note" in table


def test_report_shows_the_best_of_several_tries_and_the_range() -> None:
    slow, quick, slower = (
        report.document("one", "a title", Result([], [at_most("soon", soon, 5), at_least("fast", fast, 0.7)]))
        for soon, fast in ((9, 0.6), (4, 0.8), (12, 0.8))
    )
    failed = {"scenario": "one", "error": "TimeoutError: "}
    assert report.missed(slow) == ["soon", "fast"]
    found = report.best([slow, failed, slower, quick])
    assert (found, report.missed(found)) == (quick, [])
    assert [goal["other_tries"] for goal in found["goals"]] == [[9, 12], [0.6, 0.8]]
    page = document.filled("<!-- measured: goals -->\n<!-- end -->", [found])
    assert "| `one` | soon | 4 | 9, 12 | <= 5 | met |" in page
    assert report.best([failed]) == failed


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert report.percentile([float(value) for value in range(100, 0, -1)], share) == expected


def test_page_gets_the_measurements_and_keeps_its_text() -> None:
    page = (
        "before\n<!-- measured: goals -->\nold\n<!-- end -->\nbetween\n<!-- measured: plan -->\n<!-- end -->\nafter\n"
    )
    found = document.filled(page, [report.document("one", "a title", RESULT)])
    assert "old" not in found
    assert "| `one` | fast | 0.7 |  | >= 0.7 | met |" in found
    assert found.count("Not measured yet") == 1
    assert found.startswith("before\n<!-- measured: goals -->\n")
    assert found.endswith("<!-- end -->\nafter\n")
    assert document.filled(found, []).count("Not measured yet") == 2


def test_every_part_of_the_page_can_be_made() -> None:
    surroundings = {
        "scenario": "environment", "measured_at": "2026-01-01T00:00:00+00:00", "commit": "abc", "processor": "one",
        "cores": 2,
        "memory_gb": 24, "kernel": "6", "python": "3.11", "fdatasync_per_second": 5000,
        "postgres": {"server_version": "18", "fsync": "on"},
        "size": "usual",
    }  # fmt: skip
    more = {"cores_of_others": 0.1, "size": "usual", "measured_at": "2026-01-01T00:00:00+00:00"}
    costly = {
        "drain": {"async, 1 process": {"postgres_us": 40.0, "worker_us": 30.0}},
        "http": {"paced": {"api_us": 200.0, "postgres_us": 50.0}},
        "submit": {"bulk, inside Foliot": {"postgres_us": 15.0}},
        "every_second": {"all": {"postgres_us": 100.0, "scheduler_us": 60.0}},
        "latency": {"all": {"postgres_us": 900.0}},
        "idle": {
            "alone": {"postgres_%_of_a_core": 1.0, "connections": 10},
            "and": {"postgres_%_of_a_core": 2.0, "connections": 40},
        },
        "memory": {"worker, idle": {"rss_mb": 50.0}, "a job on disk": {"history_bytes": 500.0, "wal_bytes": 2000.0}},
    }
    results: list[dict[str, Any]] = [surroundings]
    for name, rows in costly.items():
        result = Result([Row(row, figures) for row, figures in rows.items()], [at_most("it", 1.0, 2)], {"workers": 10})
        results.append(report.document(name, "what it is", result, **more))
    found = document.filled(document.PAGE.read_text(), results)
    assert "Not measured yet" not in found
    assert "| PostgreSQL: jobs run, in batches | 10,000/s x 40 us | 0.40 cores |" in found
    # 0.4 to run, 0.5 to submit, and ten thousand waiting jobs at a thousandth of a core each.
    assert "| **PostgreSQL** in all, at the peak | the first, second and fifth, 60% busy | **19 cores** |" in found
    assert "| Workers: connections to PostgreSQL | 10,000 processes x 3 | 30,000 |" in found
    assert "### idle" in found


def test_every_mark_of_the_page_is_known() -> None:
    text = document.PAGE.read_text()
    assert text.count("<!-- measured: ") == len(document.MARK.findall(text)) == 4
    document.filled(text, [])


def test_effects_count_lost_and_repeated_work(tmp_path: Path) -> None:
    effects = Effects(tmp_path / "effects", 4, regions=2)
    program = (
        "import sys; from effects import Recorder; recorder = Recorder(); [recorder.record(int(n)) for n in "
        "sys.argv[1:]]"
    )
    for region, numbers in enumerate((["0", "1"], ["1", "3", "3"])):
        environment = os.environ | effects.variables(region) | {"PYTHONPATH": str(ROOT / "benchmarks")}
        subprocess.run([sys.executable, "-c", program, *numbers], env=environment, check=True)
    found = effects.count()
    assert (sorted(found.started), found.lost, found.doubled) == ([0, 1, 3], 1, 2)
    assert found.started[0] <= found.started[3]
    assert effects.started() == 4


BURN = "import time\ninput()\nwhile time.process_time() < 0.3: pass\nprint('burnt', flush=True)\ninput()"
# A separate process tree: servers of other tests come and go below this one.
PARENT = (
    f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}], check=True)\nprint('buried', "
    f"flush=True)\ninput()"
)
# The kernel counts in hundredths, and may round each of several down.
BURNT_SECONDS = 0.2


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """A process that uses 0.3 s of CPU for its first line of input, and ends at the second."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as parent:
        yield parent
        parent.communicate("\n")


def burn(parent: subprocess.Popen[str]) -> None:
    tell(parent, "burnt")


def bury(parent: subprocess.Popen[str]) -> None:
    tell(parent, "buried")


def tell(parent: subprocess.Popen[str], answer: str) -> None:
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write("\n")
    assert parent.stdout.readline() == f"{answer}\n"


def test_cpu_time_of_ended_processes_is_counted(parent: subprocess.Popen[str]) -> None:
    meter = Meter({"tree": [parent.pid], "nowhere": [None]})
    meter.start()
    burn(parent)
    bury(parent)
    meter.stop()
    used = meter.microseconds(1)
    assert used["tree_us"] >= BURNT_SECONDS * 1e6
    assert "nowhere_us" not in used


def test_cpu_time_of_a_process_that_ends_while_it_is_read_is_counted(
    parent: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    burn(parent)
    read = psutil.Process.cpu_times
    processes_read: list[int] = []

    def reading(process: psutil.Process) -> Any:
        found = read(process)
        processes_read.append(process.pid)
        if processes_read == [parent.pid]:
            # The parent was read before it had counted this.
            bury(parent)
        return found

    monkeypatch.setattr(psutil.Process, "cpu_times", reading)
    assert tree_seconds(parent.pid) >= BURNT_SECONDS
