"""Generated pages are up to date, and the architecture map names existing files."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from tools import command_line
from tools.document import API_TARGET, METRICS_TARGET, TARGET, metrics_page, page
from tools.document_api import api_page, document, errors

from foliot.cli.main import cli
from foliot.config import setting_names
from tests.support.processes import ROOT


def test_the_configuration_page_is_up_to_date() -> None:
    assert TARGET.read_text() == page(), "run `make docs`"
    for name in setting_names():
        assert f"`{name}`" in TARGET.read_text()


def test_the_page_of_the_metrics_is_up_to_date() -> None:
    assert METRICS_TARGET.read_text() == metrics_page(), "run `make docs`"


def test_the_page_of_the_api_is_up_to_date_and_complete() -> None:
    text = API_TARGET.read_text()
    assert text == api_page(), "run `make docs`"
    for path, methods in document()["paths"].items():
        for method in methods:
            assert f"### `{method.upper()} {path}`\n" in text
    for code, _, meaning in errors():
        assert f"| `{code}` |" in text
        assert meaning, f"the error {code} has no docstring"


def test_every_code_of_a_problem_is_on_the_page_of_the_api() -> None:
    """Codes that are also written where errors are raised. A missing one belongs in OTHERS of tools/document_api.py."""
    sources = [path.read_text() for path in (ROOT / "src" / "foliot" / "api").rglob("*.py")]
    given = {code for text in sources for code in re.findall(r"""(?:\bproblem\(|\breturn )\d{3}, "(\w+)""", text)}
    assert {"internal", "store_unavailable"} <= given
    assert given <= {code for code, _, _ in errors()}


def test_every_package_and_module_of_the_map_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:api|scheduler|worker|model|store)/[a-z_/]+\.py)`", text))
    assert len(named) > 8
    for path in named:
        assert (ROOT / "src" / "foliot" / path).exists(), path


def test_no_file_names_a_registry_or_a_machine_path() -> None:
    forbidden = re.compile(
        "|".join(["pypi" + r"\.org", "python" + "hosted", "registry" + r"\.npmjs", "deb" + r"\.debian\.org"])
    )
    for path in [*ROOT.glob("requirements/*"), *ROOT.glob("*.*"), *ROOT.glob("src/**/*.*")]:
        if path.is_file() and path.suffix in {".txt", ".toml", ".md", ".py", ".sql", ".in"}:
            assert not forbidden.search(path.read_text()), path


def test_the_page_of_the_commands_is_up_to_date_and_has_them_all() -> None:
    text = command_line.TARGET.read_text()
    assert text == command_line.page(), "run `make docs`"
    context = click.Context(cli, info_name="foliot")
    for path, command in every_command(cli, context):
        assert f"`{path}" in text
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert max(option.opts, key=len) in text, (path, option.opts)


def every_command(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        assert found.help, name
        below = click.Context(found, info_name=name, parent=context)
        yield below.command_path, found
        yield from every_command(found, below)
