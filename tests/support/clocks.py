"""Processes with wrong wall clocks and correct monotonic clocks, as on a real machine."""

from __future__ import annotations

from pathlib import Path

from tests.support.debian import require


def faked(database_url: str, **shift: str) -> dict[str, str]:
    return {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": "0", **faking(**shift)}


def faking(**shift: str) -> dict[str, str]:
    require("faketime", "faketime")
    (library,) = list(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))[:1]
    return {"LD_PRELOAD": str(library), "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", **shift}


class SteppingClock:
    """A wall clock that several processes share and a test sets while they run."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "clock"
        self.set("+0")

    def of(self, database_url: str) -> dict[str, str]:
        return faked(database_url, **self._shift())

    def environment(self) -> dict[str, str]:
        return faking(**self._shift())

    def _shift(self) -> dict[str, str]:
        return {"FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_NO_CACHE": "1"}

    def set(self, shift: str) -> None:
        # Written atomically: processes read it all the time.
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{shift}\n")
        fresh.replace(self._file)
