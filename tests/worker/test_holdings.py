"""A run is held from its claim until PostgreSQL has confirmed its end."""

from __future__ import annotations

from foliot.model.run import Claim
from foliot.store.store import Store
from foliot.worker.holdings import Holdings
from tests.support.new_runs import claim, run


async def claims_of(store: Store, count: int) -> list[Claim]:
    await store.run_inserts.insert_runs([run() for _ in range(count)])
    return await claim(store)


async def test_a_claimed_run_is_held_until_its_end_is_confirmed(store: Store) -> None:
    holdings = Holdings()
    claims = await claims_of(store, 3)
    holdings.take(claims)
    holdings.take(claims)
    assert sorted(holdings.keys()) == sorted((one.run_id, one.token) for one in claims)
    holdings.settle([(claims[0].run_id, claims[0].token)])
    assert len(holdings) == 2
    holdings.settle([(claims[0].run_id, claims[0].token)])
    assert len(holdings) == 2


async def test_a_claim_under_a_new_token_is_held_beside_the_old_one(store: Store) -> None:
    holdings = Holdings()
    (first,) = await claims_of(store, 1)
    holdings.take([first])
    holdings.settle([(first.run_id, first.token + 1)])
    assert holdings.keys() == [(first.run_id, first.token)]


async def test_nothing_is_held_after_the_lease_is_lost(store: Store) -> None:
    holdings = Holdings()
    holdings.take(await claims_of(store, 2))
    copy = holdings.keys()
    holdings.clear()
    assert (len(holdings), len(copy)) == (0, 2)
