"""The files of a command: results of earlier steps and its own result, in every containment, in sandboxes, and for
every user it may become."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from foliot.config import Config, load
from foliot.model.outcome import Attempted, Ending
from foliot.worker.executors.processes.containment import choose
from foliot.worker.executors.shell import shell
from tests.support.containment import launchers_in, require_means
from tests.support.contexts import KeptContext

PLACES = [
    ("bubblewrap", "none"),
    ("cgroup", "none"),
    ("launcher", "none"),
    ("launcher", "process"),
    ("launcher", "bubblewrap"),
]


@pytest.fixture(params=PLACES, ids="-".join)
def config(request: pytest.FixtureRequest) -> Config:
    means, sandbox = request.param
    require_means(means)
    if sandbox == "bubblewrap":
        require_means(sandbox)
    return Config(containment=means, sandbox=sandbox, result_max_bytes=1000)


async def run(config: Config, context: KeptContext, command: str, **payload: Any) -> Attempted:
    async with launchers_in(choose(config)) as launchers:
        return await shell(config, launchers)({"command": command, **payload}, context)


async def test_upstream_results_and_the_signal_reach_a_command_and_its_result_comes_back(config: Config) -> None:
    context = KeptContext(attempt=3)
    # Larger than a pipe or an environment variable.
    context.upstream = {"extract": {"rows": [1, 2, 3], "text": "ü" * 200_000}, "ping": None}
    context.signal = {"by": "ann"}
    attempted = await run(
        config,
        context,
        'wc -c < "$FOLIOT_UPSTREAM"; head -c 30 "$FOLIOT_UPSTREAM"; echo; cat "$FOLIOT_SIGNAL" > "$FOLIOT_RESULT"; env',
    )
    assert attempted == Attempted(Ending.SUCCEEDED, result='{"by":"ann"}')
    size, start, *variables = context.output.decode().splitlines()
    assert int(size) == len(json.dumps(context.upstream, ensure_ascii=False, separators=(",", ":")).encode())
    assert start == '{"extract":{"rows":[1,2,3],"te'
    assert {f"FOLIOT_RUN_ID={context.run_id}", "FOLIOT_ATTEMPT=3"} <= set(variables)


async def test_the_variables_of_a_command_do_not_disturb_a_call_of_foliot(config: Config) -> None:
    context = KeptContext()
    context.upstream, context.signal = {"extract": 1}, {"by": "ann"}
    await run(config, context, "env")
    variables = dict(line.split("=", 1) for line in context.output.decode().splitlines())
    assert "FOLIOT_SIGNAL" in variables
    assert load(environment=variables) == load(environment={})


async def test_variables_without_a_value_are_not_set(config: Config) -> None:
    context = KeptContext()
    attempted = await run(config, context, "env", environment={"FOLIOT_RUN_ID": "another"})
    assert attempted.result == '{"exit_code":0}'
    names = {line.partition("=")[0] for line in context.output.decode().splitlines()}
    assert {name for name in names if name.startswith("FOLIOT_")} - {"FOLIOT_GUARD"} == {
        "FOLIOT_RUN_ID",
        "FOLIOT_ATTEMPT",
        "FOLIOT_RESULT",
    }
    assert f"FOLIOT_RUN_ID={context.run_id}" in context.output.decode()


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("echo 42 > $FOLIOT_RESULT", "42"),
        (
            "echo 1 > $FOLIOT_RESULT; echo '  {\"n\": 12345678901234567890} ' > $FOLIOT_RESULT",
            '{"n": 12345678901234567890}',
        ),
        ("printf '[1,' >> $FOLIOT_RESULT; printf '2]' >> $FOLIOT_RESULT", "[1,2]"),
        ("echo null > $FOLIOT_RESULT", "null"),
        ("echo > $FOLIOT_RESULT", '{"exit_code":0}'),
    ],
    ids=["number", "written twice", "appended", "null", "blank"],
)
async def test_the_written_file_is_the_result(command: str, result: str) -> None:
    config = Config(containment="launcher")
    assert await run(config, KeptContext(), command) == Attempted(Ending.SUCCEEDED, result=result)


@pytest.mark.parametrize(
    ("command", "kind", "part"),
    [
        ("echo hello > $FOLIOT_RESULT", "ResultNotStorable", "write one JSON value"),
        ("printf '\"\\377\"' > $FOLIOT_RESULT", "ResultNotStorable", "not JSON"),
        ("echo 1 2 > $FOLIOT_RESULT", "ResultNotStorable", "not JSON"),
        ("head -c 2000 /dev/zero > $FOLIOT_RESULT", "ResultTooLarge", "FOLIOT_RESULT holds 2000 bytes"),
        ("truncate -s 100G $FOLIOT_RESULT", "ResultTooLarge", "store the result elsewhere"),
        ("echo 1 > $FOLIOT_RESULT; exit 3", "ExitCode", "exit code 3"),
    ],
    ids=["text", "bytes", "two values", "large", "sparse", "failed"],
)
async def test_an_unstorable_result_fails_with_advice(command: str, kind: str, part: str) -> None:
    attempted = await run(Config(containment="launcher", result_max_bytes=1000), KeptContext(), command)
    assert attempted.ending is Ending.FAILED
    assert attempted.error is not None
    assert attempted.error.kind == kind
    assert part in attempted.error.message


async def test_other_programs_read_and_write_them_as_files() -> None:
    context = KeptContext()
    context.upstream = {"a": 20}
    script = (
        "import json, os; a = json.load(open(os.environ['FOLIOT_UPSTREAM']))['a']; "
        "json.dump(a + 1, open(os.environ['FOLIOT_RESULT'], 'w'))"
    )
    async with launchers_in(choose(Config())) as launchers:
        attempted = await shell(Config(), launchers)({"argv": [sys.executable, "-I", "-S", "-c", script]}, context)
    assert attempted == Attempted(Ending.SUCCEEDED, result="21")


async def test_no_descriptor_is_left_behind() -> None:
    context = KeptContext()
    context.upstream, context.signal = {"a": 1}, 2
    config = Config(containment="launcher")
    await run(config, context, "true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        await run(config, context, "echo 1 > $FOLIOT_RESULT")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
