"""The rest of an output from any position, complete or with its middle dropped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from foliot.model.log_text import complete_length, pieces_from
from foliot.worker.executors.output import CappedOutput

letters = st.binary(max_size=120).map(lambda chunk: bytes(65 + byte % 26 for byte in chunk))


def kept_of(whole: bytes, limit: int) -> bytes:
    output = CappedOutput(limit)
    output.write(whole)
    return output.value()


@given(letters, st.integers(0, 150))
def test_the_rest_of_a_complete_output_is_shown(whole: bytes, position: int) -> None:
    pieces = pieces_from(whole, position)
    assert b"".join(piece for _, piece in pieces) == whole[position:]
    assert [reached for reached, _ in pieces] == ([len(whole)] if position < len(whole) else [])


@given(letters, st.integers(2, 60), st.integers(0, 130))
def test_a_shortened_output_shows_its_parts_and_counts_the_dropped_bytes(
    whole: bytes, limit: int, position: int
) -> None:
    if len(whole) <= limit:
        return
    head, tail_begin = limit // 2, len(whole) - (limit - limit // 2)
    shown, dropped = b"", 0
    for reached, piece in pieces_from(kept_of(whole, limit), position):
        if piece.startswith(b"\n[..."):
            dropped = int(piece.split()[1])
            assert reached == tail_begin
        else:
            shown += piece
    assert shown == whole[position:head] + whole[max(position, tail_begin) :]
    assert dropped == max(0, tail_begin - max(position, head))


def test_a_mark_printed_by_the_program_is_ordinary_text() -> None:
    written = b"a\n[... 5 bytes dropped ...]\nlonger than what is before it"
    assert pieces_from(written, 0) == [(len(written), written)]


@given(st.text(max_size=40), st.integers(0, 160))
def test_a_character_is_not_cut(text: str, at: int) -> None:
    whole = text.encode("utf-8", "ignore")
    first = whole[:at]
    length = complete_length(first)
    assert len(first) - length <= 3
    assert first[:length].decode() + whole[length:].decode() == whole.decode()


@given(st.binary(max_size=10))
def test_at_most_three_bytes_wait_for_the_rest_of_a_character(chunk: bytes) -> None:
    assert 0 <= len(chunk) - complete_length(chunk) <= 3
