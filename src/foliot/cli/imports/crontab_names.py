"""Names for the jobs of a crontab: the comment above an entry, or else the program and its first arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from foliot.errors import Invalid
from foliot.model.job import check_name

NAME_MAX = 60
ARGUMENTS_MAX = 2
# Commands before the one that matters, and programs that run it.
PREPARING = frozenset({"cd", "test", "[", "sleep", "export", "set", ".", "source"})
WRAPPERS = frozenset(
    {"env", "sudo", "nice", "ionice", "chronic", "timeout", "flock", "exec"}
    | {"sh", "bash", "dash", "zsh", "perl", "php", "python", "python3", "ruby", "node"}
)
ARGUMENT_OF_OPTION = re.compile(r"[+-]?[0-9]+%?[a-zA-Z]?")
NUMBER = re.compile(r"[0-9]+[smhd]?")
SEPARATOR = re.compile(r"&&|\|\||[;|]")
REDIRECTION = re.compile(r"(?:[0-9]|&)?>{1,2}\s*&?\S+|<{1,3}\s*\S+")
# Names of scripts that say nothing without their directory.
COMMON = frozenset({"cron", "index", "job", "main", "run", "script", "start", "task"})
SUFFIXES = frozenset({".sh", ".bash", ".py", ".pl", ".rb", ".php", ".js"})
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\s*=.*", re.DOTALL)


class Names:
    """Gives each job of a crontab a unique name."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, comments: Sequence[str], command: str, number: int) -> str:
        found = (name for name in (*map(_of_comment, comments), _of_command(command)) if name)
        name = next(found, f"crontab-line-{number}")
        unique, count = name, 2
        while unique in self._taken:
            unique, count = f"{name}-{count}", count + 1
        self._taken.add(unique)
        return unique


def _of_comment(text: str) -> str:
    """The text as a job name; empty if it is too long, invalid, or an entry that was commented out."""
    name = re.sub(r"\s+", " ", text.replace("/", "-")).strip(" -=*#:.")
    is_entry = text.startswith("@") or len(re.findall(r"^\S*[0-9*]\S*|(?<=\s)[0-9*/,~-]+(?=\s)", text)) >= 4
    is_other = is_entry or "dom mon dow" in text or VARIABLE.fullmatch(text)
    return "" if is_other or len(name) > NAME_MAX else _valid(name)


def _of_command(command: str) -> str:
    """`manage-clearsessions` for `cd /srv/app && python3 manage.py clearsessions`."""
    for part in SEPARATOR.split(command):
        if words := _words(part):
            return _valid("-".join(filter(None, map(_plain, words)))[:NAME_MAX].strip("-."))
    return ""


def _words(command: str) -> list[str]:
    """The program and its first arguments; nothing for a command that only prepares the next one."""
    words = [
        word
        for raw in REDIRECTION.sub(" ", command).split()
        if (word := raw.strip("\"'()`")) and not word.startswith("-") and "=" not in word
    ]
    if words and words[0] in PREPARING:
        return []
    while len(words) > 1 and (PurePosixPath(words[0]).name in WRAPPERS or NUMBER.fullmatch(words[0])):
        words = words[1:]
    return words[:1] + [word for word in words[1:] if not ARGUMENT_OF_OPTION.fullmatch(word)][:ARGUMENTS_MAX]


def _plain(word: str) -> str:
    """The part of a name that a word gives: the name of a file without its suffix, and with its directory if it says
    nothing by itself."""
    if "://" in word:
        word = word.split("://", 1)[1].split("/", 1)[0]
    path = PurePosixPath(word)
    stem = path.stem if path.suffix in SUFFIXES else path.name
    if stem in COMMON and path.parent.name:
        stem = f"{path.parent.name}-{stem}"
    return re.sub(r"[^\w.]+", "-", stem).strip("-.")


def _valid(name: str) -> str:
    try:
        check_name(name)
    except Invalid:
        return ""
    return name
