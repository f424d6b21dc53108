"""Values in command lines stay one word and are never executed, wherever they stand. Checked with a real shell."""

from __future__ import annotations

import random
import subprocess

import pytest

from foliot.model.shell_text import ShellText

HOSTILE = "$(printf pw%s ned)`printf pw%s ned`'\";printf pw%s ned\nprintf pw%s ned\n"
NASTY = "a b'c\"d`id`$(id)$HOME;id\\ \n*#"
PLACES = [
    "printf %s {}",
    'printf %s "{}"',
    "printf %s '{}'",
    'printf %s "$(printf %s "{}")"',
    'printf %s "$(printf %s {})"',
    "printf %s `printf %s \"{}\"`x | sed 's/x$//' || true; exit 0; printf {}",
    "# it's a comment\nprintf %s {}",
    "printf %s\\\n '{}'",
    'printf "%s" "it\'s" >/dev/null; printf %s {}',
    "(printf %s {})",
    "x=${{HOME#/}}; printf %s {}",
]


def run(line: str, environment: dict[str, str]) -> bytes:
    surroundings = {"PATH": "/usr/bin:/bin", "HOME": "/h", **environment}
    done = subprocess.run(["/bin/sh", "-c", line], env=surroundings, capture_output=True, check=False)
    return done.stdout


def placed(place: str, value: str) -> tuple[str, dict[str, str]]:
    shell, parts, line = ShellText(), place.replace("{{", "\1").replace("}}", "\2").split("{}"), ""
    for number, part in enumerate(parts):
        part = part.replace("\1", "{").replace("\2", "}")
        shell.follow(part)
        line += part + (shell.inserted(value) if number < len(parts) - 1 else "")
    return line, shell.environment


@pytest.mark.parametrize("place", [place for place in PLACES if "`" not in place])
@pytest.mark.parametrize("value", [NASTY, "", "-", "2026-03-29T03:30:00+02:00", "ü"])
def test_a_value_arrives_as_it_is(place: str, value: str) -> None:
    expected = value.rstrip("\n") if "$(" in place else value
    assert run(*placed(place, value)).decode() == expected


@pytest.mark.parametrize("place", PLACES)
def test_the_value_itself_never_appears_in_the_line(place: str) -> None:
    line, environment = placed(place, NASTY)
    assert "id" not in line.replace("foliot_value", "")
    assert set(environment.values()) == {NASTY}


def test_a_harmless_value_appears_in_the_line() -> None:
    assert placed("echo {}", "2026-03-29") == ("echo 2026-03-29", {})


def test_no_value_is_executed_in_any_line() -> None:
    """If quotes are misread, the words are wrong, but no part of the value is executed."""
    chance = random.Random(7)
    bits = ["'", '"', "`", "$(", ")", "(", "\\", "#", " ", "\n", "echo", ";", "x", "<<E\n", "\nE\n", "{}"]
    for _ in range(200):
        place = "".join(chance.choice(bits) for _ in range(12)) + " {}"
        assert b"pwned" not in run(*placed(place, HOSTILE))
