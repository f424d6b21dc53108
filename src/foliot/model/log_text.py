"""Reads an attempt's output from a position on. Positions count the bytes that the attempt has written.

The stored output may be only the head and the tail, with a mark between them that says how much was dropped.
"""

from __future__ import annotations

import re

_MARK = re.compile(rb"\n\[\.\.\. (\d{1,18}) bytes dropped \.\.\.\]\n")


def capped(shown: bytes, limit: int) -> bytes:
    """Cuts an output to its head and its tail, with a mark between them."""
    dropped = len(shown) - limit
    if dropped <= 0:
        return shown
    head = limit // 2
    return shown[:head] + b"\n[... %d bytes dropped ...]\n" % dropped + shown[head + dropped :]


def pieces_from(kept: bytes, position: int) -> list[tuple[int, bytes]]:
    """The pieces to show after `position`, each with the position at its end."""
    head, dropped, tail = _parted(kept)
    resumes_at = len(head) + dropped
    pieces: list[tuple[int, bytes]] = []
    if position < len(head):
        pieces.append((len(head), head[position:]))
        position = len(head)
    if position < resumes_at:
        pieces.append((resumes_at, b"\n[... %d bytes dropped ...]\n" % (resumes_at - position)))
        position = resumes_at
    if rest := tail[position - resumes_at :]:
        pieces.append((resumes_at + len(tail), rest))
    return pieces


def complete_length(chunk: bytes) -> int:
    """How much of it is no beginning of a character whose end is still to come."""
    for back in range(1, min(4, len(chunk) + 1)):
        first = chunk[-back]
        if first & 0xC0 == 0x80:
            continue
        needed = 4 if first >= 0xF0 else 3 if first >= 0xE0 else 2 if first >= 0xC0 else 1
        return len(chunk) - back if needed > back else len(chunk)
    return len(chunk)


def _parted(kept: bytes) -> tuple[bytes, int, bytes]:
    """Head, number of bytes dropped, tail. A program may write what looks like our mark; ours is in the very middle."""
    for found in _MARK.finditer(kept):
        if 0 <= len(kept) - found.end() - found.start() <= 1:
            return kept[: found.start()], int(found[1]), kept[found.end() :]
    return kept, 0, b""
