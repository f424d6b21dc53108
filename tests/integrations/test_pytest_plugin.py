"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
from shop import send

def test_a_job_runs_on_the_bench(foliot_bench):
    assert send.submit(customer_id=7).result() == "sent to 7"
    assert len(foliot_bench.jobs()) == 1

def test_each_test_has_a_bench_of_its_own(foliot_bench):
    assert foliot_bench.jobs() == []
"""
SHOP = """
import foliot

app = foliot.App()

@app.task
def send(customer_id: int) -> str:
    return f"sent to {customer_id}"
"""


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (directory / "shop.py").write_text(SHOP)
    (directory / "test_shop.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(directory), *options]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_fixtures_run_the_tasks_of_the_app_that_the_settings_name(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nfoliot_app = shop:app\n")
    done = run(tmp_path)
    assert "2 passed" in done.stdout, done.stdout


def test_a_missing_setting_is_named(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = run(tmp_path)
    assert "set foliot_app = MODULE:APP in pytest's settings" in done.stdout
    assert done.returncode == 1


def test_a_pytest_without_jobs_does_not_load_the_worker() -> None:
    program = (
        "import foliot.integrations.pytest_plugin, sys; print('foliot.worker' in sys.modules, 'fastapi' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
