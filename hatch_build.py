"""Builds the web UI before a wheel or sdist is packed. An editable install leaves that to `make up` and `make ui`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WITHOUT = "FOLIOT_WITHOUT_UI"


class UserInterfaceHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or os.environ.get(WITHOUT) == "1":
            return
        build = Path(self.root) / "tools" / "build_ui.py"
        if subprocess.run([sys.executable, str(build)], check=False).returncode:
            raise RuntimeError(f"the web UI could not be built; set {WITHOUT}=1 to pack Foliot without it")
