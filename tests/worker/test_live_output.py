"""Output of a running attempt is taken in parts, with positions, and is bounded."""

from __future__ import annotations

from foliot.worker.live_output import LiveOutput


def test_parts_have_their_positions() -> None:
    output = LiveOutput()
    output.write(b"abcde")
    output.write(b"")
    assert output.take(2) == [(0, b"ab"), (2, b"cd"), (4, b"e")]
    assert not output.is_waiting
    output.write(b"fg")
    assert output.take(100) == [(5, b"fg")]
    assert output.take(100) == []


def test_output_beyond_the_limit_is_not_kept() -> None:
    output = LiveOutput(room=4)
    output.write(b"abc")
    output.write(b"def")
    output.write(b"ghi")
    assert output.take(100) == [(0, b"abcd")]
    output.write(b"more")
    assert not output.is_waiting
