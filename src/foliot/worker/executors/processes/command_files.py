"""The in-memory JSON files that pass upstream results to a command and its result back. Environment variables name
them.

    FOLIOT_RUN_ID, FOLIOT_ATTEMPT    plain text, not files, as are the next six, which one-off runs do not have
    FOLIOT_SCHEDULED_FOR             the tick of the schedule that the run is for, as ISO 8601 time with offset
    FOLIOT_PREVIOUS_TICK             the tick before it; set only if there is one
    FOLIOT_NEXT_TICK                 the tick after it; set only if there is one
    FOLIOT_TIMEZONE                  the time zone of the job
    FOLIOT_JOB                       the name of the job
    FOLIOT_IS_BACKFILL               true or false
    TRACEPARENT                      the trace of the attempt, if it has one, as W3C writes it
    FOLIOT_UPSTREAM                  the results of upstream steps by key; set only if there are any
    FOLIOT_SIGNAL                    the payload of the signal that let the run start; set only if there is one
    FOLIOT_RESULT                    where the command writes its result as JSON; otherwise the exit code is its result

A command that writes more than the size limit to FOLIOT_RESULT is killed. The other two files are read-only.

The command inherits the three files as descriptors: `/dev/fd/N` works in every sandbox and for every user, and leaves
nothing behind. A program that closes inherited descriptors before it starts another must pass the content on itself.
"""

from __future__ import annotations

import os

import msgspec

from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.tick import Tick
from foliot.sdk.context import Context
from foliot.worker.executors.processes.launcher_pool import memory_file, sealed_file

EXIT_CODE_ONLY = '{"exit_code":0}'


class CommandFiles:
    """Owns the descriptors. Use it as a context manager."""

    def __init__(self, context: Context) -> None:
        self.descriptors: list[int] = []
        self.environment = {"FOLIOT_RUN_ID": str(context.run_id), "FOLIOT_ATTEMPT": str(context.attempt)}
        if (tick := context.tick) is not None:
            self.environment |= tick_environment(tick)
        if context.traceparent is not None:
            self.environment["TRACEPARENT"] = context.traceparent
        # The launcher expects the result as the first descriptor.
        self._result = self._add("FOLIOT_RESULT", memory_file(b""))
        if context.upstream:
            self._add("FOLIOT_UPSTREAM", sealed_file(msgspec.json.encode(dict(context.upstream))))
        if context.signal is not None:
            self._add("FOLIOT_SIGNAL", sealed_file(msgspec.json.encode(context.signal)))

    def __enter__(self) -> CommandFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)

    def read_result(self, result_max_bytes: int) -> Attempted:
        """The result of a command that exited with 0. A result that cannot be stored is an error; it is never
        truncated."""
        size = os.fstat(self._result).st_size
        if size > result_max_bytes:
            return result_too_large(result_max_bytes, size)
        written = os.pread(self._result, size, 0).strip()
        if not written:
            return Attempted(Ending.SUCCEEDED, result=EXIT_CODE_ONLY)
        try:
            msgspec.json.decode(written)
            return Attempted(Ending.SUCCEEDED, result=written.decode())
        except (ValueError, RecursionError) as error:
            advice = f"FOLIOT_RESULT is not JSON: {error}; write one JSON value, such as a number or an object"
            return Attempted(Ending.FAILED, error=error_of("ResultNotStorable", advice))

    def _add(self, name: str, descriptor: int) -> int:
        self.descriptors.append(descriptor)
        self.environment[name] = f"/dev/fd/{descriptor}"
        return descriptor


def tick_environment(tick: Tick) -> dict[str, str]:
    times = {"SCHEDULED_FOR": tick.at, "PREVIOUS_TICK": tick.previous, "NEXT_TICK": tick.next}
    return {f"FOLIOT_{name}": at.isoformat() for name, at in times.items() if at is not None} | {
        "FOLIOT_TIMEZONE": tick.timezone,
        "FOLIOT_JOB": tick.job,
        "FOLIOT_IS_BACKFILL": "true" if tick.is_backfill else "false",
    }


def result_too_large(result_max_bytes: int, size: int | None = None) -> Attempted:
    """`size`: unknown if the command was killed while it wrote."""
    written = "more" if size is None else f"{size} bytes, more"
    advice = (
        f"FOLIOT_RESULT holds {written} than result_max_bytes = {result_max_bytes}: "
        "store the result elsewhere and write its location"
    )
    return Attempted(Ending.FAILED, error=error_of("ResultTooLarge", advice))
