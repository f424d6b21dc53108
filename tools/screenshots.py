"""Takes the pictures of README and docs from a demo: `make screenshots`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from foliot.clock import block

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
MINUTES = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="How long the demo runs before the pictures.")
    parser.add_argument("--url", help="A running demo to take them from.")
    given = parser.parse_args()
    if given.url:
        take(given.url)
        return
    with tempfile.TemporaryDirectory() as directory:
        demo = subprocess.Popen(
            [sys.executable, "-m", "foliot", "up", "--demo", "--data", f"{directory}/data", "--port", "0"],
            stdout=subprocess.PIPE, text=True,
            env=os.environ | {"FOLIOT_LOG_FORMAT": "json", "FOLIOT_GRACE_SECONDS": "1"},
        )  # fmt: skip
        try:
            url = address_of(demo)
            block(given.minutes * 60)
            take(url)
        finally:
            demo.terminate()
            demo.wait()


def address_of(demo: subprocess.Popen[str]) -> str:
    assert demo.stdout is not None
    for line in demo.stdout:
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "ProcessStarted" and event.get("part") == "up":
            return str(event["address"])
    raise SystemExit("the demo has not started")


def take(url: str) -> None:
    chromium, node = shutil.which("chromium"), shutil.which("node")
    if chromium is None or node is None:
        raise SystemExit("screenshots need node and chromium")
    PICTURES.mkdir(exist_ok=True)
    subprocess.run([node, "journeys/shots.mjs", url, chromium, str(PICTURES)], cwd=ROOT / "ui", check=True)


if __name__ == "__main__":
    main()
