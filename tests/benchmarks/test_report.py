"""What `make bench` says of what it found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.cpu import Meter
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


def test_goals_are_met_at_their_bound_and_unknown_without_a_value() -> None:
    assert [goal.verdict for goal in RESULT.goals] == ["met", "not met", "unknown"]


def test_the_table_is_made_from_the_json() -> None:
    table = report.table(json.loads(json.dumps(report.document("one", "a title", RESULT))))
    assert table.splitlines()[0] == "one: a title"
    assert "  jobs 1,000" in table
    assert [line.split() for line in table.splitlines() if line.startswith("with")] == [["with", "12,350", "0.7"], ["without", "-"]]
    assert "not met  soon: 5.1, wanted <= 5" in table
    assert "a note" in table


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_a_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert report.percentile([float(value) for value in range(100, 0, -1)], share) == expected


def test_the_page_gets_what_was_measured_and_keeps_what_was_written() -> None:
    page = "before\n<!-- measured: goals -->\nold\n<!-- end -->\nbetween\n<!-- measured: plan -->\n<!-- end -->\nafter\n"
    found = document.filled(page, [report.document("one", "a title", RESULT, cores_of_others=0.1)])
    assert "old" not in found
    assert "| `one` | fast | 0.7 | >= 0.7 | met |" in found
    assert found.count("Not measured yet") == 1
    assert found.startswith("before\n<!-- measured: goals -->\n")
    assert found.endswith("<!-- end -->\nafter\n")
    assert document.filled(found, []).count("Not measured yet") == 2


def test_every_mark_of_the_page_is_known() -> None:
    text = document.PAGE.read_text()
    assert text.count("<!-- measured: ") == len(document.MARK.findall(text)) == 4
    document.filled(text, [])


def test_effects_count_what_is_lost_and_what_is_done_twice(tmp_path: Path) -> None:
    effects = Effects(tmp_path / "effects", 4, regions=2)
    program = "import sys; from effects import Recorder; recorder = Recorder(); [recorder.record(int(n)) for n in sys.argv[1:]]"
    for region, numbers in enumerate((["0", "1"], ["1", "3", "3"])):
        environment = os.environ | effects.variables(region) | {"PYTHONPATH": str(ROOT / "benchmarks")}
        subprocess.run([sys.executable, "-c", program, *numbers], env=environment, check=True)
    found = effects.count()
    assert (sorted(found.started), found.lost, found.doubled) == ([0, 1, 3], 1, 2)
    assert found.started[0] <= found.started[3]
    assert effects.started() == 4


def test_the_time_of_processes_that_have_ended_is_counted() -> None:
    meter = Meter({"tests": [os.getpid()], "nowhere": [None]})
    meter.start()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    meter.stop()
    used = meter.microseconds(1)
    assert used["tests_us"] >= 300_000
    assert "nowhere_us" not in used
