"""The texts of access tokens, and how long tokens live."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.errors import Invalid
from foliot.model.tokens import hash_of, is_hash_of, life_of, new_token_text, token_id_of


def test_a_token_is_found_by_its_id_and_known_by_its_hash() -> None:
    text, token_id, digest = new_token_text()
    assert token_id_of(text) == token_id
    assert digest == hash_of(text)
    assert is_hash_of(digest, text)
    assert not is_hash_of(digest, new_token_text()[0])
    assert len({new_token_text()[0] for _ in range(100)}) == 100


@given(position=st.integers(0, 200), character=st.sampled_from("0123456789abcdefx_"))
def test_a_mistyped_token_is_recognized(position: int, character: str) -> None:
    text = new_token_text()[0]
    position %= len(text)
    mistyped = text[:position] + character + text[position + 1 :]
    assert mistyped == text or token_id_of(mistyped) is None


@given(st.text())
def test_any_text_is_handled_as_a_token(text: str) -> None:
    assert token_id_of(text) is None


def test_the_lifetime_of_a_token_is_parsed() -> None:
    assert life_of("never") is None
    assert life_of("90d") == 90 * 86_400
    with pytest.raises(Invalid):
        life_of("soon")
