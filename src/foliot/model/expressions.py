"""Conditions as text: `steps.check.result.amount > 100 and params.region in ["eu", "uk"]`. A small language without
code.

    condition  = part { "or" part }            part = term { "and" term }          term = [ "not" ] comparison
    comparison = value [ ("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in") value ]
    value      = number | "text" | true | false | null | [ value, ... ] | ( condition ) | function | path
    path       = root { "." name | "[" "name" "]" | "[" number "]" }
    root       = steps | params, and in the filter of a source: message | headers
    function   = startswith(text, text) | endswith(text, text) | length(value) | lower(text) | default(path, value)

`parse` reads a text once, from its beginning to its end, to a bounded depth. `evaluate` looks at each part once at
most. Nothing is converted: a comparison of a number with a text is an error, and so is a key that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from foliot.config import did_you_mean

LENGTH_MAX = 2000
DEPTH_MAX = 50
PARTS_MAX = 50
ROOTS = ("steps", "params")
MESSAGE_ROOTS = ("message", "headers")
"""The roots in the filter of a source."""
STEP_PARTS = ("status", "result")
ENDED_STATUSES = ("completed", "failed", "cancelled", "skipped")
STATUSES = (*ENDED_STATUSES, "pending", "scheduled", "running", "retrying")
FUNCTIONS = {"startswith": 2, "endswith": 2, "length": 1, "lower": 1, "default": 2}
"""The number of arguments of each function."""
CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
CONSTANTS_ELSEWHERE = {"True": "true", "False": "false", "None": "null", "nil": "null"}
KEYWORDS = ("and", "or", "not", "in")
COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
INSTEAD = {"&&": "and", "||": "or", "!": "not", "=": "==", "===": "==", "&": "and", "|": "or"}
TOKEN = re.compile(
    r"""\s*(?: (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?(?![A-Za-z0-9_]))
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^'\\]|\\.)*)'
    | (?P<mark>===|==|!=|<=|>=|&&|\|\||[<>=!&|()\[\],.]) )""",
    re.VERBOSE | re.DOTALL,
)
# Keys of steps and of results may hold hyphens.
PART = re.compile(r"(?P<word>[A-Za-z0-9_][A-Za-z0-9_-]*)")
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
DIGITS_MAX = 300


class ExpressionError(Exception):
    """A condition that can't be read, or names what does not exist. `position` counts from 1."""

    def __init__(self, detail: str, position: int) -> None:
        self.detail = f"character {position}: {detail}"
        super().__init__(self.detail)
        self.position = position


class EvaluationError(Exception):
    """A condition that has no value: a key is missing, or two values can't be compared."""


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any
    position: int


@dataclass(frozen=True, slots=True)
class Path:
    root: str
    parts: tuple[str | int, ...]
    position: int

    def __str__(self) -> str:
        return self.root + "".join(_shown_part(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Node, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Items:
    values: tuple[Node, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Comparison:
    operator: str
    left: Node
    right: Node
    position: int


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node
    position: int


@dataclass(frozen=True, slots=True)
class Junction:
    word: str
    """`and` or `or`."""
    operands: tuple[Node, ...]
    position: int


Node = Constant | Path | Call | Items | Comparison | Not | Junction


@dataclass(frozen=True, slots=True)
class Expression:
    text: str
    root: Node
    paths: tuple[Path, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        """The keys of the steps that it looks at."""
        return tuple(dict.fromkeys(str(path.parts[0]) for path in self.paths if path.root == "steps"))

    @property
    def params(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(path.parts[0]) for path in self.paths if path.root == "params"))

    @property
    def asks_for_status(self) -> bool:
        return any(path.root == "steps" and path.parts[1] == "status" for path in self.paths)


@dataclass(slots=True)
class Scope:
    """The values that a condition looks at. `seen` collects those that it looked at."""

    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The status and the result of each step. Without a result, the step has not ended."""
    params: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)
    """The values of other roots."""
    seen: dict[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=1024)
def parse(text: str, roots: tuple[str, ...] = ROOTS) -> Expression:
    """Raises `ExpressionError`, which names the character at fault."""
    if len(text) > LENGTH_MAX:
        raise ExpressionError(f"a condition has at most {LENGTH_MAX} characters", LENGTH_MAX)
    reader = _Reader(text, roots)
    root = reader.condition()
    reader.expect_end()
    if isinstance(root, Constant | Items) and not isinstance(getattr(root, "value", None), bool):
        raise ExpressionError("a condition is true or false; compare this value with another", root.position)
    return Expression(text, root, tuple(reader.paths))


class _Reader:
    """Reads a condition token by token."""

    def __init__(self, text: str, roots: tuple[str, ...]) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._roots = roots
        self.paths: list[Path] = []
        self._next()

    def condition(self) -> Node:
        return self._junction("or", lambda: self._junction("and", self._term))

    def expect_end(self) -> None:
        if self._kind != "end":
            if self._mark in COMPARISONS or self._is_word("in"):
                raise self._error("compare two values at a time, and join the comparisons with and")
            raise self._error("expected and, or, or the end of the condition")

    def _junction(self, word: str, inner: Any) -> Node:
        position = self._position
        operands = [inner()]
        while self._is_word(word):
            self._next()
            operands.append(inner())
        return operands[0] if len(operands) == 1 else Junction(word, tuple(operands), position)

    def _term(self) -> Node:
        position = self._position
        if not self._is_word("not"):
            return self._comparison()
        self._next()
        self._enter()
        operand = self._term()
        self._depth -= 1
        return Not(operand, position)

    def _comparison(self) -> Node:
        left, position = self._value(), self._position
        if self._mark in COMPARISONS:
            operator = str(self._mark)
        elif self._is_word("in"):
            operator = "in"
        elif self._is_word("not"):
            self._next()
            if not self._is_word("in"):
                raise self._error("expected in after not")
            operator = "not in"
        elif self._mark in INSTEAD:
            raise self._error(f"{self._mark} is not known; write {INSTEAD[str(self._mark)]}")
        else:
            return left
        self._next()
        return Comparison(operator, left, self._value(), position)

    def _value(self) -> Node:
        position, token = self._position, self._token
        if self._kind in ("number", "text"):
            self._next()
            return Constant(_number(token, position) if isinstance(token, _Digits) else token, position)
        if self._mark == "(":
            self._next()
            self._enter()
            inner = self.condition()
            self._depth -= 1
            self._expect(")")
            return inner
        if self._mark == "[":
            self._next()
            return Items(self._list("]"), position)
        if self._mark in INSTEAD:
            raise self._error(f"{self._mark} is not known; write {INSTEAD[str(self._mark)]}")
        if self._kind != "word" or token in KEYWORDS:
            raise self._error("expected a value: a number, a text in quotes, or a path such as steps.check.result")
        return self._named(str(token), position)

    def _named(self, name: str, position: int) -> Node:
        if name in self._roots:
            return self._path(name, position)
        self._next()
        if name in CONSTANTS:
            return Constant(CONSTANTS[name], position)
        if self._mark == "(":
            if name not in FUNCTIONS:
                known = ", ".join(FUNCTIONS)
                raise ExpressionError(
                    f"there is no function {name!r}{did_you_mean(name, FUNCTIONS)}; the functions are {known}", position
                )
            self._next()
            arguments = self._list(")")
            if len(arguments) != FUNCTIONS[name]:
                raise ExpressionError(f"{name} takes {FUNCTIONS[name]} arguments, not {len(arguments)}", position)
            if name == "default" and not isinstance(arguments[0], Path):
                raise ExpressionError(
                    "the first argument of default is a path, as in default(params.limit, 0)", position
                )
            return Call(name, arguments, position)
        if name in CONSTANTS_ELSEWHERE:
            raise ExpressionError(f"write {CONSTANTS_ELSEWHERE[name]} instead of {name}", position)
        hint, known = did_you_mean(name, (*self._roots, *CONSTANTS)), " or ".join(self._roots)
        raise ExpressionError(
            f"there is no name {name!r}{hint}; a path begins with {known}, and a text stands in quotes",
            position,
        )

    def _path(self, root: str, position: int) -> Path:
        parts: list[str | int] = []
        while (mark := self._peek_mark()) in (".", "["):
            if len(parts) >= PARTS_MAX:
                raise ExpressionError(f"a path has at most {PARTS_MAX} parts", position)
            self._next()
            parts.append(self._part_in_brackets() if mark == "[" else self._part_after_dot())
        self._next()
        path = Path(root, tuple(parts), position)
        _check_path(path)
        self.paths.append(path)
        return path

    def _part_after_dot(self) -> str:
        found = PART.match(self._text, self._after_spaces())
        if found is None:
            self._next()
            raise self._error("expected a name after the dot")
        self._at = found.end()
        return found["word"]

    def _part_in_brackets(self) -> str | int:
        self._next()
        token = self._token
        if self._kind == "text":
            part: str | int = str(token)
        elif isinstance(token, _Digits) and token.isdecimal():
            part = int(token[:DIGITS_MAX])
        else:
            raise self._error("expected a number or a text in quotes in the brackets")
        if self._peek_mark() != "]":
            self._next()
            raise self._error("expected ]")
        self._next()
        return part

    def _list(self, end: str) -> tuple[Node, ...]:
        values: list[Node] = []
        self._enter()
        while self._mark != end:
            if values:
                self._expect(",")
            values.append(self.condition())
        self._depth -= 1
        self._next()
        return tuple(values)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._error(f"a condition is at most {DEPTH_MAX} levels deep")

    def _peek_mark(self) -> str | None:
        found = TOKEN.match(self._text, self._at)
        return found["mark"] if found else None

    def _next(self) -> None:
        self._mark: str | None = None
        self._token: str = ""
        found = TOKEN.match(self._text, self._at)
        if found is None:
            rest = self._text[self._after_spaces() :]
            self._position = self._after_spaces() + 1
            if not rest:
                self._kind = "end"
                return
            character = rest[0]
            raise self._error(
                "the text is not closed" if character in "\"'" else f"{character!r} can't stand in a condition"
            )
        self._at = found.end()
        kind = str(found.lastgroup)
        self._position = found.start(kind) + 1
        if kind == "mark":
            self._kind, self._mark = "mark", found[kind]
        elif kind == "word":
            self._kind, self._token = "word", found[kind]
        elif kind == "number":
            self._kind, self._token = "number", _Digits(found[kind])
        else:
            self._position -= 1
            self._kind, self._token = "text", ESCAPE.sub(r"\1", found[kind])

    def _after_spaces(self) -> int:
        """Where the next token begins."""
        return len(self._text) - len(self._text[self._at :].lstrip())

    def _is_word(self, word: str) -> bool:
        return self._kind == "word" and self._token == word

    def _expect(self, mark: str) -> None:
        if self._mark != mark:
            raise self._error(f"expected {mark}")
        self._next()

    def _error(self, why: str) -> ExpressionError:
        return ExpressionError(why, self._position)


class _Digits(str):
    """A number as written."""

    __slots__ = ()


def _number(text: _Digits, position: int) -> int | float:
    if len(text) > DIGITS_MAX:
        raise ExpressionError("the number is too long", position)
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _check_path(path: Path) -> None:
    example = "steps.check.result.amount or steps.check.status" if path.root == "steps" else f"{path.root}.region"
    if not path.parts or not isinstance(path.parts[0], str):
        raise ExpressionError(f"{path.root} needs a name, as in {example}", path.position)
    if path.root != "steps":
        return
    if len(path.parts) < 2 or path.parts[1] not in STEP_PARTS:
        raise ExpressionError(f"a step has a status and a result: write {example}", path.position)
    if path.parts[1] == "status" and len(path.parts) > 2:
        raise ExpressionError("a status has no parts", path.position)


def _shown_part(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if PART.fullmatch(part) else f'["{part}"]'
