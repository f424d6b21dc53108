"""The type variables of tasks and handles: `P` are the arguments of a task's function, and `R` is its return type.

Type checkers know their defaults, so that a program may write `foliot.Task` and `foliot.Handle` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")
