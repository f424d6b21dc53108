"""Requests with an idempotency key: the first is carried out, and those that repeat it get its answer.

The key, the job and the answer are written in one transaction, so a repetition that comes while the first is under way
waits for it, and one that comes after a lost answer finds it. Only what was carried out is remembered: a refused
request may be mended and sent again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.requests.bodies import BODY, in_body_thread
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
    """That of the header, or of the body."""
    header = request.headers.get(HEADER)
    if header is not None and field is not None and header != field:
        raise Invalid(
            f"idempotency_key: {field!r} here, but {header!r} in the header {HEADER}; give one", field="idempotency_key"
        )
    key = field if header is None else header
    return None if key is None else check_idempotency_key(key)


class IdempotentRequests:
    def __init__(self, *, store: Store) -> None:
        self._submissions = store.submissions

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
        kept = await self._submissions.find_answer(key, fingerprint)
        if kept is None:
            work = note.around(await prepare())
            own: dict[str, msgspec.Struct] = {}

            async def encoded(within: Transaction) -> str:
                made = await work(within)
                text = msgspec.json.encode(made).decode()
                own[text] = made
                return text

            try:
                kept = await self._submissions.once(key, fingerprint, encoded)
            except RecursionError:
                # How deep a payload may be depends on how deep its writer is already; nothing has been stored.
                raise Malformed("the body is nested too deeply", field=BODY) from None
            # Its own answer, found again after that of the commit got lost, is not a repetition.
            if kept.text in own:
                note.committed()
                on_done(own[kept.text])
                return answered(own[kept.text], 201)
        # Word for word, however deep a payload is in it: `created` is the last field of every such answer.
        text = kept.text.removesuffix(CREATED) + NOT_CREATED if kept.text.endswith(CREATED) else kept.text
        return Response(text, 200, media_type="application/json")


def answered(body: object, status: int = 200, *, where: str = "/v1/jobs") -> Response:
    """Where what was created is found goes into the head."""
    made = getattr(body, "id", None) if status == 201 else None
    headers = {"Location": f"{where}/{made}"} if made else None
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")
