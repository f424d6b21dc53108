"""Puts values into a shell command line so that none of them is read as code.

A value of harmless characters, such as a date, is put in as it is. Any other value travels in an environment variable,
and the command line refers to the variable. The shell never reads the value itself, wherever it stands; the quotes
around the place only decide how the reference is written, so that the value stays one word.
"""

from __future__ import annotations

import re

HARMLESS = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
BEFORE_COMMENT = " \t\n;&|("


class ShellText:
    """Follows a command line from its beginning, to know whether a place is quoted."""

    def __init__(self) -> None:
        self._open: list[str] = []
        """The open quotes, parentheses and backticks, innermost last."""
        self._last = "\n"
        self._is_escaped = False
        self._is_comment = False
        self.environment: dict[str, str] = {}

    def follow(self, text: str) -> None:
        for character in text:
            self._follow(character)
            self._last = character

    def inserted(self, value: str) -> str:
        """Quotes the value for this place."""
        self._last, self._is_escaped = "x", False
        if HARMLESS.fullmatch(value):
            return value
        name = f"foliot_value_{len(self.environment) + 1}"
        self.environment[name] = value
        reference = f"${{{name}}}"
        if self._inside == '"':
            return reference
        return f"""'"{reference}"'""" if self._inside == "'" else f'"{reference}"'

    @property
    def _inside(self) -> str:
        return self._open[-1] if self._open else ""

    def _follow(self, character: str) -> None:
        inside = self._inside
        if self._is_comment:
            self._is_comment = character != "\n"
        elif self._is_escaped:
            self._is_escaped = False
        elif inside == "'":
            if character == "'":
                self._open.pop()
        elif character == "\\":
            self._is_escaped = True
        elif character in ('"', "`") and character == inside:
            self._open.pop()
        elif self._opens(character, inside):
            self._open.append(character)
        elif character == ")" and inside == "(":
            self._open.pop()
        elif character == "#" and inside != '"' and self._last in BEFORE_COMMENT:
            self._is_comment = True

    def _opens(self, character: str, inside: str) -> bool:
        if inside == '"':
            return character == "`" or (character == "(" and self._last == "$")
        return character in ('"', "`", "'", "(")
