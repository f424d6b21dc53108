"""`foliot alerts channels` and `foliot alerts test`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.terminal import Shell

pytestmark = pytest.mark.process
MAIL = ("email", "host=mail.invalid", "from=foliot@example.org", "to=ops@example.org, anna@example.org")


def test_a_channel_is_set_listed_changed_and_deleted(shell: Shell) -> None:
    made = shell.foliot("alerts", "channels", "set", "ops", *MAIL, "port=2525")
    assert (made.code, made.err) == (0, "channel ops is saved; try it: foliot alerts test ops\n")
    assert "ops@example.org, anna@example.org" in shell.done("alerts", "channels")
    assert shell.done("alerts", "channels", "list") == shell.done("alerts", "channels")
    shell.foliot("alerts", "channels", "set", "ops", "port=", "title=late: {{ title }}")
    shown = json.loads(shell.done("alerts", "channels", "show", "ops", "--json"))
    assert (shown["version"], shown["channel"]["port"], shown["channel"]["title"]) == (2, None, "late: {{ title }}")
    assert shown["channel"]["to"] == ["ops@example.org", "anna@example.org"]
    assert "late: {{ title }}" in shell.done("alerts", "channels", "show", "ops")
    failed = shell.foliot("alerts", "test", "ops")
    assert (failed.code, failed.err.startswith("not delivered: ")) == (1, True)
    assert json.loads(shell.foliot("alerts", "test", "ops", "--json").out)["is_delivered"] is False
    assert shell.foliot("alerts", "channels", "delete", "ops").code == 0
    assert "there is no alert channel 'ops'" in shell.foliot("alerts", "test", "ops").err
    assert "No alert channels." in shell.foliot("alerts", "channels").err


def test_a_channel_comes_from_a_file(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "ops.yaml"
    file.write_text("kind: email\nhost: mail.invalid\nfrom: foliot@example.org\nto: [ops@example.org]\n")
    try:
        assert shell.foliot("alerts", "channels", "set", "filed", "--file", str(file)).code == 0
        assert "mail.invalid" in shell.done("alerts", "channels", "show", "filed")
    finally:
        shell.foliot("alerts", "channels", "delete", "filed")
    for content in ("[1]", "kind: [", "kind: email\nhost: x\n"):
        file.write_text(content)
        assert shell.foliot("alerts", "channels", "set", "filed", "--file", str(file)).code == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("pigeon",), "there is no kind 'pigeon'"),
        (("emial", "host=x"), "did you mean 'email'?"),
        (("email", "hots=x"), "did you mean 'host'?"),
        (("email", "host"), "is not FIELD=VALUE"),
        (("email", "port=x"), "port: 'x' is not a number"),
        (("host=x",), "there is no channel 'new' yet; give its kind"),
        (("slack", "webhook_url=https://hooks.example.org/sEcReT"), "give webhook_url=-, which prompts for it"),
        (("slack", "webhook_url=env:ALERTS_SLACK"), "secret_references"),
        ((*MAIL, "title={{ nothing }}"), "there is no name 'nothing'"),
        ((), "give either fields or --file"),
        (("email", "--file", "x"), "give either fields or --file"),
    ],
)
def test_a_bad_channel_is_refused(shell: Shell, arguments: tuple[str, ...], text: str) -> None:
    refused = shell.foliot("alerts", "channels", "set", "new", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert text in refused.err
    assert "sEcReT" not in refused.err


def test_a_secret_is_read_from_standard_input(shell: Shell) -> None:
    refused = shell.foliot(
        "alerts", "channels", "set", "new", "slack", "webhook_url=-", stdin=b"https://hooks.invalid/sEcReT\n"
    )
    # The server of these tests has no key.
    assert (refused.code, "no secret_key" in refused.err) == (2, True)
    assert "sEcReT" not in refused.err
