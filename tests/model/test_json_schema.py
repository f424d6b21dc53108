"""Values checked against schemas: the field of an error, values accepted in doubt, and malicious schemas."""

from __future__ import annotations

import random
from time import thread_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from foliot.errors import Invalid
from foliot.model.json_schema import SCHEMA_MAX_BYTES, Checker, UnusableSchema, invalid

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "customer_id": {"type": "integer", "minimum": 1},
        "note": {"type": "string", "default": "", "maxLength": 5},
        "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "colour": {"enum": ["red", "green"]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
    },
    "required": ["customer_id"],
    "additionalProperties": False,
    "$defs": {"Line": {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}},
}


def fault(schema: Any, value: Any, **options: Any) -> str | None:
    found = Checker.of(schema).fault_in(value, **options)
    return None if found is None else invalid(found, "payload").detail


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"customer_id": 7}, None),
        ({"customer_id": 7, "note": "x", "due": None, "colour": "red", "lines": [{"price": 1}, {"price": 1.5}]}, None),
        ({"customer_id": 7, "due": "2026-01-31"}, None),
        ({}, "payload.customer_id: is required"),
        ({"customer_id": "abc"}, "payload.customer_id: must be an integer, not a string"),
        ({"customer_id": "5"}, "payload.customer_id: must be an integer, not a string"),
        ({"customer_id": True}, "payload.customer_id: must be an integer, not a boolean"),
        ({"customer_id": 1.5}, "payload.customer_id: must be an integer, not a number"),
        ({"customer_id": 0}, "payload.customer_id: must be 1 or more"),
        ({"custmer_id": 7}, "payload.custmer_id: there is no such field, did you mean 'customer_id'?"),
        ({"customer_id": 7, "note": "too long"}, "payload.note: must have at most 5 characters"),
        ({"customer_id": 7, "due": "tomorrow"}, "payload.due: must be a date such as 2026-01-31"),
        ({"customer_id": 7, "due": 5}, "payload.due: must be a string or null, not an integer"),
        ({"customer_id": 7, "colour": "blue"}, 'payload.colour: must be one of "red", "green"'),
        ({"customer_id": 7, "lines": [{"price": 1}, {}]}, "payload.lines[1].price: is required"),
        ({"customer_id": 7, "lines": [{"price": "1"}]}, "payload.lines[0].price: must be a number, not a string"),
        ([], "payload: must be an object, not a list"),
    ],
)
def test_the_error_names_the_field(payload: Any, expected: str | None) -> None:
    assert fault(ORDER, payload) == expected


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": ["integer", "null"]}, [1, None], ["1", 1.0, False]),
        ({"type": "number"}, [1, 1.5], ["1", True, None]),
        ({"const": False}, [False], [0, None]),
        ({"enum": [1, "a", None]}, [1, "a", None], [True, "b", []]),
        ({"minimum": 1, "exclusiveMaximum": 3}, [1, 2.9, "text"], [0, 3]),
        ({"maximum": 1, "exclusiveMinimum": -1}, [1, 0], [2, -1]),
        ({"multipleOf": 0.1}, [0.3, 7], [0.35]),
        ({"minItems": 1, "maxItems": 2, "uniqueItems": True}, [[1], [1, True], "x"], [[], [1, 2, 3], [1, 1]]),
        ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 2}]),
        ({"minLength": 2}, ["ab", 1], ["a"]),
        ({"pattern": "^[a-z]{2}-\\d+$"}, ["ab-1", 7], ["abc", "ab-"]),
        ({"format": "date-time"}, ["2026-01-31T08:00:00Z", "2026-01-31T08:00:00", 1], ["2026-01-31", "now"]),
        ({"format": "time"}, ["08:00:00"], ["8"]),
        ({"format": "duration"}, ["PT90S"], ["90"]),
        ({"format": "uuid"}, ["0190163d-8694-739b-aea5-966c26f8ad90"], ["7"]),
        ({"contentEncoding": "base64"}, ["aGk="], ["%"]),
        ({"prefixItems": [{"type": "integer"}], "items": False}, [[1], []], [["1"], [1, 2]]),
        ({"items": {"type": "integer"}}, [[1], {}], [[1, "2"]]),
        ({"additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "1"}]),
        ({"propertyNames": {"maxLength": 1}}, [{"a": 1}], [{"ab": 1}]),
        ({"allOf": [{"type": "integer"}, {"minimum": 2}]}, [2], [1, "2"]),
        ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}, [1, 2.5], [2, 1.5, "1"]),
        ({"not": {"type": "string"}}, [1], ["1"]),
        (True, [1, None], []),
        ({"properties": {"a": False}}, [{}], [{"a": 1}]),
    ],
)
def test_every_keyword_accepts_and_refuses(schema: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert fault(schema, value) is None, value
    for value in bad:
        assert fault(schema, value) is not None, value


@pytest.mark.parametrize(
    "schema",
    [
        {"if": {"type": "integer"}, "then": False},
        {"not": {"if": True}},
        {"type": "decimal128"},
        {"format": "colour"},
        {"$ref": "https://example.org/other"},
        {"$ref": "#/$defs/nowhere"},
        {"minimum": "1"},
        {"patternProperties": {"^a": False}, "additionalProperties": False},
        {"oneOf": [{"if": True}, {"type": "integer"}]},
        {"newKeyword": 1},
    ],
)
def test_unknown_keywords_refuse_nothing(schema: Any) -> None:
    for value in (1, "a", {"b": 1}):
        assert fault(schema, value) is None


def test_a_check_raises_an_error_with_the_field() -> None:
    with pytest.raises(Invalid) as caught:
        Checker.of(ORDER).check({"customer_id": "x"}, root="parameters")
    assert (caught.value.field, caught.value.code) == ("parameters.customer_id", "invalid")
    with pytest.raises(Invalid, match=r"^customer_id: is required$"):
        Checker.of(ORDER).check({}, root="")


def test_values_that_are_unknown_yet_match_everything() -> None:
    def is_reference(value: object) -> bool:
        return isinstance(value, dict) and "$result" in value

    later = {"$result": "extract"}
    payload = {"customer_id": later, "note": later, "due": later, "colour": later, "lines": [later, {"price": later}]}
    assert fault(ORDER, payload, unknown=is_reference) is None
    assert fault(ORDER, payload | {"lines": later}, unknown=is_reference) is None
    assert fault(ORDER, payload) == "payload.customer_id: must be an integer, not an object"
    assert fault(ORDER, {"note": later}, unknown=is_reference) == "payload.customer_id: is required"
    assert fault(ORDER, {**payload, "lines": [{}]}, unknown=is_reference) == "payload.lines[0].price: is required"


def test_a_schema_may_contain_itself() -> None:
    tree = {"$ref": "#/$defs/Tree", "$defs": {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
    assert fault(tree, [[], [[]]]) is None
    assert fault(tree, [[], [[7]]]) == "payload[1][0][0]: must be a list, not an integer"


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"x": value}
    return value


HOSTILE: list[tuple[Any, Any]] = [
    ({"$ref": "#"}, 1),
    ({"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"}, 1),
    ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1),
    ({"pattern": "(a+)+$"}, "a" * 50 + "!"),
    ({"pattern": "a*a*a*a*a*b"}, "a" * 5000),
    ({"pattern": "(a|a)*b"}, "a" * 100),
    (
        {
            "anyOf": [{"properties": {"x": {"$ref": "#"}}, "required": ["y"]}] * 2,
        },
        nested(60),
    ),
    (
        {"$defs": {f"D{n}": {"allOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 2} for n in range(25)}, "$ref": "#/$defs/D0"},
        1,
    ),
    ({"anyOf": [{"uniqueItems": True, "minItems": 10**6}] * 1000}, list(range(50_000))),
    ({"anyOf": [{"contentEncoding": "base64", "minLength": 10**9}] * 1000}, "aGk=" * 100_000),
    ({"properties": {f"name{n}" * 20: True for n in range(400)}, "additionalProperties": False}, {"nome1" * 20: 1}),
    ({"items": {"type": "integer"}}, [1] * 1_000_000),
    (
        {
            "$defs": {
                f"D{n}": {"type": "object", "properties": {name: {"$ref": f"#/$defs/D{n + 1}"} for name in "ab"}}
                for n in range(25)
            },
            "$ref": "#/$defs/D0",
        },
        nested(30),
    ),
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_schema_takes_long(number: int) -> None:
    schema, value = HOSTILE[number]
    began = thread_time()
    Checker.of(schema).fault_in(value)
    assert thread_time() - began < 1


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        "text",
        {"properties": []},
        {"required": "a"},
        {"items": 7},
        {"anyOf": {"type": "integer"}},
        {"description": "x" * SCHEMA_MAX_BYTES},
        {"allOf": [{}] * 11_000},
    ],
)
def test_an_unusable_schema_is_reported(schema: Any) -> None:
    with pytest.raises(UnusableSchema):
        Checker.of(schema)


def test_a_schema_that_is_too_deep_is_unusable() -> None:
    schema: Any = {}
    for _ in range(500):
        schema = {"items": schema}
    with pytest.raises(UnusableSchema):
        Checker.of(schema)


NAMES = st.sampled_from("abc")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, -1.5]) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
PLAIN = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
SIMPLE = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
        | st.lists(st.sampled_from(["null", "integer", "string", "array"]), min_size=1, max_size=2, unique=True),
        "enum": st.lists(PLAIN, min_size=1, max_size=3),
        "const": PLAIN,
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "minLength": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "minProperties": st.integers(0, 2),
        "required": st.lists(NAMES, max_size=2, unique=True),
    },
)


def combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=2)
    parts = st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": some,
            "anyOf": some,
            "oneOf": some,
            "allOf": some,
            "not": inner,
            "$ref": st.just("#/$defs/D"),
        },
    )
    return st.builds(lambda one, two: {**one, **two}, SIMPLE, parts)


SCHEMAS = st.recursive(st.booleans() | SIMPLE, combined, max_leaves=5)


@settings(deadline=None, max_examples=150)
@given(SCHEMAS, SIMPLE, VALUES)
def test_it_agrees_with_another_checker(schema: Any, definition: Any, value: Any) -> None:
    whole = {**schema, "$defs": {"D": definition}} if isinstance(schema, dict) else schema
    expected = Draft202012Validator(whole).is_valid(value)
    assert (Checker.of(whole).fault_in(value) is None) == expected


def test_random_schemas_never_break_a_check() -> None:
    """A broken schema is either usable or reported as unusable; it never raises another error."""
    words = ["type", "enum", "const", "minimum", "properties", "items", "anyOf", "$ref", "pattern", "required", "not"]
    dice = random.Random(7)
    values: list[Any] = [None, True, 0, -1.5, "", "integer", "#", [], ["a"], {}, {"type": "string"}, [{}], "("]
    for _ in range(3000):
        schema = {word: dice.choice(values) for word in dice.sample(words, dice.randrange(1, 5))}
        try:
            checker = Checker.of(schema)
        except UnusableSchema:
            continue
        checker.fault_in(dice.choice(values))


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (True, [1, "a", {}], None),
        ({"type": "object"}, [{}, {"a": 1}], [{"a": 1}, 3]),
        (
            {"type": "object", "properties": {"a": {"type": "integer"}}},
            [{"a": 1}, {}, {"b": 2}],
            [{"a": 1}, {"a": "x"}],
        ),
        ({"type": "object", "required": ["a"], "properties": {"a": {}}}, [{"a": None}], [{"a": 1}, {}]),
        ({"type": "object", "properties": {}, "additionalProperties": False}, [{}], [{}, {"a": 1}]),
    ],
)
def test_values_that_are_checked_together_get_the_answers_of_each_alone(
    schema: Any, good: list[Any], bad: list[Any] | None
) -> None:
    checker = Checker.of(schema)
    assert checker.takes_all(good)
    assert all(checker.fault_in(value) is None for value in good)
    if bad is not None:
        assert not checker.takes_all(bad)
        assert [checker.fault_in(value) is None for value in bad] == [True, False]


def test_a_schema_that_only_python_can_check_is_never_said_to_take_all() -> None:
    checker = Checker.of({"type": "object", "minProperties": 1})
    assert not checker.takes_all([{"a": 1}])
    assert checker.fault_in({"a": 1}) is None
