"""Carries out the first request with an idempotency key, and answers its repetitions with the first answer.

The key, the job and the answer are written in one transaction. A repetition that arrives while the first request is
still running waits for it, and a repetition after a lost answer finds that answer. Only successful requests are
remembered: a refused request can be corrected and sent again with the same key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import JsonResponse, json_response
from foliot.api.requests.bodies import in_body_thread
from foliot.api.requests.body_limits import BODY
from foliot.api.requests.headers import header_of
from foliot.api.security.audit_log import NoteWithin
from foliot.errors import Invalid, Malformed
from foliot.model.idempotency import check_idempotency_key, request_fingerprint
from foliot.model.namespace import Namespace
from foliot.store.postgres import Transaction
from foliot.store.store import Store

HEADER = "Idempotency-Key"
CREATED, NOT_CREATED = '"created":true}', '"created":false}'
Work = Callable[[Transaction], Awaitable[msgspec.Struct]]


def idempotency_key_of(request: Request, field: str | None) -> str | None:
    """The key from the header or the body."""
    header = header_of(request, HEADER.lower())
    if header is not None and field is not None and header != field:
        raise Invalid(
            f"idempotency_key: {field!r} here, but {header!r} in the header {HEADER}; give one", field="idempotency_key"
        )
    key = field if header is None else header
    return None if key is None else check_idempotency_key(key)


class IdempotentRequests:
    def __init__(self, *, store: Store) -> None:
        self._idempotency = store.idempotency

    async def answer(
        self,
        namespace: Namespace,
        key: str,
        path: str,
        body: bytes,
        prepare: Callable[[], Awaitable[Work]],
        on_done: Callable[[msgspec.Struct], None],
        note: NoteWithin,
    ) -> Response:
        """201 with what `work` gave, or 200 with what it gave the first time. `prepare` is called only if there is no
        answer yet."""
        key, fingerprint = (
            namespace.qualified_key(key),
            await in_body_thread(body, partial(request_fingerprint, path, body)),
        )
        kept = await self._idempotency.find_answer(key, fingerprint)
        if kept is None:
            work = note.around(await prepare())
            own: dict[str, msgspec.Struct] = {}

            async def encoded(within: Transaction) -> str:
                made = await work(within)
                text = msgspec.json.encode(made).decode()
                own[text] = made
                return text

            try:
                kept = await self._idempotency.once(key, fingerprint, encoded)
            except RecursionError:
                # The nesting limit of the JSON encoder depends on its stack. Nothing has been stored yet.
                raise Malformed("the body is nested too deeply", field=BODY) from None
            # An answer that this request stored itself, before its commit was confirmed, is not a repetition.
            if kept.text in own:
                note.committed()
                on_done(own[kept.text])
                return answered(own[kept.text], 201)
        # The stored text is sent unchanged, so that deeply nested payloads need no decoding. `created` is the last
        # field of every such answer.
        text = kept.text.removesuffix(CREATED) + NOT_CREATED if kept.text.endswith(CREATED) else kept.text
        return JsonResponse(text, 200)


def answered(body: object, status: int = 200, *, where: str = "/v1/jobs") -> Response:
    """Where what was created is found goes into the head."""
    made = getattr(body, "id", None) if status == 201 else None
    headers = {"Location": f"{where}/{made}"} if made else None
    return json_response(body, status, headers)
