"""Placeholders in payloads: where they are rendered, how they are checked when a job is submitted, and the rendering.

They are rendered in the payloads of `shell`, `http` and the built-in waits, unless the job says `templates: false`, and
in those of an app's own tasks if it says `templates: true`. Of `map` and `workflow`, the payloads of their items and
steps are rendered, each in its own run. Keys are never rendered, nor is the item of a map, which is data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from foliot.errors import Invalid
from foliot.model.payloads import LEAVES
from foliot.model.shell_text import ShellText
from foliot.model.templates import (
    OPENING,
    RENDERED_MAX,
    TIMES,
    Names,
    Placeholder,
    TemplateError,
    Unrenderable,
    check,
    parse,
    render,
)

RENDERED_BY_DEFAULT = frozenset({"shell", "http", "wait_for_file", "wait_for_row", "wait_for_url"})
WITH_URL = ("http", "wait_for_url")
NEVER_RENDERED = frozenset({"map", "simulate", "wait", "workflow"})
SAMPLE = "0"
SAMPLE_URL = "https://sample.invalid/"

Texts = Iterator[tuple[str, str]]
Mapped = Callable[[str, str], str]


def has_templates(task: str, asked: bool | None) -> bool:
    """Whether placeholders in a payload of this task are rendered. `asked`: what the job says."""
    if task in NEVER_RENDERED:
        return False
    return task in RENDERED_BY_DEFAULT if asked is None else asked


def is_sql(task: str, place: str) -> bool:
    """Whether the text is a query, in which a value could be taken for code."""
    return task == "wait_for_row" and place == "query"


def check_templates(
    task: str, payload: Mapping[str, Any] | None, asked: bool | None, names: Names, *, skip: str | None = None
) -> None:
    """Raises `Invalid` for a placeholder that could not be rendered. `skip`: the field that holds the item of a map."""
    if asked and task in NEVER_RENDERED:
        raise Invalid(f"templates: placeholders are not rendered in the payload of {task!r}", field="templates")
    if not payload:
        return
    is_rendered = has_templates(task, asked)
    if not is_rendered and (asked is not None or task in NEVER_RENDERED or not names.has_tick):
        return
    for place, text in _texts(payload, "payload"):
        if OPENING not in text or (skip is not None and place.startswith(f"payload.{skip}")):
            continue
        if is_rendered:
            if is_sql(task, place.removeprefix("payload.")):
                raise Invalid(
                    f"{place}: SQL has no placeholders; write $1 and put the placeholder into parameters", field=place
                )
            try:
                check(text, names)
            except TemplateError as error:
                raise Invalid(f"{place}: {error.detail}", field=place) from None
        elif _names_a_tick(text):
            raise Invalid(
                f"{place}: has a placeholder, and templates is not set: true renders it, false keeps the text as it is",
                field=place,
            )


def is_only_for_placeholders(task: str, payload: Mapping[str, Any] | None, item_name: str, asked: bool | None) -> bool:
    """Whether the item of a map is no field of the built-in task, but a placeholder of the payload refers to it."""
    return (
        item_name not in LEAVES[task].__struct_encode_fields__
        and has_templates(task, asked)
        and any(
            isinstance(part, Placeholder) and part.name == "payload" and part.parts[:1] == (item_name,)
            for _, text in _texts(payload or {}, "")
            if OPENING in text
            for part in parse(text)
        )
    )


def sampled(task: str, payload: Mapping[str, Any], asked: bool | None) -> dict[str, Any]:
    """The payload with a sample in place of each text that has placeholders, for checks of its form."""

    def sample(place: str, text: str) -> str:
        if OPENING not in text:
            return text
        insert = _sample_in_url if task in WITH_URL and place == "url" else _sample
        return "".join(part if isinstance(part, str) else insert(part) for part in parse(text))

    return _mapped(payload, sample) if has_templates(task, asked) else dict(payload)


def render_payload(
    task: str, payload: Mapping[str, Any], values: Mapping[str, Any], *, skip: str | None = None
) -> dict[str, Any]:
    """The payload with its placeholders rendered. Raises `Unrenderable`."""
    left = RENDERED_MAX
    shell = ShellText()

    def inserted(placeholder: Placeholder, value: str) -> str:
        nonlocal left
        left -= len(value)
        if left < 0:
            raise Unrenderable(f"the placeholders of the payload become more than {RENDERED_MAX} characters")
        return value

    def in_url(placeholder: Placeholder, value: str) -> str:
        value = inserted(placeholder, value)
        return value if placeholder.start == 0 else quote(value, safe="")

    def render_text(place: str, text: str) -> str:
        if OPENING not in text or (skip is not None and place.partition(".")[0].partition("[")[0] == skip):
            return text
        if is_sql(task, place):
            return text
        try:
            if task == "shell" and place == "command":
                return _command(text, values, inserted, shell)
            return render(text, values, in_url if task in WITH_URL and place == "url" else inserted)
        except (TemplateError, Unrenderable) as error:
            raise Unrenderable(f"payload.{place}: {error}") from None

    rendered = _mapped(payload, render_text)
    if shell.environment:
        rendered["environment"] = {**rendered.get("environment", {}), **shell.environment}
    return rendered


def _command(
    text: str, values: Mapping[str, Any], inserted: Callable[[Placeholder, str], str], shell: ShellText
) -> str:
    at = 0

    def insert(placeholder: Placeholder, value: str) -> str:
        nonlocal at
        shell.follow(text[at : placeholder.start])
        at = placeholder.end
        return shell.inserted(inserted(placeholder, value))

    return render(text, values, insert)


def _sample(_: Placeholder) -> str:
    return SAMPLE


def _sample_in_url(placeholder: Placeholder) -> str:
    return SAMPLE_URL if placeholder.start == 0 else SAMPLE


def _names_a_tick(text: str) -> bool:
    try:
        parts = parse(text)
    except TemplateError:
        return False
    return any(isinstance(part, Placeholder) and part.name in TIMES for part in parts)


def _texts(value: Any, place: str) -> Texts:
    """Every text in the value, with its place. Recursion is safe: decoders limit the depth."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{place}[{number}]")


def _mapped(payload: Mapping[str, Any], change: Mapped) -> dict[str, Any]:
    def changed(value: Any, place: str) -> Any:
        if isinstance(value, str):
            return change(place, value)
        if isinstance(value, Mapping):
            return {name: changed(inner, f"{place}.{name}") for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [changed(inner, f"{place}[{number}]") for number, inner in enumerate(value)]
        return value

    return {name: changed(value, name) for name, value in payload.items()}
