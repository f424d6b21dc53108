"""Placeholders in text: `{{ scheduled_for | date }}`. A small language without code: names, parts of values, filters.

    text        = anything, with placeholders in it
    placeholder = "{{" value { "|" filter } "}}"
    value       = name { "." part | "[" part "]" } | "quoted text"
    filter      = name [ argument ]        the argument is quoted text, which may stand in parentheses

`parse` reads a text once, from its beginning to its end. `check` finds names, filters and arguments that do not exist,
before anything is stored. `render` puts in the values. `Names` lists the names, and
`template_filters.py` has the filters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from foliot.config import did_you_mean
from foliot.model.template_filters import FILTERS, NOTHING, FilterError, text_of

OPENING, CLOSING = "{{", "}}"
PLACEHOLDERS_MAX = 1000
PARTS_MAX = 20
RENDERED_MAX = 1_048_576
"""The most characters that the placeholders of a payload may become."""
TOKEN = re.compile(
    r"""\s*(?: (?P<word>[A-Za-z0-9_][A-Za-z0-9_-]*)
    | "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^'\\]|\\.)*)'
    | (?P<mark>\}\}|[|.()\[\]]) )""",
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
HOW_LITERAL = 'to keep the braces as they are, write {{ "{{" }} or set templates to false'

TIMES = ("scheduled_for", "previous_tick", "next_tick")
OF_TICK = (*TIMES, "timezone", "job")
"""Names that have a value only in runs of a schedule."""
OF_RUN = ("run_id", "attempt", "task", "queue", "namespace", "is_backfill")
WITH_PARTS = ("payload", "results", "signal")
NAMES = (*OF_TICK, *OF_RUN, *WITH_PARTS)
STEPS = "steps"
"""`steps.extract.result.rows` is the same as `results.extract.rows`."""


class TemplateError(Exception):
    """A placeholder that can't be read, or names what does not exist. `position` counts from 1."""

    def __init__(self, detail: str, position: int) -> None:
        self.detail = f"character {position}: {detail}"
        super().__init__(self.detail)
        self.position = position


class Unrenderable(Exception):
    """A placeholder that has no value in this run."""


@dataclass(frozen=True, slots=True)
class Filter:
    name: str
    argument: str | None
    position: int


@dataclass(frozen=True, slots=True)
class Placeholder:
    position: int
    start: int
    """Where it begins in the text, from 0."""
    end: int
    name: str | None
    """None: it begins with quoted text."""
    parts: tuple[str, ...]
    """Of a name, what to look up in its value; of quoted text, the text."""
    filters: tuple[Filter, ...]

    @property
    def may_be_empty(self) -> bool:
        return any(one.name == "default" for one in self.filters)


Parts = tuple[str | Placeholder, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a text may use."""

    has_tick: bool | None = None
    """Whether the run is for a tick. None: that shows when it runs, as in a step of a workflow."""
    steps: Collection[str] | None = None
    """The steps whose results it may use; None: any."""


def parse(text: str) -> Parts:
    """The text and its placeholders, in turn. Raises `TemplateError`."""
    parts: list[str | Placeholder] = []
    at, number = 0, 0
    while (start := text.find(OPENING, at)) >= 0:
        number += 1
        if number > PLACEHOLDERS_MAX:
            raise TemplateError(f"there are more than {PLACEHOLDERS_MAX} placeholders", start + 1)
        if start > at:
            parts.append(text[at:start])
        placeholder, at = _Reader(text, start).read()
        parts.append(placeholder)
    if at < len(text):
        parts.append(text[at:])
    return tuple(parts)


class _Reader:
    """Reads one placeholder."""

    def __init__(self, text: str, start: int) -> None:
        self._text, self._start = text, start
        self._at = start + len(OPENING)
        self._next()

    def read(self) -> tuple[Placeholder, int]:
        """The placeholder, and the position after it."""
        name, parts = self._value()
        filters: list[Filter] = []
        while self._mark == "|":
            if len(filters) >= PARTS_MAX:
                raise self._error(f"a placeholder has at most {PARTS_MAX} filters")
            self._next()
            filters.append(self._filter())
        if self._mark != CLOSING:
            raise self._error("expected | or }}")
        return Placeholder(self._start + 1, self._start, self._at, name, parts, tuple(filters)), self._at

    def _value(self) -> tuple[str | None, tuple[str, ...]]:
        if self._quoted is not None:
            text = self._quoted
            self._next()
            return None, (text,)
        if self._word is None:
            raise self._error(f"expected a name; {HOW_LITERAL}")
        name, parts = self._word, list[str]()
        self._next()
        while self._mark in (".", "["):
            is_bracketed = self._mark == "["
            self._next()
            part = self._word if self._word is not None else self._quoted if is_bracketed else None
            if part is None or len(parts) >= PARTS_MAX:
                raise self._error(f"expected one of at most {PARTS_MAX} parts of {name}")
            parts.append(part)
            self._next()
            if is_bracketed:
                self._expect("]")
        if name == STEPS and parts[1:2] == ["result"]:
            # As in a condition.
            name, parts = "results", [parts[0], *parts[2:]]
        return name, tuple(parts)

    def _filter(self) -> Filter:
        if self._word is None:
            raise self._error("expected the name of a filter")
        name, position = self._word, self._position
        self._next()
        has_parentheses = self._mark == "("
        if has_parentheses:
            self._next()
        argument = self._quoted
        if argument is not None:
            self._next()
        if has_parentheses:
            self._expect(")")
        return Filter(name, argument, position)

    def _next(self) -> None:
        found = TOKEN.match(self._text, self._at)
        self._word = self._quoted = self._mark = None
        if found is None:
            self._position = self._at + 1 + len(self._text[self._at :]) - len(self._text[self._at :].lstrip())
            if not self._text[self._at :].strip():
                raise TemplateError(f"{OPENING} is not closed by {CLOSING}", self._start + 1)
            if self._text[self._position - 1] in "\"'":
                raise self._error("the quoted text is not closed")
            raise self._error(f"{self._text[self._position - 1]!r} can't stand in a placeholder; {HOW_LITERAL}")
        self._at = found.end()
        kind = str(found.lastgroup)
        self._position = found.start(kind) + 1
        if kind == "word":
            self._word = found[kind]
        elif kind == "mark":
            self._mark = found[kind]
        else:
            self._position -= 1
            self._quoted = ESCAPE.sub(r"\1", found[kind])

    def _expect(self, mark: str) -> None:
        if self._mark != mark:
            raise self._error(f"expected {mark}")
        self._next()

    def _error(self, why: str) -> TemplateError:
        return TemplateError(why, self._position)


def check(text: str, names: Names) -> None:
    """Raises `TemplateError` for a text that could not be rendered."""
    for part in parse(text):
        if isinstance(part, Placeholder):
            _check_name(part, names)
            check_filters(part, None if part.name in WITH_PARTS else part.name in TIMES)


def check_text(text: str, names: Mapping[str, bool]) -> None:
    """`check` for texts other than payloads. `names`: the names that the text may use, and whether each is a time."""
    for part in parse(text):
        if not isinstance(part, Placeholder):
            continue
        if part.name is not None and part.name not in names:
            known = ", ".join(names)
            raise TemplateError(
                f"there is no name {part.name!r}{did_you_mean(part.name, names)}; the names are {known}", part.position
            )
        if part.name is not None and part.parts:
            raise TemplateError(f"{part.name} has no parts", part.position)
        check_filters(part, names.get(part.name or "", False))


def _check_name(placeholder: Placeholder, names: Names) -> None:
    name, parts, position = placeholder.name, placeholder.parts, placeholder.position
    if name is None:
        return
    if name == STEPS:
        raise TemplateError(f"{name} needs a step and its result, such as steps.extract.result.rows", position)
    if name not in NAMES:
        raise TemplateError(
            f"there is no name {name!r}{did_you_mean(name, NAMES)}; the names are {', '.join(NAMES)}; {HOW_LITERAL}",
            position,
        )
    if parts and name not in WITH_PARTS:
        raise TemplateError(f"{name} has no parts", position)
    if name in ("payload", "results") and not parts:
        example = "payload.customer" if name == "payload" else "steps.extract.result.rows"
        raise TemplateError(f"{name} needs a part, such as {example}", position)
    if name in OF_TICK and names.has_tick is False and not placeholder.may_be_empty:
        raise TemplateError(
            f'only a recurring job has {name}; give the job a schedule, or write {name} | default "..."', position
        )
    if name == "results" and names.steps is not None and parts[0] not in names.steps:
        known = ", ".join(sorted(names.steps)) or "none"
        raise TemplateError(
            f"there is no result of {parts[0]!r} here{did_you_mean(parts[0], names.steps)}; "
            f"the steps before this one: {known}",
            position,
        )


def check_filters(placeholder: Placeholder, is_time: bool | None) -> None:
    for one in placeholder.filters:
        known = FILTERS.get(one.name)
        if known is None:
            names = ", ".join(FILTERS)
            raise TemplateError(
                f"there is no filter {one.name!r}{did_you_mean(one.name, FILTERS)}; the filters are {names}",
                one.position,
            )
        if (one.argument is None) == known.takes_argument:
            wanted = "needs an argument in quotes" if known.takes_argument else "takes no argument"
            raise TemplateError(f"the filter {one.name} {wanted}, as in {known.example}", one.position)
        if known.needs_time and is_time is False:
            raise TemplateError(f"the filter {one.name} needs a time, as in {known.example}", one.position)
        try:
            known.check(one.argument or "")
        except FilterError as error:
            raise TemplateError(f"the filter {one.name}: {error}", one.position) from None
        if one.name != "default":
            is_time = known.gives_time
        elif is_time:
            is_time = None


def render(text: str, values: Mapping[str, Any], insert: Callable[[Placeholder, str], str]) -> str:
    """The text with its values, each passed through `insert`. Raises `TemplateError` or `Unrenderable`."""
    return "".join(part if isinstance(part, str) else insert(part, _text(part, values)) for part in parse(text))


def _text(placeholder: Placeholder, values: Mapping[str, Any]) -> str:
    found = look_up(placeholder, values)
    for one in placeholder.filters:
        known = FILTERS.get(one.name)
        if known is None:
            raise Unrenderable(f"there is no filter {one.name!r}")
        if found is None and one.name != "default":
            continue
        try:
            found = known.apply(found, one.argument or "")
        except FilterError as error:
            raise Unrenderable(f"{_described(placeholder)} | {one.name}: {error}") from None
    if found is None:
        raise Unrenderable(f'{_described(placeholder)} has no value in this run; add | default "..."')
    return text_of(found)


def look_up(placeholder: Placeholder, values: Mapping[str, Any]) -> Any:
    """The value of the name, before any filter. Raises `Unrenderable`."""
    if placeholder.name is None:
        return placeholder.parts[0]
    if placeholder.name not in values:
        raise Unrenderable(f"there is no name {placeholder.name!r}")
    found = values[placeholder.name]
    for part in placeholder.parts:
        if isinstance(found, Mapping):
            found = found.get(part, NOTHING)
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            found = NOTHING
        if found is NOTHING:
            if placeholder.may_be_empty:
                return None
            raise Unrenderable(f"{_described(placeholder)}: there is no {part!r}")
    return found


def _described(placeholder: Placeholder) -> str:
    return ".".join([placeholder.name or '"text"', *(placeholder.parts if placeholder.name else ())])
