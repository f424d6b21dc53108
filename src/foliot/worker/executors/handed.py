"""What a command is handed, and what it hands on: JSON in files that are nowhere but in memory, named by variables of its environment.

    FOLIOT_RUN_ID, FOLIOT_ATTEMPT    as texts
    FOLIOT_UPSTREAM                  the results of the steps before it, by their keys; there only if there are any
    FOLIOT_SIGNAL                    what the signal said that let it start; there only if it said something
    FOLIOT_RESULT                    whatever JSON it writes here is its result; nothing written, and that is its exit code

The three files are descriptors that the command inherits: `/dev/fd/N` works in every sandbox and for whatever user a command becomes, and
leaves nothing behind. A program that closes what it inherited before it starts another has to pass the content on itself.
"""

from __future__ import annotations

import os

import msgspec

from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.context import Context

EXIT_CODE_ONLY = '{"exit_code":0}'


class Handed:
    """Use as a context manager: it owns the descriptors."""

    def __init__(self, context: Context) -> None:
        self.descriptors: list[int] = []
        self.environment = {"FOLIOT_RUN_ID": str(context.run_id), "FOLIOT_ATTEMPT": str(context.attempt)}
        self._result = self._add("FOLIOT_RESULT", b"")
        if context.upstream:
            self._add("FOLIOT_UPSTREAM", msgspec.json.encode(dict(context.upstream)))
        if context.signal is not None:
            self._add("FOLIOT_SIGNAL", msgspec.json.encode(context.signal))

    def __enter__(self) -> Handed:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)

    def judge(self, result_max_bytes: int) -> Attempted:
        """Of a command that ended well, and is gone: what it handed on. What can't be kept is an error, said plainly; it is never cut."""
        size = os.fstat(self._result).st_size
        if size > result_max_bytes:
            advice = (
                f"{size} bytes were written to FOLIOT_RESULT, more than result_max_bytes = {result_max_bytes}: "
                "store it elsewhere and write where"
            )
            return Attempted(Ending.FAILED, error=error_of("ResultTooLarge", advice))
        written = os.pread(self._result, size, 0).strip()
        if not written:
            return Attempted(Ending.SUCCEEDED, result=EXIT_CODE_ONLY)
        try:
            msgspec.json.decode(written)
            return Attempted(Ending.SUCCEEDED, result=written.decode())
        except (ValueError, RecursionError) as error:
            advice = f"what was written to FOLIOT_RESULT is not JSON: {error}; write one JSON value, such as a number or an object"
            return Attempted(Ending.FAILED, error=error_of("ResultNotStorable", advice))

    def _add(self, name: str, content: bytes) -> int:
        descriptor = os.memfd_create("foliot")
        self.descriptors.append(descriptor)
        self.environment[name] = f"/dev/fd/{descriptor}"
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor
