"""Sources: rules that turn messages of other systems into jobs. Pure.

A message is a JSON object. `filter` decides whether it becomes a job, and the placeholders of `payload` and `key` take
values from it. Values are never code: in a command they are quoted, in a URL they are encoded, and placeholders in them
are not rendered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.config import did_you_mean
from foliot.errors import Invalid
from foliot.model.condition_evaluation import evaluate
from foliot.model.expressions import MESSAGE_ROOTS, EvaluationError, ExpressionError, Scope
from foliot.model.expressions import parse as parse_condition
from foliot.model.field_rules import Rule, all_of, any_of, field_is, given, not_given
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace, namespace_of
from foliot.model.priority import PRIORITY_MAX, PRIORITY_MIN
from foliot.model.rendering import NEVER_RENDERED, RENDERED_BY_DEFAULT, render_payload
from foliot.model.run import Tags
from foliot.model.run_request import Name
from foliot.model.templates import (
    RENDERED_MAX,
    Placeholder,
    TemplateError,
    Unrenderable,
    check_filters,
    look_up,
    parse,
    render,
)
from foliot.validation_errors import form

MESSAGE_MAX_BYTES = 1_048_576
KEY_MAX = 500
NAMES = ("message", "headers", "message_id")
REFERENCE = form(r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:/[^\x00]+)$(?!\n)", "be env:NAME or file:/path")
WEBHOOK = "webhook"
BROKERS = ("redis", "rabbitmq", "nats", "kafka", "sqs")
decode_json = msgspec.json.Decoder(dict[str, Any]).decode

Reference = Annotated[str, Meta(max_length=1000, pattern=REFERENCE)]


class Unusable(Exception):
    """The message can't become a job, however often it is tried."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Which messages become which jobs."""

    kind: Literal["redis", "rabbitmq", "nats", "kafka", "sqs", "webhook"]
    task: Name
    url: Annotated[Reference, Meta(description="Where the URL of the broker is: env:NAME or file:/path.")] | None = None
    topic: (
        Annotated[str, Meta(min_length=1, max_length=200, description="The stream, queue, subject or topic.")] | None
    ) = None
    secret: (
        Annotated[Reference, Meta(description="Where the secret of a webhook is: env:NAME or file:/path.")] | None
    ) = None
    queue: Name | None = None
    priority: Annotated[int, Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)] = 0
    tags: Tags | None = None
    payload: (
        Annotated[
            dict[str, Any],
            Meta(
                description="The payload of the job, with placeholders such as `{{ message.customer }}`. By default "
                "the whole message."
            ),
        ]
        | None
    ) = None
    filter: (
        Annotated[
            str,
            Meta(
                max_length=2000,
                description='Which messages become jobs, such as `message.type == "paid"`. By default all.',
            ),
        ]
        | None
    ) = None
    key: (
        Annotated[
            str,
            Meta(
                max_length=1000,
                description="Messages with the same key become one job. By default the id that the "
                "broker gives to the message.",
            ),
        ]
        | None
    ) = None
    paused: bool = False

    RULES: ClassVar[tuple[Rule, ...]] = (
        any_of(
            all_of(field_is("kind", {"const": WEBHOOK}, required=True), given("secret"), not_given("url", "topic")),
            all_of(
                field_is("kind", {"enum": list(BROKERS)}, required=True), given("url", "topic"), not_given("secret")
            ),
        ),
    )


@dataclass(frozen=True, slots=True)
class StoredSource:
    name: str
    """Qualified."""
    version: int
    source: Source
    created_at: datetime
    updated_at: datetime
    received_at: datetime | None
    failing_since: datetime | None
    error: str | None

    @property
    def namespace(self) -> Namespace:
        return Namespace(namespace_of(self.name))


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    id: str | None
    """The same whenever the message is delivered. None: the broker gives none."""
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """A message that could not become a job."""

    id: UUID
    at: datetime
    message_id: str
    reason: str
    body: bytes
    headers: Mapping[str, str]


def check_source(source: Source) -> None:
    """Raises `Invalid`."""
    if source.kind == WEBHOOK:
        _refuse(source.secret is None, "secret", "a webhook needs one, such as env:ORDERS_SECRET or file:/run/secret")
        _refuse(source.url is not None, "url", "a webhook has none: its messages come to this server")
        _refuse(source.topic is not None, "topic", "a webhook has none")
    else:
        _refuse(source.url is None, "url", f"{source.kind} needs one, such as env:ORDERS_URL or file:/run/orders-url")
        _refuse(source.topic is None, "topic", f"{source.kind} needs the name of a stream, queue, subject or topic")
        _refuse(source.secret is not None, "secret", "only a webhook has one")
    _refuse(source.task in NEVER_RENDERED - {"simulate"}, "task", f"messages can't start the task {source.task!r}")
    if source.task in RENDERED_BY_DEFAULT:
        _refuse(source.payload is None, "payload", f"{source.task} needs one: a whole message could be any command")
    for place, text in _texts(source.payload or {}, "payload"):
        _check_text(place, text)
    if source.key is not None:
        _check_text("key", source.key)
    if source.filter is not None:
        try:
            parse_condition(source.filter, MESSAGE_ROOTS)
        except ExpressionError as error:
            raise Invalid(f"filter: {error.detail}", field="filter") from None


def job_of(source: Source, message: IncomingMessage) -> tuple[str, JobRequest] | None:
    """The key and the job of a message. None if the filter does not take it. Raises `Unusable`."""
    if len(message.body) > MESSAGE_MAX_BYTES:
        raise Unusable(f"the message is larger than {MESSAGE_MAX_BYTES} bytes")
    try:
        decoded = decode_json(message.body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unusable(f"the message is no JSON object: {error}") from None
    values = {"message": decoded, "headers": dict(message.headers), "message_id": message.id}
    try:
        if source.filter is not None and not evaluate(
            parse_condition(source.filter, MESSAGE_ROOTS), Scope(others=values)
        ):
            return None
        payload = decoded if source.payload is None else _rendered(source.task, source.payload, values)
        key = message.id if source.key is None else render(source.key, values, lambda _, value: value)
    except EvaluationError as error:
        raise Unusable(f"filter: {error}") from None
    except (Unrenderable, RecursionError) as error:
        raise Unusable(str(error) or "the message is nested too deeply") from None
    if not key:
        raise Unusable("the message has no id, so it could become two jobs; give the source a key or the message an id")
    if len(key) > KEY_MAX or not key.isprintable():
        raise Unusable(f"the key is not a printable text of at most {KEY_MAX} characters")
    job = JobRequest(
        task=source.task,
        queue=source.queue,
        priority=source.priority,
        tags=source.tags,
        payload=payload,
        # The templates of the source have been rendered. The values of a message are data.
        templates=False if source.task in RENDERED_BY_DEFAULT else None,
    )
    return key, job


def _rendered(task: str, payload: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    if task in RENDERED_BY_DEFAULT:
        return render_payload(task, payload, values)
    left = RENDERED_MAX

    def inserted(_: Placeholder, value: str) -> str:
        nonlocal left
        left -= len(value)
        if left < 0:
            raise Unrenderable(f"the placeholders of the payload become more than {RENDERED_MAX} characters")
        return value

    def rendered(value: Any) -> Any:
        if isinstance(value, str):
            parts = parse(value)
            if len(parts) == 1 and isinstance(parts[0], Placeholder) and not parts[0].filters:
                # The value itself, so that a number stays a number.
                return look_up(parts[0], values)
            return render(value, values, inserted)
        if isinstance(value, Mapping):
            return {name: rendered(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [rendered(inner) for inner in value]
        return value

    return {name: rendered(inner) for name, inner in payload.items()}


def _check_text(place: str, text: str) -> None:
    try:
        for part in parse(text):
            if isinstance(part, Placeholder):
                if part.name is not None and part.name not in NAMES:
                    raise TemplateError(
                        f"there is no name {part.name!r}{did_you_mean(part.name, NAMES)}; the names are "
                        f"{', '.join(NAMES)}",
                        part.position,
                    )
                check_filters(part, None)
    except TemplateError as error:
        raise Invalid(f"{place}: {error.detail}", field=place) from None


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{place}[{number}]")


def _refuse(is_wrong: bool, field: str, why: str) -> None:
    if is_wrong:
        raise Invalid(f"{field}: {why}", field=field)
