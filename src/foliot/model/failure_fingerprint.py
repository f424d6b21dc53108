"""The pattern of a failure: the kind of its error, and the message without its variable parts.

The store hashes the pattern together with the task's name. Dead letters are grouped by this fingerprint.
"""

from __future__ import annotations

import re

import msgspec

from foliot.model.outcome import AttemptError

# Read before it is normalised, and kept of it after.
READ_MAX, PATTERN_MAX = 2000, 300
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_PATH = re.compile(r"(?<![\w<])(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'\"<>,;()]+){2,}[\\/]?")
_HEXADECIMAL = re.compile(r"\b(?:0x[0-9a-fA-F]+|(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,})\b")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_BLANKS = re.compile(r"\s+")

decode_error = msgspec.json.Decoder(AttemptError).decode


def error_pattern(error: str | None) -> str:
    """Of an error as it is stored. One without an error, or with a foreign one, has the empty pattern."""
    if error is None:
        return ""
    try:
        found = decode_error(error)
    except msgspec.DecodeError:
        return ""
    return pattern_of(found.kind, found.message)


def pattern_of(kind: str, message: str) -> str:
    text = message[:READ_MAX]
    for expression, word in (
        (_UUID, "<id>"),
        (_PATH, "<path>"),
        (_HEXADECIMAL, "<hex>"),
        (_NUMBER, "<n>"),
        (_BLANKS, " "),
    ):
        text = expression.sub(word, text)
    return f"{kind}: {text.strip()}"[:PATTERN_MAX]


WORKER_LOST_PATTERN = pattern_of("WorkerLost", "the worker died 3 times while it ran this")
