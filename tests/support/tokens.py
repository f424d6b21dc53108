"""Tokens for tests, created in the store."""

from __future__ import annotations

from foliot.model.ids import new_id
from foliot.model.roles import EVERYWHERE, Role
from foliot.model.tokens import new_token_text
from foliot.store.store import Store
from foliot.store.tokens import NewToken


async def make_token(
    store: Store,
    role: Role = Role.ADMIN,
    namespace: str = EVERYWHERE,
    *,
    name: str = "",
    lives_seconds: float | None = 3600,
) -> str:
    text, token_id, digest = new_token_text()
    made = await store.tokens.insert_token(
        NewToken(token_id, digest, name or new_id().hex, role, namespace, "test", None, lives_seconds)
    )
    assert made is not None
    return text


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
