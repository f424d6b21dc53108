"""Parses a crontab as cron does, and turns each entry into a job. Notes say how a job differs from its entry.

The jobs behave as under cron: the same time zone, environment and shell, input after `%`, no retries, no timeout, no
catch-up of missed times, and overlapping runs are allowed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from foliot.cli.imports.crontab_names import Names
from foliot.cli.imports.imported_jobs import Entry, Imported, Note
from foliot.errors import Invalid
from foliot.model.run import MAX_TIMEOUT_SECONDS
from foliot.triggers.cron_fields import ALIASES, parse_fields
from foliot.triggers.cron_hints import unknown_alias
from foliot.triggers.durations import parse_duration
from foliot.triggers.zones import zone_named

VARIABLE = re.compile(r"""\s*(["']?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)\1\s*=(?P<value>.*)""", re.DOTALL)
# Some crons accept a zone for a single line.
ZONE_PREFIX = re.compile(
    r"(?P<name>CRON_TZ|TZ)=(?P<zone>\S+)\s+(?P<entry>(?:@[a-z]|[0-9*]).*)", re.DOTALL | re.IGNORECASE
)
RANDOM_RANGE = re.compile(r"(?P<low>[0-9]{0,2})~(?P<high>[0-9]{0,2})")
# The bounds of each field, for a random range that leaves one out.
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?")
DEFAULT_SHELL = "/bin/sh"
# These configure cron itself; no command sees them.
MAIL = frozenset({"MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"})
SET_BY_CRON = frozenset({"USER", "LOGNAME"})


@dataclass(slots=True)
class _Settings:
    """The variables and comments above an entry."""

    zone: str
    default_zone: str
    shell: str = DEFAULT_SHELL
    home: str | None = None
    jitter_seconds: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)


def parse_crontab(text: str, *, zone: str, has_users: bool) -> Imported:
    """Parses a crontab.

    `zone` applies to entries without a zone of their own. With `has_users`, each entry names a user, as in
    /etc/crontab.
    """
    found, settings, names = Imported(), _Settings(zone, zone), Names()
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("#"):
            settings.comments.append(line.lstrip("#").strip())
            continue
        if line:
            _read_line(line, number, found, settings, names, has_users)
        settings.comments.clear()
    return found


def _read_line(line: str, number: int, found: Imported, settings: _Settings, names: Names, has_users: bool) -> None:
    if (variable := VARIABLE.fullmatch(line)) and not _has_own_zone(line):
        text = _set(variable["name"], _unquoted(variable["value"].strip()), settings)
        if text:
            found.notes.append(Note(number, text))
        return
    try:
        notes: list[str] = []
        fields = _job(line, settings, notes, has_users)
    except Invalid as error:
        found.left_out.append(Note(number, error.detail))
        return
    fields["name"] = names.of(settings.comments, fields["metadata"].pop("command"), number)
    if not fields["metadata"]:
        del fields["metadata"]
    found.entries.append(Entry(number, fields))
    found.notes.extend(Note(number, text) for text in notes)


def _set(name: str, value: str, settings: _Settings) -> str:
    """Stores a variable. Returns a note if it can't be kept as under cron."""
    if name in MAIL:
        return (
            f"{name}: no mail is sent; see the output with `foliot logs` and failed runs with `foliot dead`"
            if value
            else ""
        )
    if name in SET_BY_CRON:
        return f"{name}: commands run as the worker's user"
    if name == "SHELL":
        settings.shell = value or DEFAULT_SHELL
    elif name == "CRON_TZ":
        value = value.removeprefix(":")
        if not value:
            settings.zone = settings.default_zone
            return ""
        try:
            zone_named(value)
        except Invalid as error:
            return f"CRON_TZ: {error.detail}; later entries stay in {settings.zone}"
        settings.zone = value
    elif name == "RANDOM_DELAY":
        settings.jitter_seconds = min(int(value), 1440) * 60 if value.isdecimal() else 0
    else:
        settings.environment[name] = value
        if name == "HOME":
            settings.home = value
    return ""


def _job(line: str, settings: _Settings, notes: list[str], has_users: bool) -> dict[str, Any]:
    if line.startswith("-"):
        # Some crons do not log entries that start with a dash.
        line = line[1:]
    zone = settings.zone
    if own := ZONE_PREFIX.fullmatch(line):
        zone, line = _unquoted(own["zone"]).removeprefix(":"), own["entry"]
    when, rest = _schedule(line, notes)
    if has_users:
        user, _, rest = re.sub(r"\s+", " ", rest, count=1).partition(" ")
        if not USER.fullmatch(user):
            raise Invalid(f"{user!r} is no user name; if the entries name no users, leave out --system")
        notes.append(f"user {user}: commands run as the worker's user")
    command, stdin = _split_input(rest)
    if not command:
        raise Invalid(
            "the command is missing" + ("; if the entries name no users, leave out --system" if has_users else "")
        )
    payload: dict[str, Any] = (
        {"command": command} if settings.shell == DEFAULT_SHELL else {"argv": [settings.shell, "-c", command]}
    )
    payload |= {
        name: value
        for name, value in (("cwd", settings.home), ("environment", dict(settings.environment)), ("stdin", stdin))
        if value
    }  # fmt: skip
    job: dict[str, Any] = {
        "task": "shell",
        **when,
        "timezone": zone,
        "payload": payload,
        "overlap": "allow_all",
        "catchup": "none",
        "retries": 0,
        "timeout_seconds": MAX_TIMEOUT_SECONDS,
        "metadata": {"command": command}
        | ({"description": "\n".join(settings.comments)} if any(settings.comments) else {}),
    }
    if any("{{" in text for text in (command, stdin, settings.home or "", *settings.environment.values())):
        # Cron passes braces on as they are.
        job["templates"] = False
    return job | ({"jitter_seconds": settings.jitter_seconds} if settings.jitter_seconds else {})


def _has_own_zone(line: str) -> bool:
    """`CRON_TZ=Europe/Berlin 0 9 * * * command`: a valid zone and an entry, so this is not a variable."""
    found = ZONE_PREFIX.fullmatch(line)
    try:
        zone_named(_unquoted(found["zone"]).removeprefix(":") if found else "")
    except Invalid:
        return False
    return True


def _schedule(line: str, notes: list[str]) -> tuple[dict[str, str], str]:
    """Splits an entry into the schedule fields of the job and the rest of the line."""
    if line.startswith("@"):
        word, _, rest = re.sub(r"\s+", " ", line, count=1).partition(" ")
        if word.lower() == "@every":
            period, _, rest = re.sub(r"\s+", " ", rest.strip(), count=1).partition(" ")
            parse_duration(period, field="@every")
            return {"every": period}, rest.strip()
        if word.lower() not in ALIASES:
            raise Invalid(unknown_alias(word, ALIASES))
        return {"cron": ALIASES[word.lower()]}, rest.strip()
    pieces = line.split(None, 5)
    if len(pieces) < 6:
        raise Invalid("not a variable and not an entry of five fields and a command")
    fields = [_without_random(piece, place, notes) for place, piece in enumerate(pieces[:5])]
    refusal = parse_fields(" ".join(fields)).refusal
    if refusal is not None:
        raise refusal
    return {"cron": " ".join(fields)}, pieces[5]


def _without_random(piece: str, place: int, notes: list[str]) -> str:
    """Turns `0~30` into a value hashed from the job's id. cron picks a new random value at each start."""
    if "~" not in piece:
        return piece
    notes.append(f"{piece}: the random value is picked once and stays the same")
    low, high = RANGES[place]
    return RANDOM_RANGE.sub(lambda found: f"H({found['low'] or low}-{found['high'] or high})", piece)


def _split_input(text: str) -> tuple[str, str]:
    """Splits at unescaped %: the first ends the command, each further one ends a line of its input."""
    parts = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", text)]
    command, *lines = parts
    return command.strip(), "\n".join(lines) + "\n" if lines else ""


def _unquoted(value: str) -> str:
    is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
