"""Valid, wrong, expired, revoked and overused tokens; request ids; and the audit log."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import asyncpg
import httpx
import msgspec
import pytest
from fastapi import FastAPI

from foliot.api.app import build_app
from foliot.api.security.audit_log import ANONYMOUS_BURST, AuditLog
from foliot.api.security.authentication import REMEMBERED_SECONDS, WRONG_BURST, Credential, Tokens
from foliot.api.security.request_rate_limit import KEYS_MAX, RateLimit
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.roles import Role
from foliot.model.tokens import new_token_text, token_id_of
from foliot.store.store import Store
from foliot.submission.submitter import Submitter
from tests.support.fake_clock import FakeClock
from tests.support.tokens import bearer, make_token
from tests.support.waiting import until


@pytest.fixture
def is_open() -> bool:
    return False


@pytest.fixture
async def app(store: Store, config: Config, clock: Clock, events: EventBus, is_open: bool) -> AsyncIterator[FastAPI]:
    await store.workers.announce_tasks({"send": "mail"})
    submitter = Submitter(store=store, clock=clock, events=events)
    audit = AuditLog(store=store, clock=clock, events=events)
    await submitter.start()
    await audit.start()
    yield build_app(store=store, submitter=submitter, audit=audit, config=config, clock=clock, is_open=is_open)
    await submitter.stop()
    await audit.stop()


async def audit_of(sql: Any) -> list[tuple[Any, ...]]:
    return [
        tuple(row)
        for row in await sql.fetch("select actor, action, target, status, code from foliot.audit order by at, id")
    ]


async def test_a_request_with_a_valid_token_is_accepted(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    token = await make_token(store, Role.SUBMITTER, "default", name="ci")
    made = await client.post("/v1/jobs", json={"task": "send"}, headers=bearer(token))
    assert made.status_code == 201
    assert await audit_of(sql) == [("ci", "create_job", made.json()["id"], 201, None)]
    assert await sql.fetchval("select used_at is not null from foliot.tokens where name = 'ci'")
    # Reads are not recorded.
    assert (await client.get("/v1/runs", headers=bearer(token))).status_code == 200
    assert len(await audit_of(sql)) == 1


@pytest.mark.parametrize(
    "header",
    [
        "Bearer ",
        "Bearer x",
        "Bearer foliot_0000000000000000_" + "0" * 64 + "_00000000",
        "Basic Zm9vOmJhcg==",
        "Bearer \u00e4",
    ],
    ids=["empty", "short", "checksum", "basic", "latin"],
)
async def test_malformed_tokens_are_refused(client: httpx.AsyncClient, header: str) -> None:
    answer = await client.get("/v1/runs", headers=[(b"authorization", header.encode("latin-1"))])
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


async def test_a_wrong_secret_and_an_unknown_id_get_the_same_answer(client: httpx.AsyncClient, store: Store) -> None:
    token = await make_token(store)
    wrong = token.split("_")
    forged, unknown, _ = new_token_text()
    other_secret = f"foliot_{wrong[1]}_{forged.split('_')[2]}"
    other_secret += f"_{zlib.crc32(other_secret.encode()):08x}"
    assert token_id_of(other_secret) == wrong[1]
    assert token_id_of(forged) == unknown
    answers = [
        await client.get("/v1/runs", headers=bearer(text) | {"X-Request-Id": "same"}) for text in (other_secret, forged)
    ]
    assert [answer.status_code for answer in answers] == [401, 401]
    assert answers[0].content == answers[1].content


async def test_a_token_in_the_url_is_ignored(client: httpx.AsyncClient, store: Store) -> None:
    token = await make_token(store)
    for name in ("token", "access_token", "authorization"):
        assert (await client.get("/v1/runs", params={name: token})).status_code == 401


async def test_an_expired_token_is_refused(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    token = await make_token(store)
    await sql.execute("update foliot.tokens set expires_at = clock_timestamp()")
    assert (await client.get("/v1/runs", headers=bearer(token))).status_code == 401


async def test_a_revoked_token_is_refused_within_seconds_everywhere(client: httpx.AsyncClient, store: Store) -> None:
    admin, token = await make_token(store, name="admin"), await make_token(store, Role.VIEWER, "default", name="gone")
    assert (await client.get("/v1/runs", headers=bearer(token))).status_code == 200
    revoked = await client.delete("/v1/tokens/gone", headers=bearer(admin))
    assert (revoked.status_code, revoked.json()["status"]) == (200, "revoked")

    async def is_refused() -> bool:
        return (await client.get("/v1/runs", headers=bearer(token))).status_code == 401

    await until(is_refused, seconds=REMEMBERED_SECONDS + 10)
    listed = (await client.get("/v1/tokens", headers=bearer(admin))).json()["items"]
    assert [(one["name"], one["status"]) for one in listed] == [("admin", "active"), ("gone", "revoked")]
    # Afterwards the name is free again.
    assert (
        await client.post("/v1/tokens", json={"name": "gone", "role": "viewer"}, headers=bearer(admin))
    ).status_code == 201


async def test_a_token_is_cached_for_two_seconds(
    store: Store, config: Config, events: EventBus, fake_clock: FakeClock
) -> None:
    tokens, gone = Tokens(store=store, clock=fake_clock), Credential(await make_token(store, name="gone"))
    found = await tokens.find(gone)
    assert found is not None
    await store.tokens.revoke_token(found.id)
    assert await tokens.find(gone) is not None
    await fake_clock.advance(REMEMBERED_SECONDS + 0.1)
    assert await tokens.find(gone) is None


async def test_concurrent_requests_look_up_their_token_once(client: httpx.AsyncClient, store: Store) -> None:
    token, find = await make_token(store), store.tokens.find_token
    asked: list[str] = []

    async def counted(token_id: str) -> Any:
        asked.append(token_id)
        return await find(token_id)

    with patch.object(type(store.tokens), "find_token", staticmethod(counted)):
        answers = await asyncio.gather(*(client.get("/v1/pauses", headers=bearer(token)) for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert asked == [token_id_of(token)]


async def test_a_new_token_is_shown_once_and_stored_as_a_hash(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    admin = bearer(await make_token(store, name="admin"))
    made = await client.post("/v1/tokens", json={"name": "ci", "role": "submitter", "expires_in": "30d"}, headers=admin)
    assert made.status_code == 201, made.text
    text, token_id = made.json()["token"], made.json()["id"]
    assert made.headers["location"] == f"/v1/tokens/{token_id}"
    assert (await client.post("/v1/jobs", json={"task": "send"}, headers=bearer(text))).status_code == 201
    secret = text.split("_")[2]
    everything = await sql.fetch("select t::text from foliot.tokens t union all select a::text from foliot.audit a")
    assert not [row for row in everything if secret in row[0]]
    assert secret not in (await client.get("/v1/tokens", headers=admin)).text
    again = await client.post("/v1/tokens", json={"name": "ci", "role": "viewer"}, headers=admin)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    lived = await sql.fetchval("select expires_at - created_at from foliot.tokens where id = $1", token_id)
    assert lived == timedelta(days=30)
    for bad in ({"expires_in": "soon"}, {"role": "king"}, {"name": "a b"}, {"namespace": "A"}, {"namespace": "a/b"}):
        refused = await client.post("/v1/tokens", json={"name": "x", "role": "viewer"} | bad, headers=admin)
        assert (refused.status_code, refused.json()["field"]) == (422, next(iter(bad)))


async def test_a_token_can_not_create_a_more_powerful_token(client: httpx.AsyncClient, store: Store) -> None:
    team = bearer(await make_token(store, Role.ADMIN, "team"))
    for namespace, status in ((None, 201), ("team", 201), ("other", 403), ("*", 403)):
        body = {"name": f"for-{namespace or 'us'}".replace("*", "all"), "role": "admin", "namespace": namespace}
        assert (await client.post("/v1/tokens", json=body, headers=team)).status_code == status
    await make_token(store, Role.VIEWER, "other", name="theirs")
    assert (await client.delete("/v1/tokens/theirs", headers=team)).status_code == 404
    assert {one["namespace"] for one in (await client.get("/v1/tokens", headers=team)).json()["items"]} == {"team"}


async def test_wrong_tokens_are_limited_and_known_tokens_are_not(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    token = await make_token(store)
    assert (await client.get("/v1/pauses", headers=bearer(token))).status_code == 200
    statuses = [
        (await client.get("/v1/runs", headers=bearer(new_token_text()[0]))).status_code
        for _ in range(int(WRONG_BURST) + 20)
    ]
    assert statuses.count(401) >= WRONG_BURST
    assert statuses[-1] == 429
    recorded = await sql.fetchval("select count(*) from foliot.audit where status = 401")
    assert recorded == statuses.count(401)
    assert await sql.fetchval("select count(*) from foliot.audit where status = 429") == 0
    assert (await client.get("/v1/pauses", headers=bearer(token))).status_code == 200


async def test_a_flood_of_anonymous_requests_is_not_a_flood_of_entries(client: httpx.AsyncClient, sql: Any) -> None:
    for _ in range(int(ANONYMOUS_BURST) + 20):
        assert (await client.get("/v1/runs")).status_code == 401
    assert ANONYMOUS_BURST <= len(await audit_of(sql)) < ANONYMOUS_BURST + 15


async def test_a_token_above_its_request_limit_gets_429(
    store: Store, config: Config, clock: Clock, events: EventBus, sql: Any
) -> None:
    await store.workers.announce_tasks({"send": "mail"})
    submitter = Submitter(store=store, clock=clock, events=events)
    slow = msgspec.structs.replace(config, requests_per_second=1)
    app = build_app(store=store, submitter=submitter, audit=None, config=slow, clock=clock, is_open=False)
    transport = httpx.ASGITransport(app)
    first, second = bearer(await make_token(store)), bearer(await make_token(store))
    async with httpx.AsyncClient(transport=transport, base_url="http://foliot.example") as client:
        answers = [await client.get("/v1/pauses", headers=first) for _ in range(20)]
        assert 429 in {answer.status_code for answer in answers}
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.json()["code"] == "too_many_requests"
        assert int(refused.headers["retry-after"]) >= 1
        assert (await client.get("/v1/pauses", headers=second)).status_code == 200


async def test_a_bucket_refills(fake_clock: FakeClock) -> None:
    limit = RateLimit(clock=fake_clock, per_second=2, burst=3)
    assert [limit.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert limit.take("b") == 0
    assert limit.is_spent("a")
    await fake_clock.advance(0.5)
    assert [limit.take("a"), limit.take("a") > 0] == [0, True]
    for number in range(KEYS_MAX + 10):
        limit.take(str(number))
    assert len(limit._buckets) == KEYS_MAX


async def test_each_request_has_an_id(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    token = bearer(await make_token(store))
    given = await client.post("/v1/jobs", json={"task": "send"}, headers=token | {"X-Request-Id": "mine-1"})
    assert given.headers["x-request-id"] == "mine-1"
    assert await sql.fetchval("select request_id from foliot.audit") == "mine-1"
    for bad in ("a b", "x" * 129, "\u00e4"):
        raw = [(name.encode(), value.encode()) for name, value in token.items()]
        made = await client.get("/v1/runs/nothing", headers=[*raw, (b"x-request-id", bad.encode("latin-1"))])
        assert made.headers["x-request-id"] not in ("", bad)
        assert made.json()["request_id"] == made.headers["x-request-id"]


async def test_refusals_are_recorded_and_the_audit_log_is_append_only(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    viewer, admin = await make_token(store, Role.VIEWER, "default", name="eve"), await make_token(store, name="root")
    assert (await client.post("/v1/queues/mail/pause", json={}, headers=bearer(viewer))).status_code == 403
    assert (
        await client.post("/v1/queues/mail/pause", json={"reason": "rest"}, headers=bearer(admin))
    ).status_code == 200
    assert (await client.post("/v1/jobs", json={"task": "nothing"}, headers=bearer(admin))).status_code == 422
    assert (await client.post("/v1/jobs", json={"task": "send"})).status_code == 401
    assert await audit_of(sql) == [
        ("eve", "pause_queue", "mail", 403, "forbidden"),
        ("root", "pause_queue", "mail", 200, None),
        ("root", "create_job", None, 422, "unknown_task"),
        ("anonymous", "create_job", None, 401, "unauthenticated"),
    ]
    assert await sql.fetchval("select actor from foliot.pauses") == "root"
    shown = (await client.get("/v1/audit", headers=bearer(admin))).json()["items"]
    assert [entry["actor"] for entry in shown] == ["anonymous", "root", "root", "eve"]
    denied = (await client.get("/v1/audit?denied=1&limit=1", headers=bearer(admin))).json()
    assert [entry["status"] for entry in denied["items"]] == [401]
    rest = (await client.get(f"/v1/audit?denied=1&after={denied['next']}", headers=bearer(admin))).json()
    assert [(entry["actor"], entry["status"]) for entry in rest["items"]] == [("eve", 403)]
    only = (await client.get("/v1/audit?actor=root&action=pause_queue&target=mail", headers=bearer(admin))).json()[
        "items"
    ]
    assert len(only) == 1
    for statement in ("update foliot.audit set actor = 'x'", "delete from foliot.audit"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
            await sql.execute(statement)


class TestOpen:
    """Local open mode, which needs no token."""

    @pytest.fixture
    def is_open(self) -> bool:
        return True

    async def test_a_local_caller_may_do_everything(self, client: httpx.AsyncClient, sql: Any) -> None:
        made = await client.post("/v1/jobs", json={"task": "send"})
        assert made.status_code == 201
        assert (await client.post("/v1/pause", json={})).status_code == 200
        assert [entry[:4] for entry in await audit_of(sql)] == [
            ("local", "create_job", made.json()["id"], 201),
            ("local", "pause_everything", None, 200),
        ]

    async def test_a_token_is_checked_in_local_open_mode_too(self, client: httpx.AsyncClient, store: Store) -> None:
        viewer = bearer(await make_token(store, Role.VIEWER, "default"))
        assert (await client.get("/v1/runs", headers=viewer)).status_code == 200
        assert (await client.post("/v1/jobs", json={"task": "send"}, headers=viewer)).status_code == 403
        assert (await client.get("/v1/runs", headers=bearer("wrong"))).status_code == 401

    async def test_a_foreign_page_is_recorded_as_refused(self, client: httpx.AsyncClient, sql: Any) -> None:
        refused = await client.post("/v1/jobs", json={"task": "send"}, headers={"Origin": "http://evil.example"})
        assert (refused.status_code, refused.json()["code"]) == (403, "foreign_origin")
        assert await audit_of(sql) == [("anonymous", "enter", None, 403, "foreign_origin")]
