"""Puts an error that a task raised into words without trusting the error.

An exception is user code: its `__str__`, its properties, its metaclass and its notes may raise, return something
enormous or never return. Everything that Python itself keeps about an exception is therefore read past the exception's
own class. Only `str(error)` runs user code, and `is_plain` says beforehand whether it will. Every length and every
number is bounded before anything is joined.
"""

from __future__ import annotations

import linecache
import os
import stat
from collections import deque
from collections.abc import Iterator
from types import FrameType, NoneType, TracebackType, WrapperDescriptorType
from typing import Any, cast

from foliot.model.outcome import ERROR_TEXT_MAX
from foliot.sdk.flow_control import Control, Fail, RetryIn, Snooze

NAME_MAX = 200
LINE_MAX = 1000
NAMES_MAX = 100
ERRORS_MAX = 20
"""How many errors of a chain, or of a group, are told about."""
FIRST_FRAMES, LAST_FRAMES = 10, 50
NOTES_MAX = 10
SOURCE_MAX_BYTES = 4_194_304

# Getters of CPython's own. Asking the exception or its class would call whatever they put in place of these.
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
OWN_CLASSES = (Control, Fail, RetryIn, Snooze)
INTEGER_MAX_BITS = 1000
EXIT_CODE_BITS = 32

BECAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
WHILE = "\nDuring handling of the above exception, another exception occurred:\n\n"


def is_plain(error: BaseException) -> bool:
    """Whether putting it into words runs no code but Python's own."""
    return all(_is_plain(one) for one in _reachable(error))


def is_a(error: BaseException, kind: type[BaseException]) -> bool:
    """`isinstance`, past a `__class__` that the error makes up."""
    return any(base is kind for base in _mro(type(error)))


def kind_of(error: BaseException) -> str:
    return _cut(_qualified_name(type(error)), NAME_MAX)


def message_of(error: BaseException, *, may_call: bool = True) -> str:
    """Without `may_call`, only if no code but Python's own has to be called for it."""
    if not may_call and not _is_plain(error):
        return "(its message is left out: only code of its own could tell it)"
    try:
        return _cut(str(error), ERROR_TEXT_MAX)
    except BaseException as failure:
        return f"its message can't be read: its __str__ failed with {kind_of(failure)}"


def names_of(error: BaseException) -> set[str]:
    """Of its class and of those that it is derived from: short, and with the module."""
    found: set[str] = set()
    for kind in _mro(type(error))[:NAMES_MAX]:
        if kind is not object:
            qualified = _cut(_qualified_name(kind), NAME_MAX)
            found |= {_cut(_name(kind), NAME_MAX), qualified, f"{_module(kind)}.{qualified}"}
    return found


def exit_code_of(error: BaseException) -> int | None:
    """Of a call of `sys.exit`."""
    code = _code(error) if is_a(error, SystemExit) else None
    return code if type(code) is int and code.bit_length() < EXIT_CODE_BITS else None


def traceback_of(error: BaseException, *, may_call: bool = True) -> str:
    """Like Python's own, root cause first; of what is too long, the ends."""
    told: list[str] = []
    budget = [ERRORS_MAX]
    links = list(_chain(error))
    if len(links) > ERRORS_MAX:
        told.append("[... earlier errors are left out ...]\n\n")
        links = links[:ERRORS_MAX]
    for one, joint in reversed(links):
        told += _words(one, "", budget, may_call=may_call)
        told.append(joint)
    return "".join(told)


def _words(error: BaseException, margin: str, budget: list[int], *, may_call: bool) -> Iterator[str]:
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
                yield f"{margin}  [... {len(members) - number + 1} of {len(members)} errors of the group are left out ...]\n"
                break
            yield f"{margin}  {number} of {len(members)}:\n"
            yield from _words(member, f"{margin}    ", budget, may_call=may_call)


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """From the error back to its root, one more than are told about at the most; each with how it led to the one
    before."""
    seen: set[int] = set()
    joint, one = "", cast("BaseException | None", error)
    while one is not None and id(one) not in seen and len(seen) <= ERRORS_MAX:
        seen.add(id(one))
        yield one, joint
        cause = _cause(one)
        joint, one = (BECAUSE, cause) if cause is not None else (WHILE, None if _hides_context(one) else _context(one))


def _reachable(error: BaseException) -> Iterator[BaseException]:
    """All that `traceback_of` may come to."""
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
    while traceback is not None:
        (first if number < FIRST_FRAMES else last).append((traceback.tb_frame, traceback.tb_lineno))
        traceback, number = traceback.tb_next, number + 1
    yield "Traceback (most recent call last):\n"
    yield from (_frame(*one) for one in first)
    if left_out := number - len(first) - len(last):
        yield f"  [... {left_out} frames are left out ...]\n"
    yield from (_frame(*one) for one in last)


def _frame(frame: FrameType, line: int) -> str:
    code = frame.f_code
    told = f'  File "{_cut(code.co_filename, LINE_MAX)}", line {line}, in {_cut(code.co_name, NAME_MAX)}\n'
    source = _source(code.co_filename, line)
    return f"{told}    {source}\n" if source else told


def _source(filename: str, line: int) -> str:
    """Of files only: code may say that it came from a device, or from a pipe that nobody writes into."""
    try:
        status = os.stat(filename)  # noqa: PTH116
        if not stat.S_ISREG(status.st_mode) or status.st_size > SOURCE_MAX_BYTES:
            return ""
        linecache.checkcache(filename)
        return _cut(linecache.getline(filename, line), LINE_MAX).strip()
    except Exception:
        return ""


def _module(kind: type) -> str:
    """Nothing, where a class says that it comes from something that is no name."""
    try:
        return _cut(_class_module(kind), NAME_MAX)
    except (AttributeError, TypeError):
        return ""


def _cut(text: Any, most: int) -> str:
    """At the most so many characters, as a string of Python's own class, whatever the class of the text."""
    found: str = str.__getitem__(text, slice(0, most))
    return f"{found}[...]" if str.__len__(text) > most else found
