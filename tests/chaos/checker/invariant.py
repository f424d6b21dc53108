"""An invariant: a number, a sentence, and a function that finds where a history breaks it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.chaos.checker.history import History

Find = Callable[[History], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Invariant:
    number: int
    text: str
    find: Find

    def __str__(self) -> str:
        return f"I{self.number} {self.text}"


ALL: list[Invariant] = []


def invariant(number: int) -> Callable[[Find], Find]:
    """Declares an invariant; the function's docstring is its sentence."""

    def declare(find: Find) -> Find:
        ALL.append(Invariant(number, inspect.getdoc(find) or "", find))
        return find

    return declare
