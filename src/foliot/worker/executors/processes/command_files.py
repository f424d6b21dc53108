"""What a command is handed, and what it hands on: JSON in files that are nowhere but in memory, named by variables of
its environment.

    FOLIOT_RUN_ID, FOLIOT_ATTEMPT    as texts
    FOLIOT_UPSTREAM                  the results of the steps before it, by their keys; there only if there are any
    FOLIOT_SIGNAL                    what the signal said that let it start; there only if it said something
    FOLIOT_RESULT                    whatever JSON it writes here is its result; nothing written, and that is its exit code

A command that writes more to FOLIOT_RESULT than a result may have is ended. The other two can't be written to.

The three files are descriptors that the command inherits: `/dev/fd/N` works in every sandbox and for whatever user a
command becomes, and leaves nothing behind. A program that closes what it inherited before it starts another has to pass
the content on itself.
"""

from __future__ import annotations

import os

import msgspec

from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.context import Context
from foliot.worker.executors.processes.launcher_pool import memory_file, sealed_file

EXIT_CODE_ONLY = '{"exit_code":0}'


class CommandFiles:
    """Use as a context manager: it owns the descriptors."""

    def __init__(self, context: Context) -> None:
        self.descriptors: list[int] = []
        self.environment = {"FOLIOT_RUN_ID": str(context.run_id), "FOLIOT_ATTEMPT": str(context.attempt)}
        # The first of the descriptors, which is how the launcher knows it.
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

    def judge(self, result_max_bytes: int) -> Attempted:
        """Of a command that ended well, and is gone: what it handed on. What can't be kept is an error, said plainly;
        it is never cut."""
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
            advice = f"what was written to FOLIOT_RESULT is not JSON: {error}; write one JSON value, such as a number or an object"
            return Attempted(Ending.FAILED, error=error_of("ResultNotStorable", advice))

    def _add(self, name: str, descriptor: int) -> int:
        self.descriptors.append(descriptor)
        self.environment[name] = f"/dev/fd/{descriptor}"
        return descriptor


def result_too_large(result_max_bytes: int, size: int | None = None) -> Attempted:
    """`size`: unless the command was stopped before it had written all of it."""
    written = "too much was" if size is None else f"{size} bytes were"
    advice = f"{written} written to FOLIOT_RESULT, more than result_max_bytes = {result_max_bytes}: store it elsewhere and write where"
    return Attempted(Ending.FAILED, error=error_of("ResultTooLarge", advice))
