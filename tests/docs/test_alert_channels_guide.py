"""Runs the code blocks of the guide to alert channels, as a reader would."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from tests.docs.test_readme import followed
from tests.support.processes import ROOT

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]


@pytest.mark.slow
async def test_following_the_guide_to_alert_channels_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The block with the settings is for the terminal of `make up`.
    monkeypatch.setenv("FOLIOT_SECRET_KEY", base64.b64encode(b"k" * 32).decode())
    monkeypatch.setenv("FOLIOT_SECRET_REFERENCES", "env:ALERTS_*,file:/run/secrets/*")
    monkeypatch.setenv("FOLIOT_HTTP_ALLOW_HOSTS", "localhost")
    _, mails, secrets, sealed, texts, receiver, signed = await followed(
        (ROOT / "docs" / "alert-channels.md").read_text(), tmp_path, works_in=tmp_path
    )
    assert "Subject: [info] Test: The channel ops works" in mails
    assert "Subject: info: The channel ops works" in mails
    assert re.search(r"^ops +email +ops@example.org +2 ", mails, re.MULTILINE)
    assert secrets.count("exit code 2") == 2
    assert re.search(r"^chat +slack +\*\*\* +1 ", secrets, re.MULTILINE)
    assert re.search(r"^pager +pagerduty +env:ALERTS_PAGERDUTY +1 ", secrets, re.MULTILINE)
    assert (sealed, texts, receiver) == ("", "exit code 2\n", "")
    assert signed == "exit code 1\ngenuine alert.test\nforged alert.test\n"
