"""Writes the reference pages that are made from code: today, docs/configuration.md."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta
from msgspec.structs import fields

from foliot.config import Config

TARGET = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
HEADER = """\
# Configuration

Made by `make docs` from `src/foliot/config.py`. Do not edit.

Nothing has to be configured. A setting comes from, in rising order: its default, a TOML file (`foliot.toml` in the working directory,
or the one that `FOLIOT_CONFIG` names), the environment (`FOLIOT_` and its name in capitals), the command line. An unknown name is
refused, with the nearest known one. `foliot check` shows what is in force and warns of what is probably not meant.

| setting | default | meaning |
|---|---|---|
"""


def page() -> str:
    hints = get_type_hints(Config, include_extras=True)
    rows = []
    for field in fields(Config):
        default = "`~/.local/share/foliot`" if field.default is NODEFAULT else f"`{field.default!r}`"
        rows.append(f"| `{field.name}` | {default} | {describe(hints[field.name])} |")
    return HEADER + "\n".join(rows) + "\n"


def describe(hint: object) -> str:
    if get_origin(hint) is not Annotated:
        raise ValueError(f"a setting without a description: {hint}")
    found = [meta.description for meta in get_args(hint)[1:] if isinstance(meta, Meta) and meta.description]
    return str(found[-1])


if __name__ == "__main__":
    TARGET.write_text(page())
