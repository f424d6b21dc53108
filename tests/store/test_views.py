"""Saved views belong to their owner or to the namespace, and their number is limited."""

from __future__ import annotations

import pytest

from foliot.model.namespace import Namespace
from foliot.store import views
from foliot.store.store import Store
from foliot.store.views import SHARED

TEAM, OTHER = Namespace("team"), Namespace("other")


async def put(store: Store, owner: str, name: str, search: str = "?state=failed") -> bool:
    return await store.views.put_view(TEAM, owner, page="runs", name=name, search=search, by="ann") is not None


async def test_a_view_is_seen_by_its_owner_and_a_shared_one_by_all(store: Store) -> None:
    assert await put(store, "ann", "mine")
    assert await put(store, SHARED, "ours")
    assert [view.name for view in await store.views.list_views(TEAM, "ann")] == ["mine", "ours"]
    assert [(view.name, view.is_shared) for view in await store.views.list_views(TEAM, "bob")] == [("ours", True)]
    assert await store.views.list_views(OTHER, "ann") == []
    await store.views.delete_view(TEAM, "bob", page="runs", name="mine")
    assert len(await store.views.list_views(TEAM, "ann")) == 2
    await store.views.delete_view(TEAM, "ann", page="runs", name="mine")
    assert [view.name for view in await store.views.list_views(TEAM, "ann")] == ["ours"]


async def test_a_full_owner_may_still_replace_a_view(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MOST", 1)
    assert await put(store, "ann", "one")
    assert not await put(store, "ann", "two")
    assert await put(store, "ann", "one", "?state=ready")
    assert [view.search for view in await store.views.list_views(TEAM, "ann")] == ["?state=ready"]
