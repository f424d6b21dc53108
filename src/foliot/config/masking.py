"""Masks secrets: passwords in URLs and in log lines, and the values of secret settings.

`cli/doctor/redaction.py` removes the known secrets from a whole report.
"""

from __future__ import annotations

import re

POSTGRES_URLS = ("database_url", "database_direct_url", "wait_for_row_url")
URLS = (*POSTGRES_URLS, "dispatch_url", "events_url", "coordination_url")
SECRETS = (*URLS, "archive_s3_secret_key", "search_password", "search_api_key", "otel_headers", "secret_key")
WORD = re.compile(r"\S+")
TOKEN_IN_URL = re.compile(r"((?:nats|tls)://)[^:@]*@")
"""The user of NATS, who has no password, is a token."""
TEXT_MAX = 8192


def shown(name: str, value: object) -> object:
    """The value of a setting without the secret in it."""
    if name not in SECRETS or not value:
        return value
    return without_password(str(value)) if name in URLS else "***"


def without_password(url: str) -> str:
    """The URL with its password masked, even a password that contains a raw @ or /."""
    if TOKEN_IN_URL.match(url):
        return TOKEN_IN_URL.sub(r"\1***@", url)
    shown = re.sub(r"(password=)[^&]*", r"\1***", url)
    end = shown.rfind("@")
    begin = re.search(r"://[^:/@]*:", shown[:end]) if end > 0 else None
    return f"{shown[: begin.end()]}***{shown[end:]}" if begin else shown


def presentable(text: str) -> str:
    """The text, bounded, without passwords in its URLs and without characters that can't be encoded: errors may quote
    anything."""
    if len(text) > TEXT_MAX:
        text = f"{_beginning(text[:TEXT_MAX])}[...]"
    if "://" in text or "password=" in text:
        text = WORD.sub(_masked, text)
    return text.encode("utf-8", "backslashreplace").decode()


def _beginning(text: str) -> str:
    """Drops a URL that was cut in two: the rest of its password could not be recognized and masked."""
    last = max(text.rfind(blank) for blank in " \t\n\r") + 1
    starts = [at for mark in ("://", "password=") if (at := text.find(mark, last)) >= 0]
    return text[: min(starts)] if starts else text


def _masked(word: re.Match[str]) -> str:
    return without_password(word[0]) if "://" in word[0] or "password=" in word[0] else word[0]
