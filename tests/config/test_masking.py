"""Passwords never appear in what Foliot shows."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.config import presentable, shown, without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:secret@host:5432/db", "postgresql://user:***@host:5432/db"),
        ("postgresql://user:se@cret@host/db", "postgresql://user:***@host/db"),
        ("postgresql://user:se/cr?et@host/db", "postgresql://user:***@host/db"),
        ("postgresql://host/db?password=secret&sslmode=require", "postgresql://host/db?password=***&sslmode=require"),
        ("postgresql://user@host:5432/db", "postgresql://user@host:5432/db"),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///db?host=/run/postgresql"),
        ("nats://s3cret@host:4222", "nats://***@host:4222"),
        ("nats://user:s3cret@host:4222", "nats://user:***@host:4222"),
        ("nats://host:4222", "nats://host:4222"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


@given(st.text(min_size=1), st.booleans())
def test_no_password_is_shown(password: str, is_quoted: bool) -> None:
    marked = f"<<{password}>>"
    url = f"postgresql://user:{quote(marked, safe='') if is_quoted else marked}@host/db"
    assert without_password(url) == "postgresql://user:***@host/db"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("database_url", "postgresql://user:secret@host/db", "postgresql://user:***@host/db"),
        ("secret_key", "k1,k2", "***"),
        ("otel_headers", "authorization=Bearer x", "***"),
        ("secret_key", "", ""),
        ("port", 8080, 8080),
    ],
)
def test_a_setting_is_shown_without_its_secret(name: str, value: object, expected: object) -> None:
    assert shown(name, value) == expected


def test_passwords_in_a_sentence_are_masked() -> None:
    text = "can't connect to postgresql://me:secret@db/x, nor to redis://:hush@cache:6379/0 \ud800"
    assert presentable(text) == "can't connect to postgresql://me:***@db/x, nor to redis://:***@cache:6379/0 \\ud800"
