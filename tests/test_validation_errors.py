"""Messages of the decoder in plain words, with the field that is wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from foliot.validation_errors import FORMS, form, to_invalid

CODE = form(r"^[A-Z]{3}$", "be three capital letters")


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    size: Annotated[int, Meta(ge=0, le=9)] = 0


class Outer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=5)]
    parameters: dict[str, int] = {}
    inner: Inner | None = None
    code: Annotated[str, Meta(pattern=CODE)] = "ABC"
    raw: Annotated[str, Meta(pattern="^x+$")] = "x"
    rule: Literal["all", "one"] = "all"
    at: Annotated[datetime, Meta(tz=True)] | None = None
    many: Annotated[list[str], Meta(min_length=2)] | None = None
    pair: tuple[int, int] | None = None
    share: Annotated[float, Meta(gt=0.5)] = 1.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parameters": "x"}, "parameters: must be an object, not a string"),
        ({"name": None}, "name: must be a string, not null"),
        ({"name": ""}, "name: must not be empty"),
        ({"name": "abcdef"}, "name: must have at most 5 characters"),
        ({"inner": 1}, "inner: must be an object or null, not an integer"),
        ({"inner": {"size": 10}}, "inner.size: must be 9 or less"),
        ({"inner": {"size": -1}}, "inner.size: must be 0 or more"),
        ({"inner": {"colour": 1}}, "inner.colour: there is no such field"),
        ({"colour": 1}, "colour: there is no such field"),
        ({"code": "abc"}, "code: must be three capital letters"),
        ({"raw": "y"}, "raw: must match the pattern ^x+$"),
        ({"rule": "al"}, "rule: 'al' is not one of the allowed values"),
        ({"at": "soon"}, "at: must be a time such as 2026-01-31T12:00:00Z"),
        ({"at": "2026-01-31T12:00:00"}, "at: must have a UTC offset, such as Z or +02:00"),
        ({"many": ["a"]}, "many: must have at least 2 items"),
        ({"pair": [1]}, "pair: must have 2 items, not 1"),
        ({"share": 0.5}, "share: must be more than 0.5"),
    ],
)
def test_a_wrong_value_is_described(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"name": "a"} | fields, Outer)
    found = to_invalid(caught.value, whole="body")
    assert found.detail == message
    assert found.field == message.partition(":")[0]


def test_a_missing_field_is_named() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({}, Outer)
    assert to_invalid(caught.value, whole="body").detail == "body: the field 'name' is required"


def test_no_form_is_described_twice() -> None:
    with pytest.raises(ValueError, match="described already"):
        form(r"^[A-Z]{3}$", "be something else")
    assert FORMS[repr(CODE)] == "be three capital letters"
