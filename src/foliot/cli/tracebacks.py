"""Formats the traceback of an error for people, in colour: the places dim, the errors red. Causes are part of it."""

from __future__ import annotations

from typing import Any

import click

from foliot.cli.tables import clean

JOINTS = ("The above exception was the direct cause", "During handling of the above exception")


def traceback_of(error: Any) -> str:
    """The traceback, or nothing if the error has none, as that of a command."""
    text = error.get("traceback") if isinstance(error, dict) else None
    if not isinstance(text, str) or not text.strip():
        return ""
    return "\n".join(_styled(line) for line in clean(text, keep="\n\t").rstrip("\n").split("\n"))


def failure_of(error: Any) -> str:
    """The traceback; of an error without one, its kind and message."""
    if not isinstance(error, dict):
        return ""
    summary = clean(f"{error.get('kind', 'error')}: {error.get('message', '')}", keep="\n\t")
    return traceback_of(error) or click.style(summary, fg="red")


def _styled(line: str) -> str:
    bare = line.strip()
    if bare.startswith(("File ", "[...")):
        return click.style(line, dim=True)
    if bare.startswith(("Traceback (", *JOINTS)):
        return click.style(line, bold=True)
    return click.style(line, fg="red") if line and not line.startswith(" ") else line
