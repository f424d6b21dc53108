"""The arguments of task functions: checked and encoded by the submitter, and decoded by the worker."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import annotated_types
import msgspec
import pydantic
import pytest
from jsonschema import Draft202012Validator

import foliot
from foliot.errors import Invalid
from foliot.model.json_text import encode_finite
from foliot.sdk.signature import Signature

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]

UTC = dt.UTC


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Size(enum.IntEnum):
    SMALL = 1


class Point(NamedTuple):
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    retries: int


@dataclass
class Line:
    article: str
    price: Decimal
    colour: Colour = Colour.RED


@dataclass
class Order:
    customer_id: int
    lines: list[Line] = field(default_factory=list)
    parent: Order | None = None


class Closed(msgspec.Struct, forbid_unknown_fields=True, tag="closed"):
    at: dt.datetime


class Address(pydantic.BaseModel):
    street: str
    zip_code: int = pydantic.Field(alias="zip", gt=0)


class Person(pydantic.BaseModel):
    name: str
    born: dt.date
    addresses: list[Address] = []


@dataclass
class Parcel:
    to: Address
    weight: float


ADDRESS = Address(street="Main", zip=4000)
VALUES: list[tuple[Any, Any]] = [
    (int, 7),
    (float, 1.5),
    (bool, True),
    (str, "text"),
    (bytes, b"\x00\xff"),
    (dt.datetime, dt.datetime(2026, 1, 31, 8, tzinfo=UTC)),
    (dt.datetime, dt.datetime(2026, 1, 31, 8)),  # noqa: DTZ001
    (dt.date, dt.date(2026, 1, 31)),
    (dt.time, dt.time(8, 30, 1)),
    (dt.timedelta, dt.timedelta(days=1, seconds=1.5)),
    (UUID, UUID(int=7)),
    (Decimal, Decimal("9.950")),
    (Colour, Colour.GREEN),
    (Size, Size.SMALL),
    (Literal["a", 1], "a"),
    (Path, Path("/tmp/x")),
    (PurePosixPath, PurePosixPath("x")),
    (Path | None, None),
    (list[Path], [Path("a"), Path("b")]),
    (list[int], [1, 2]),
    (set[int], {1, 2}),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2)),
    (dict[str, dt.date], {"a": dt.date(2026, 1, 1)}),
    (dict[int, str], {1: "a", -2: "b"}),
    (int | None, None),
    (int | str, "a"),
    (str | UUID, UUID(int=7)),
    (dt.date | dt.datetime, dt.datetime(2026, 1, 31, 8, tzinfo=UTC)),
    (Point, Point(1, 2)),
    (Options, {"retries": 1}),
    (Line, Line("pen", Decimal("1.20"))),
    (Order, Order(7, [Line("pen", Decimal(1), Colour.GREEN)], Order(8))),
    (Closed, Closed(dt.datetime(2026, 1, 31, tzinfo=UTC))),
    (Address, ADDRESS),
    (Person, Person(name="Ann", born=dt.date(1990, 1, 1), addresses=[ADDRESS])),
    (list[Person] | None, [Person(name="Ann", born=dt.date(1990, 1, 1))]),
    (Parcel, Parcel(ADDRESS, 1.5)),
    (Annotated[int, pydantic.Field(gt=0)], 7),
    (pydantic.HttpUrl, pydantic.HttpUrl("https://example.org/")),
    (Any, {"a": [1, None]}),
    (object, [1]),
]


def signature_for(annotation: Any) -> Signature:
    def task(value: Any) -> Any:
        return value

    task.__annotations__ = {"value": annotation, "return": annotation}
    return Signature(task)


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=str)
def test_values_arrive_with_their_types(annotation: Any, value: Any) -> None:
    signature = signature_for(annotation)
    stored = msgspec.json.decode(encode_finite(signature.payload((), {"value": value})))
    assert signature.schema is not None
    Draft202012Validator.check_schema(signature.schema)
    Draft202012Validator(signature.schema).validate(stored)
    assert signature.checker is not None
    assert signature.checker.fault_in(stored) is None
    arrived = signature.bind(stored)["value"]
    assert arrived == value
    assert type(arrived) is type(value)
    assert signature.result.convert(stored["value"]) == value


@pytest.mark.parametrize(
    ("annotation", "value", "field"),
    [
        (int, "abc", "payload.value"),
        (int, "5", "payload.value"),
        (int, 1.5, "payload.value"),
        (int, True, "payload.value"),
        (int, None, "payload.value"),
        (float, "1", "payload.value"),
        (str, 1, "payload.value"),
        (bool, 1, "payload.value"),
        (bytes, "%", "payload.value"),
        (dt.datetime, "tomorrow", "payload.value"),
        (dt.datetime, 5, "payload.value"),
        (dt.date, "2026-02-30", "payload.value"),
        (dt.timedelta, "90 s", "payload.value"),
        (UUID, "7", "payload.value"),
        (Decimal, "a lot", "payload.value"),
        (Colour, "blue", "payload.value"),
        (Literal["a"], "b", "payload.value"),
        (Path, 7, "payload.value"),
        (list[int], [1, "2"], "payload.value[1]"),
        (dict[int, str], {"a": "b"}, "payload.value.a"),
        (Point, [1, 2, 3], "payload.value"),
        (Options, {"retries": "1"}, "payload.value.retries"),
        (Order, {"customer_id": 7, "lines": [{"article": "pen"}]}, "payload.value.lines[0].price"),
        (Closed, {"type": "closed", "at": "2026-01-31T00:00:00Z", "more": 1}, "payload.value.more"),
        (Address, {"street": "Main"}, "payload.value.zip"),
        (Address, {"street": "Main", "zip": 0}, "payload.value.zip"),
        (list[Person], [{"name": "Ann", "born": "x"}], "payload.value[0].born"),
        (Annotated[int, annotated_types.Gt(0)], 0, "payload.value"),
        (Annotated[int, msgspec.Meta(ge=1)], 0, "payload.value"),
        (str | UUID, 7, "payload.value"),
    ],
    ids=str,
)
def test_wrong_values_are_refused_on_both_sides(annotation: Any, value: Any, field: str) -> None:
    signature = signature_for(annotation)
    for refuse in (signature.bind, lambda payload: signature.payload((), payload)):
        with pytest.raises(Invalid) as caught:
            refuse({"value": value})
        assert caught.value.field == field
        assert caught.value.detail.startswith(f"{field}: ")


def test_an_int_is_fine_for_a_float_and_a_number_for_a_decimal() -> None:
    assert signature_for(float).bind({"value": 5}) == {"value": 5.0}
    assert signature_for(Decimal).bind({"value": 5}) == {"value": Decimal(5)}
    assert signature_for(Decimal).payload((), {"value": 5}) == {"value": 5}


def test_arguments_are_named_and_checked() -> None:
    def send(customer_id: int, note: str = "", *, copies: int = 1) -> None: ...

    signature = Signature(send)
    assert signature.payload((7, "x"), {"copies": 2}) == {"customer_id": 7, "note": "x", "copies": 2}
    for args, kwargs, message in (
        ((), {}, "payload.customer_id: is required"),
        ((), {"custmer_id": 7}, "payload.custmer_id: there is no such field, did you mean 'customer_id'?"),
        ((7, "x", 1), {}, "payload: the task takes 2 arguments by position, not 3"),
        ((7,), {"customer_id": 7}, "payload.customer_id: is given twice"),
    ):
        with pytest.raises(Invalid) as caught:
            signature.payload(args, kwargs)
        assert caught.value.detail == message
    assert signature.bind({"customer_id": 7}) == {"customer_id": 7}


def test_the_schema_has_what_a_form_needs() -> None:
    def send(
        customer_id: Annotated[int, msgspec.Meta(description="Who pays.", title="Customer", ge=1)],
        colour: Colour = Colour.RED,
        person: Person | None = None,
        line: Line | None = None,
    ) -> None: ...

    schema = Signature(send).schema
    assert schema is not None
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert list(schema["properties"]) == ["customer_id", "colour", "person", "line"]
    assert schema["properties"]["customer_id"] == {
        "type": "integer", "minimum": 1, "title": "Customer", "description": "Who pays.",
    }  # fmt: skip
    assert schema["properties"]["colour"] == {"$ref": "#/$defs/Colour", "default": "red"}
    assert schema["required"] == ["customer_id"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"].keys() == {"Colour", "Person", "Address", "Line"}
    assert schema["$defs"]["Colour"] == {"title": "Colour", "type": "string", "enum": ["red", "green"]}
    assert schema["$defs"]["Line"]["required"] == ["article", "price"]


def test_types_of_the_same_name_do_not_mix() -> None:
    @dataclass
    class Address:
        planet: str

    mine = Address

    def send(a: Any, b: Any) -> None: ...

    send.__annotations__ = {"a": mine, "b": Person}
    signature = Signature(send)
    assert signature.schema is not None
    assert signature.schema["$defs"].keys() == {"Address", "Address2"}
    person = {"name": "Ann", "born": "1990-01-01", "addresses": [{"street": "Main", "zip": 1}]}
    Draft202012Validator(signature.schema).validate({"a": {"planet": "Mars"}, "b": person})
    with pytest.raises(Invalid, match=r"payload\.b\.addresses\[0\]\.zip: is required"):
        signature.payload((), {"a": {"planet": "Mars"}, "b": {**person, "addresses": [{"street": "Main"}]}})


def kinds(first: int, /, second: str, *rest: Any, third: dt.date, ctx: foliot.Context, **more: dt.date) -> list[Any]:
    return [first, second, rest, third, ctx, more]


def test_every_kind_of_parameter_is_supported() -> None:
    signature = Signature(kinds)
    payload = {"first": 1, "second": "b", "third": "2026-01-01", "extra": "2026-01-02"}
    assert signature.payload((1, "b"), {"third": dt.date(2026, 1, 1), "extra": dt.date(2026, 1, 2)}) == payload
    found = signature.call(**signature.bind(payload), ctx="context")
    assert found == [1, "b", (), dt.date(2026, 1, 1), "context", {"extra": dt.date(2026, 1, 2)}]
    with pytest.raises(Invalid, match=r"payload\.extra"):
        signature.bind({**payload, "extra": "x"})
    with pytest.raises(Invalid, match=r"payload\.third: is required"):
        signature.bind({"first": 1, "second": "b"})


def test_a_function_without_annotations_is_checked_by_its_parameter_names() -> None:
    def plain(a, b=2):  # type: ignore[no-untyped-def]
        return a, b

    signature = Signature(plain)
    assert signature.bind({"a": "x"}) == {"a": "x"}
    assert signature.schema is not None
    assert signature.schema["properties"] == {"a": {}, "b": {"default": 2}}
    for payload, place in (({}, "payload.a"), ({"a": 1, "bb": 2}, "payload.bb")):
        for refuse in (signature.bind, lambda payload: signature.payload((), payload)):
            with pytest.raises(Invalid) as caught:
                refuse(payload)
            assert caught.value.field == place


def test_the_context_is_not_part_of_the_payload() -> None:
    def task(ctx: foliot.Context, a: int = 1) -> None: ...

    def untyped(ctx, a=1, **more):  # type: ignore[no-untyped-def]
        ...

    for signature in (Signature(task), Signature(untyped)):
        assert signature.schema is not None
        assert list(signature.schema["properties"]) == ["a"]
        assert signature.payload((5,), {}) == {"a": 5}
        with pytest.raises(Invalid, match=r"payload\.ctx"):
            signature.bind({"ctx": 1})


def test_a_decorator_may_add_and_remove_arguments() -> None:
    def with_database(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function("database", *args, **kwargs)

        return wrapper

    @with_database
    def task(database: str, day: dt.date) -> list[Any]:
        return [database, day]

    signature = Signature(task)
    assert signature.call(**signature.bind({"day": "2026-01-01"})) == ["database", dt.date(2026, 1, 1)]
    assert signature.payload((), {"day": dt.date(2026, 1, 1)})


class Unknown:
    pass


def test_an_unsupported_annotation_leaves_the_others() -> None:
    def task(a: Missing, b: dt.date, c: Unknown) -> None: ...

    signature = Signature(task)
    assert signature.bind({"a": 1, "b": "2026-01-01", "c": {"x": 1}}) == {
        "a": 1, "b": dt.date(2026, 1, 1), "c": {"x": 1},
    }  # fmt: skip


def test_functions_without_a_signature_accept_everything() -> None:
    for function in (functools.partial(lambda a, b: (a, b), 1), max, print):
        Signature(function).payload((), {"b": 1} if function is not print else {})
    assert Signature(max).bind({"anything": 1}) == {"anything": 1}


def test_names_of_the_enclosing_function_are_resolved() -> None:
    @dataclass
    class Local:
        day: dt.date

    app = foliot.App()

    @app.task
    def one(value: Local) -> None: ...

    @app.task(name="another")
    def two(value: Local) -> None: ...

    for task in (one, two):
        assert task.signature.bind({"value": {"day": "2026-01-01"}}) == {"value": Local(dt.date(2026, 1, 1))}


@pytest.mark.parametrize("total", ["abc", "", "-.", True])
def test_a_decimal_in_a_model_is_checked_at_submission(total: Any) -> None:
    class Bill(pydantic.BaseModel):
        total: Decimal

    signature = signature_for(Bill)
    with pytest.raises(Invalid) as refused:
        signature.payload([], {"value": {"total": total}})
    assert refused.value.field == "payload.value.total"
    payload = signature.payload([], {"value": {"total": "9.950"}})
    assert signature.bind(dict(payload)) == {"value": Bill(total=Decimal("9.950"))}


def test_code_of_a_type_that_fails_refuses_the_payload() -> None:
    class Strict(pydantic.BaseModel):
        a: int

        @pydantic.field_validator("a")
        @classmethod
        def check(cls, value: int) -> int:
            if value == 1:
                raise ValueError("one is not enough")
            if value == 2:
                raise SystemExit(2)
            return value

    signature = signature_for(Strict)
    with pytest.raises(Invalid, match=r"payload\.value\.a: Value error, one is not enough"):
        signature.bind({"value": {"a": 1}})
    with pytest.raises(Invalid, match="payload: SystemExit"):
        signature.bind({"value": {"a": 2}})


def test_a_schema_that_is_too_large_is_left_out() -> None:
    large = enum.Enum("Large", {f"m{n}": "x" * 100 + str(n) for n in range(1000)})  # type: ignore[misc]
    signature = signature_for(large)
    assert signature.schema is None
    assert signature.payload((), {"value": "x"}) == {"value": "x"}
    with pytest.raises(Invalid, match=r"payload\.value"):
        signature.bind({"value": "x"})


def test_placeholders_are_accepted_for_any_type() -> None:
    app = foliot.App()

    @app.task
    def report(at: dt.datetime, number: int = 1) -> None: ...

    assert report.payload_of((), {"at": "{{ scheduled_for }}"}) == {"at": "{{ scheduled_for }}"}
    with pytest.raises(Invalid, match=r"payload\.at"):
        report.payload_of((), {"at": "{ scheduled_for }"})


def test_only_tasks_with_its_types_import_pydantic() -> None:
    code = """
import sys, dataclasses, foliot
@dataclasses.dataclass
class Order: a: int
app = foliot.App()
@app.task
def task(order: Order, b: list[int]) -> Order: ...
assert task.payload_of((), {"order": Order(1), "b": [1]}) == {"order": {"a": 1}, "b": [1]}
assert task.signature.bind({"order": {"a": 1}, "b": [1]})["order"] == Order(1)
assert "pydantic" not in sys.modules, "pydantic"
"""
    subprocess.run([sys.executable, "-c", code], check=True)
