"""Describes an error that a task raised, without trusting the error.

An exception is user code: its `__str__`, its properties, its metaclass and its notes may raise, return something
enormous or never return. This module therefore reads everything that Python itself keeps about an exception past the
exception's own class. Only `str(error)` runs user code, and `is_plain` says beforehand whether it would. Every length
and count is bounded before text is joined.
"""

from __future__ import annotations

import asyncio
import linecache
import os
import stat
from collections import deque
from collections.abc import Iterator
from concurrent import futures
from types import FrameType, NoneType, TracebackType, WrapperDescriptorType
from typing import Any, cast

from foliot import errors
from foliot.model.outcome import ERROR_TEXT_MAX
from foliot.sdk.task_exceptions import Control, Fail, RetryIn, Skip, Snooze

NAME_MAX = 200
LINE_MAX = 1000
NAMES_MAX = 100
ERRORS_MAX = 20
"""The number of errors of a chain, or of a group, that a traceback shows."""
FIRST_FRAMES, LAST_FRAMES = 10, 50
NOTES_MAX = 10
SOURCE_MAX_BYTES = 4_194_304
OWN_DIRECTORIES = tuple(
    f"{directory}{os.sep}" for directory in map(os.path.dirname, (errors.__file__, asyncio.__file__, futures.__file__))
)

# CPython's own getters. The exception and its class may override the attributes.
_getters = vars(BaseException)
_cause = _getters["__cause__"].__get__
_context = _getters["__context__"].__get__
_hides_context = _getters["__suppress_context__"].__get__
_traceback = _getters["__traceback__"].__get__
_args = _getters["args"].__get__
_members = vars(BaseExceptionGroup)["exceptions"].__get__
_code = vars(SystemExit)["code"].__get__
_fields = _getters["__dict__"].__get__
_mro = type.__dict__["__mro__"].__get__
_name = type.__dict__["__name__"].__get__
_qualified_name = type.__dict__["__qualname__"].__get__
_class_fields = type.__dict__["__dict__"].__get__
_class_module = type.__dict__["__module__"].__get__

PLAIN_VALUES = (str, int, float, bool, bytes, NoneType)
PLAIN_STRINGS = (BaseException.__str__, KeyError.__str__, BaseExceptionGroup.__str__)
OWN_CLASSES = (Control, Fail, RetryIn, Skip, Snooze)
INTEGER_MAX_BITS = 1000
EXIT_CODE_BITS = 32

BECAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
WHILE = "\nDuring handling of the above exception, another exception occurred:\n\n"


def is_plain(error: BaseException) -> bool:
    """Whether describing the error runs no user code."""
    return all(_is_plain(one) for one in _reachable(error))


def is_a(error: BaseException, kind: type[BaseException]) -> bool:
    """Like `isinstance`, but ignores a fake `__class__`."""
    return any(base is kind for base in _mro(type(error)))


def kind_of(error: BaseException) -> str:
    return _cut(_qualified_name(type(error)), NAME_MAX)


def message_of(error: BaseException, *, may_call: bool = True) -> str:
    """The text of the error. Without `may_call`, a placeholder if that would run user code."""
    if not may_call and not _is_plain(error):
        return "(message omitted: reading it would run code of the task)"
    try:
        return _cut(str(error), ERROR_TEXT_MAX)
    except BaseException as failure:
        return f"the message cannot be read: __str__ failed with {kind_of(failure)}"


def names_of(error: BaseException) -> set[str]:
    """The names of its class and base classes, with and without the module."""
    found: set[str] = set()
    for kind in _mro(type(error))[:NAMES_MAX]:
        if kind is not object:
            qualified = _cut(_qualified_name(kind), NAME_MAX)
            found |= {_cut(_name(kind), NAME_MAX), qualified, f"{_module(kind)}.{qualified}"}
    return found


def exit_code_of(error: BaseException) -> int | None:
    """The exit code of a `sys.exit` call."""
    code = _code(error) if is_a(error, SystemExit) else None
    return code if type(code) is int and code.bit_length() < EXIT_CODE_BITS else None


def traceback_of(error: BaseException, *, may_call: bool = True) -> str:
    """A traceback like Python's own, root cause first. The middle of long parts is omitted, and so are the calls by
    which Foliot gets from one function of the user to the next."""
    lines: list[str] = []
    budget = [ERRORS_MAX]
    links = list(_chain(error))
    if len(links) > ERRORS_MAX:
        lines.append("[... earlier errors omitted ...]\n\n")
        links = links[:ERRORS_MAX]
    for one, joint in reversed(links):
        lines += _lines(one, "", budget, may_call=may_call)
        lines.append(joint)
    return "".join(lines)


def _lines(error: BaseException, margin: str, budget: list[int], *, may_call: bool) -> Iterator[str]:
    budget[0] -= 1
    yield from (f"{margin}{line}" for line in _frames(_traceback(error)))
    module, message = _module(type(error)), message_of(error, may_call=may_call)
    prefix = "" if module in ("", "builtins", "__main__") else f"{module}."
    yield f"{margin}{prefix}{kind_of(error)}{': ' if message else ''}{message}\n"
    notes = _fields(error).get("__notes__")
    if type(notes) is list:
        yield from (f"{margin}{_cut(note, LINE_MAX)}\n" for note in notes[:NOTES_MAX] if type(note) is str)
    if is_a(error, BaseExceptionGroup):
        members, number = _members(error), 0
        for number, member in enumerate(members, 1):
            if budget[0] <= 0 or len(margin) > 20:
                yield f"{margin}  [... {len(members) - number + 1} of {len(members)} errors of the group omitted ...]\n"
                break
            yield f"{margin}  {number} of {len(members)}:\n"
            yield from _lines(member, f"{margin}    ", budget, may_call=may_call)


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """The errors from this one back to its root, each with the line that joins it to the next error. Yields at most one
    more than a traceback shows."""
    seen: set[int] = set()
    joint, one = "", cast("BaseException | None", error)
    while one is not None and id(one) not in seen and len(seen) <= ERRORS_MAX:
        seen.add(id(one))
        yield one, joint
        cause = _cause(one)
        joint, one = (BECAUSE, cause) if cause is not None else (WHILE, None if _hides_context(one) else _context(one))


def _reachable(error: BaseException) -> Iterator[BaseException]:
    """All errors that `traceback_of` may describe."""
    waiting, number = deque([error]), 0
    while waiting and number < 3 * ERRORS_MAX:
        for one, _ in _chain(waiting.popleft()):
            number += 1
            yield one
            if is_a(one, BaseExceptionGroup):
                waiting.extend(_members(one)[:ERRORS_MAX])


def _is_plain(error: BaseException) -> bool:
    kinds = _mro(type(error))
    if any(kind is Control for kind in kinds) and not any(type(error) is own for own in OWN_CLASSES):
        return False
    string = next(fields["__str__"] for kind in kinds if "__str__" in (fields := _class_fields(kind)))
    if type(string) is not WrapperDescriptorType or not any(string is plain for plain in PLAIN_STRINGS):
        return False
    values = _args(error)
    if is_a(error, BaseExceptionGroup):
        values = values[:1]
    return len(values) <= NAMES_MAX and all(_is_plain_value(value) for value in values)


def _is_plain_value(value: object) -> bool:
    kind = type(value)
    if kind is int:
        return int.bit_length(value) <= INTEGER_MAX_BITS  # type: ignore[arg-type]
    return any(kind is plain for plain in PLAIN_VALUES)


def _frames(traceback: TracebackType | None) -> Iterator[str]:
    if traceback is None:
        return
    first: list[tuple[FrameType, int]] = []
    last: deque[tuple[FrameType, int]] = deque(maxlen=LAST_FRAMES)
    number = 0
    for number, one in enumerate(_without_own(traceback), 1):
        (first if number <= FIRST_FRAMES else last).append(one)
    yield "Traceback (most recent call last):\n"
    yield from (_frame(*one) for one in first)
    if left_out := number - len(first) - len(last):
        yield f"  [... {left_out} frames omitted ...]\n"
    yield from (_frame(*one) for one in last)


def _without_own(traceback: TracebackType) -> Iterator[tuple[FrameType, int]]:
    """The frames of the user's code, and those of Foliot and asyncio after the last of them, where the error began."""
    own: deque[tuple[FrameType, int]] = deque(maxlen=LAST_FRAMES)
    here: TracebackType | None = traceback
    while here is not None:
        one = (here.tb_frame, here.tb_lineno)
        # Past the file name's own class, as everywhere here.
        if str.startswith(one[0].f_code.co_filename, OWN_DIRECTORIES):
            own.append(one)
        else:
            own.clear()
            yield one
        here = here.tb_next
    yield from own


def _frame(frame: FrameType, line: int) -> str:
    code = frame.f_code
    shown = f'  File "{_cut(code.co_filename, LINE_MAX)}", line {line}, in {_cut(code.co_name, NAME_MAX)}\n'
    source = _source(code.co_filename, line)
    return f"{shown}    {source}\n" if source else shown


def _source(filename: str, line: int) -> str:
    """A source line, from regular files only: code may claim to come from a device or a pipe."""
    try:
        status = os.stat(filename)  # noqa: PTH116
        if not stat.S_ISREG(status.st_mode) or status.st_size > SOURCE_MAX_BYTES:
            return ""
        linecache.checkcache(filename)
        return _cut(linecache.getline(filename, line), LINE_MAX).strip()
    except Exception:
        return ""


def _module(kind: type) -> str:
    """The module of a class, or nothing if it is not a string."""
    try:
        return _cut(_class_module(kind), NAME_MAX)
    except (AttributeError, TypeError):
        return ""


def _cut(text: Any, most: int) -> str:
    """At most `most` characters, as a plain `str` even if the text is an instance of a subclass."""
    found: str = str.__getitem__(text, slice(0, most))
    return f"{found}[...]" if str.__len__(text) > most else found
