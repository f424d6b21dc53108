"""No regular expression takes more than linear time on any text.

The tests find all expressions in the source, with the way each is used, and run them on texts made of the pieces that
they match: single pieces and pairs, repeated, with a mismatch at the end. A text four times as long may take about four
times as long, with a generous margin.
"""

from __future__ import annotations

import ast
import importlib
import io
import itertools
import json
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from re import _constants, _parser
from typing import Any
from uuid import UUID

import pytest

import foliot
from foliot.config import Config, presentable, without_password
from foliot.config.masking import TEXT_MAX
from foliot.events import EventBus, RunFailed
from foliot.model.log_text import pieces_from
from foliot.observability.logs import EventLog
from tests.support.fake_clock import FakeClock

SOURCE = Path(foliot.__file__).parent
WAYS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")
SHORT, LONG = 4_000, 16_000
SUSPECT_SECONDS = 0.0003
"""Several times what a linear pattern takes for a short text. Slower ones are measured again."""
HOPELESS_SECONDS = 0.03
GROWTH_MAX = 9.0
"""Four is linear, sixteen quadratic."""
MADE_WHILE_RUNNING = {
    # The inserted text is escaped: the path of a route, and a directory.
    ("api/openapi/document.py", "fullmatch"): r"/v1/jobs/[^/]+/runs/[^/]+",
    # A task's JSON schema may contain patterns. Only those without groups, alternatives or nested repeats are compiled,
    # and their steps are counted before each match: see tests/model/test_json_schema.py.
    ("model/json_schema_rules.py", "compile"): r"^[a-z]+-[0-9]{2,4}$",
    ("embedded/postmaster.py", "match"): rb"\S*postgres .*-D /data",
}


@dataclass(frozen=True)
class Used:
    where: str
    pattern: str | bytes
    flags: int
    way: str


MENTIONS = re.compile(r"\bre\.|\bpattern=")
USES = re.compile(rf"([A-Za-z_]\w*)\.({'|'.join(WAYS)})\b")


@cache
def texts_of_sources() -> dict[str, str]:
    return {str(path.relative_to(SOURCE)): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


def sources() -> Iterator[tuple[str, ast.Module]]:
    """The files that may contain an expression. Parsing all files in every test process would take far longer."""
    for where, text in texts_of_sources().items():
        if MENTIONS.search(text):
            yield where, ast.parse(text)


def module_of(where: str) -> dict[str, Any]:
    return vars(
        importlib.import_module("foliot." + where.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
    )


def ways_by_name() -> dict[str, set[str]]:
    """How each named pattern is used."""
    found: dict[str, set[str]] = defaultdict(set)
    for text in texts_of_sources().values():
        for name, way in USES.findall(text):
            found[name].add(way)
    return found


def value_of(node: ast.expr, where: str) -> Any:
    return eval(compile(ast.Expression(node), where, "eval"), module_of(where))


@cache
def patterns() -> tuple[Used, ...]:
    """Each regular expression of the package with each way in which it is used."""
    named, found = ways_by_name(), set[Used]()
    for where, tree in sources():
        names = {
            id(node.value): node.targets[0].id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            for keyword in node.keywords:
                # A method called with a pattern searches the database for it.
                if keyword.arg == "pattern" and isinstance(node.func, ast.Name):
                    # msgspec searches with the pattern of a field.
                    found.add(Used(where, value_of(keyword.value, where), 0, "search"))
            if (
                isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
            ):
                found |= set(of_call(node, node.func.attr, where, names.get(id(node), ""), named))
    return tuple(sorted(found, key=repr))


def of_call(node: ast.Call, way: str, where: str, name: str, named: dict[str, set[str]]) -> Iterator[Used]:
    if way == "escape" or way not in (*WAYS, "compile"):
        return
    flags = [
        value
        for value in (*node.args[1:], *(k.value for k in node.keywords))
        if re.fullmatch(r"re\.[A-Z]+", ast.unparse(value))
    ]
    number = int(value_of(flags[0], where)) if flags else 0
    try:
        pattern = value_of(node.args[0], where)
    except NameError:
        pattern = MADE_WHILE_RUNNING[where, way]
    if way != "compile":
        yield Used(where, pattern, number, way)
        return
    # A pattern that is passed on under another name may be used in the slowest way.
    for one in named[name] or ("search", "sub"):
        yield Used(where, pattern, number, one)


def pieces(pattern: str | bytes, flags: int) -> list[str]:
    """Texts that the pattern matches: its literals, and a few members of every character class."""
    found: dict[str, None] = {}
    for tree in subpatterns(_parser.parse(pattern, flags)):
        run = ""
        for kind, what in [*tree, (None, None)]:
            if kind is _constants.LITERAL:
                run += chr(what)
                found[chr(what)] = None
                continue
            if run:
                found[run] = None
                run = ""
            if kind is _constants.IN:
                found.update(dict.fromkeys(members(what)))
            elif kind in (_constants.ANY, _constants.NOT_LITERAL):
                found["a"] = None
    return sorted(found, key=len, reverse=True)[:10] or ["a"]


def subpatterns(what: Any) -> Iterator[Any]:
    if isinstance(what, _parser.SubPattern):
        yield what
    if isinstance(what, tuple | list | _parser.SubPattern):
        for part in what:
            yield from subpatterns(part)


def sample(tree: Any) -> str:
    """A short text that matches, or nearly matches."""
    found = ""
    for kind, what in tree:
        if kind is _constants.LITERAL:
            found += chr(what)
        elif kind is _constants.IN:
            found += next(members(what), "")
        elif kind in (_constants.ANY, _constants.NOT_LITERAL):
            found += "a"
        elif kind is _constants.SUBPATTERN:
            found += sample(what[-1])
        elif kind is _constants.BRANCH:
            found += sample(what[1][0])
        elif kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            found += sample(what[2]) * min(max(what[0], what[1] > 1), 40)
    return found


def members(what: Any) -> Iterator[str]:
    samples = " a1/:\\\"'.-_\n%@"
    compiled = re.compile("[" + "".join(classes(what)) + "]") if what else None
    yield from [character for character in samples if compiled and compiled.match(character)][:4]
    for kind, value in what:
        if kind is _constants.LITERAL:
            yield chr(value)
        elif kind is _constants.RANGE:
            yield chr(value[1])


def classes(what: Any) -> Iterator[str]:
    written = {
        _constants.CATEGORY_DIGIT: r"\d", _constants.CATEGORY_NOT_DIGIT: r"\D", _constants.CATEGORY_SPACE: r"\s",
        _constants.CATEGORY_NOT_SPACE: r"\S", _constants.CATEGORY_WORD: r"\w", _constants.CATEGORY_NOT_WORD: r"\W",
    }  # fmt: skip
    for kind, value in what:
        if kind is _constants.NEGATE:
            yield "^"
        elif kind is _constants.LITERAL:
            yield re.escape(chr(value))
        elif kind is _constants.RANGE:
            yield f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        else:
            yield written[value]


def texts(used: Used) -> Iterator[Callable[[int], str | bytes]]:
    found = pieces(used.pattern, used.flags)
    pumps = [
        *found,
        *("".join(pair) for pair in itertools.permutations(found, 2)),
        "".join(found),
        "".join(reversed(found)),
    ]
    whole = sample(_parser.parse(used.pattern, used.flags))
    around = [("", ""), ("", "\x01"), (whole, "\x01"), (whole, whole[-1:] + "y"), ("".join(found), "\n\n")]
    for pump, (start, end) in itertools.product(pumps, around):
        yield lambda length, pump=pump, start=start, end=end: of_type(used, start + pump * (length // len(pump)) + end)  # type: ignore[misc]


def of_type(used: Used, text: str) -> str | bytes:
    return text.encode("latin-1", "replace") if isinstance(used.pattern, bytes) else text


def seconds(used: Used, text: str | bytes, times: int = 1) -> float:
    compiled: Any = re.compile(used.pattern, used.flags)
    run = {
        "sub": lambda: compiled.sub(text[:0], text),
        "finditer": lambda: [None for _ in compiled.finditer(text)],
    }.get(used.way, lambda: getattr(compiled, used.way)(text))
    spent = []
    for _ in range(times):
        began = time.thread_time()
        run()  # type: ignore[no-untyped-call]
        spent.append(time.thread_time() - began)
    return min(spent)


def slow_text(used: Used) -> str | bytes | None:
    """The first text that takes more than linear time, in its short form."""
    for make in texts(used):
        if seconds(used, make(SHORT)) > SUSPECT_SECONDS and (
            seconds(used, make(SHORT), 3) > HOPELESS_SECONDS or growth(used, make) > GROWTH_MAX
        ):
            return make(60)
    return None


def growth(used: Used, make: Callable[[int], str | bytes]) -> float:
    """How many times longer a text of four times the length takes: the median, because other processes disturb."""
    return statistics.median(seconds(used, make(LONG), 2) / seconds(used, make(SHORT), 2) for _ in range(5))


def test_every_pattern_is_found() -> None:
    found = {used.where for used in patterns()}
    mentioned = {where for where, text in texts_of_sources().items() if re.search(r"^import re$", text, re.MULTILINE)}
    assert mentioned <= found
    assert len(patterns()) > 60


@pytest.mark.parametrize("used", patterns(), ids=lambda used: f"{used.where} {used.way} {used.pattern!r}"[:100])
def test_no_pattern_takes_more_than_linear_time(used: Used) -> None:
    assert slow_text(used) is None


ONCE_OURS = [
    (r"(?s)(://[^:/@]*):.*@", "sub"),
    (r"""\s*(["']?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)\1\s*=\s*(?P<value>.*?)\s*""", "fullmatch"),
    (rb'"(?:[^"\\]|\\.)*"', "sub"),
    (r"([0-9]+)([wdhms])", "findall"),
]


@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        (r"\S*(?:://|password=)\S*", "sub"),
        (r"\s+$", "search"),
        (r"(a|aa)+$", "search"),
        (r"(.*?);", "search"),
        *ONCE_OURS,
    ],
)
def test_the_search_finds_slow_patterns(pattern: str | bytes, way: str) -> None:
    shorter = Used("here", pattern, 0, way)
    if pattern == "(a|aa)+$":
        # Exponential time: at this length it would never end.
        assert seconds(shorter, "a" * 28 + "b") > 100 * seconds(shorter, "a" * 14 + "b", 3)
    else:
        assert slow_text(shorter) is not None


# --- what is built upon them

URLS = {
    "one long word": "x" * 1_000_000,
    "schemes": "://" * 300_000,
    "users": "://a:" * 200_000,
    "users and hosts": "://a:b@" * 150_000,
    "passwords": "password=" * 100_000,
    "words": "a:b@c " * 150_000,
}


@pytest.mark.parametrize("name", URLS)
def test_hiding_passwords_takes_linear_time(name: str) -> None:
    for hide in (presentable, without_password):
        began = time.thread_time()
        hide(URLS[name])
        # Half a megabyte used to take more than half an hour.
        assert time.thread_time() - began < 5


@pytest.mark.parametrize("before", range(TEXT_MAX - 60, TEXT_MAX + 10))
def test_a_password_is_hidden_wherever_a_text_is_cut(before: int) -> None:
    for url in ("postgresql://user:secret@host/db", "postgresql://host/db?password=secret&x=1"):
        assert "sec" not in presentable("x " * (before // 2) + url + " y" * 100)
        assert "sec" not in presentable("x" * before + url + "y" * 100)


def test_a_log_line_is_bounded_whatever_an_event_quotes() -> None:
    for form in ("json", "text"):
        stream, bus = io.StringIO(), EventBus()
        EventLog("worker", config=Config(log_format=form), clock=FakeClock(), stream=stream).attach(bus)
        began = time.thread_time()
        bus.emit(RunFailed(UUID(int=1), "task", "error", "\x1b" * 50_000_000))
        assert time.thread_time() - began < 5
        assert len(stream.getvalue()) < 10 * TEXT_MAX
        if form == "json":
            json.loads(stream.getvalue())


def test_an_output_full_of_marks_is_shown_in_linear_time() -> None:
    kept = b"\n[... 1 bytes dropped ...]\n" * 500_000
    began = time.thread_time()
    assert b"".join(piece for _, piece in pieces_from(kept, 0)) == kept
    assert time.thread_time() - began < 5
