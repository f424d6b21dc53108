"""Output that is capped while it is read: head and tail are exact, and so is the count of what fell out between
them."""

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
def test_what_fits_is_kept_as_it_is(limit: int, written: list[bytes]) -> None:
    whole = b"".join(written)
    output = capped(max(limit, len(whole)), written)
    assert (output.value(), output.dropped) == (whole, 0)


@given(limits, chunks)
def test_of_what_does_not_fit_head_and_tail_are_exact_and_the_rest_is_counted(limit: int, written: list[bytes]) -> None:
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
def test_it_does_not_matter_how_the_output_was_cut_into_chunks(limit: int, written: list[bytes]) -> None:
    whole = b"".join(written)
    assert capped(limit, written).value() == capped(limit, [whole]).value()
    assert (
        capped(limit, [whole[index : index + 1] for index in range(len(whole))]).value()
        == capped(limit, [whole]).value()
    )


def test_any_bytes_are_kept() -> None:
    assert capped(1000, [bytes(range(256))]).value() == bytes(range(256))
