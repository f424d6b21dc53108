"""Capped output: head and tail are exact, and so is the number of bytes dropped between them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from foliot.worker.executors.output import CappedOutput

MARK = re.compile(rb"\n\[\.\.\. (\d+) bytes dropped \.\.\.\]\n")
limits = st.integers(min_value=0, max_value=64)
# Single letters never look like the mark.
chunks = st.lists(st.binary(max_size=40).map(lambda chunk: bytes(65 + byte % 26 for byte in chunk)), max_size=30)


def capped(limit: int, written: list[bytes]) -> CappedOutput:
    output = CappedOutput(limit)
    for chunk in written:
        output.write(chunk)
    return output


@given(limits, chunks)
def test_output_within_the_limit_is_kept_unchanged(limit: int, written: list[bytes]) -> None:
    whole = b"".join(written)
    output = capped(max(limit, len(whole)), written)
    assert (output.value(), output.dropped) == (whole, 0)


@given(limits, chunks)
def test_longer_output_keeps_head_and_tail_and_counts_the_rest(limit: int, written: list[bytes]) -> None:
    whole = b"".join(written)
    output = capped(limit, written)
    if len(whole) <= limit:
        return
    head, dropped, tail = MARK.split(output.value())
    assert head == whole[: limit // 2]
    assert tail == whole[len(whole) - (limit - limit // 2) :]
    assert int(dropped) == output.dropped == len(whole) - limit


@given(limits, chunks)
def test_never_more_than_the_limit_is_held(limit: int, written: list[bytes]) -> None:
    output = CappedOutput(limit)
    for chunk in written:
        output.write(chunk)
        assert len(MARK.sub(b"", output.value())) <= limit
        assert len(output._head) + sum(map(len, output._tail)) <= limit


@given(limits, chunks)
def test_the_result_does_not_depend_on_chunks(limit: int, written: list[bytes]) -> None:
    whole = b"".join(written)
    assert capped(limit, written).value() == capped(limit, [whole]).value()
    assert (
        capped(limit, [whole[index : index + 1] for index in range(len(whole))]).value()
        == capped(limit, [whole]).value()
    )


def test_any_bytes_are_kept() -> None:
    assert capped(1000, [bytes(range(256))]).value() == bytes(range(256))
