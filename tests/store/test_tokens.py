"""Access tokens in the store: a name is free again once its token is revoked, and expired tokens are not valid."""

from __future__ import annotations

import pytest

from foliot.clock import Clock
from foliot.model.roles import Role
from foliot.model.tokens import new_token_text
from foliot.store.store import Store
from foliot.store.tokens import NewToken
from tests.support.fake_clock import FakeClock


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


def new_token(name: str, *, namespace: str = "team", lives_seconds: float | None = 60.0) -> NewToken:
    _, token_id, digest = new_token_text()
    return NewToken(token_id, digest, name, Role.OPERATOR, namespace, "test", None, lives_seconds)


async def test_a_token_keeps_its_name_until_it_is_revoked(store: Store, fake_clock: FakeClock) -> None:
    first, again = new_token("ci"), new_token("ci")
    assert not await store.tokens.has_tokens()
    assert await store.tokens.insert_token(first) is not None
    assert await store.tokens.insert_token(again) is None
    found = await store.tokens.find_token(first.id)
    assert found is not None
    assert found[0] == first.hash
    assert (found[1].role, found[1].namespace, found[1].is_valid) == (Role.OPERATOR, "team", True)
    await fake_clock.advance(60)
    assert not await store.tokens.has_tokens()
    assert await store.tokens.insert_token(again) is None
    assert await store.tokens.revoke_token(first.id) is not None
    assert await store.tokens.insert_token(again) is not None


async def test_a_revoked_token_is_listed_but_not_valid(store: Store) -> None:
    mine, other = new_token("mine"), new_token("other", namespace="elsewhere", lives_seconds=None)
    for one in (mine, other):
        assert await store.tokens.insert_token(one) is not None
    assert await store.tokens.revoke_token(mine.id) is not None
    assert await store.tokens.revoke_token("0" * 16) is None
    assert [(token.name, token.is_valid) for token in await store.tokens.list_tokens("team")] == [("mine", False)]
    assert {token.name for token in await store.tokens.list_tokens(None)} == {"mine", "other"}
    assert [token.id for token in await store.tokens.find_tokens_named("other", None)] == [other.id]
    assert await store.tokens.find_tokens_named("other", "team") == []
