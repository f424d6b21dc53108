"""A test's own certificate authority, made with openssl."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

from tests.support.debian import require

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    def __init__(self, directory: Path) -> None:
        self._openssl = require("openssl", "openssl")
        self._directory = directory
        self.certificate, self._key = directory / "ca.pem", directory / "ca.key"
        self._make(
            "-x509",
            "-subj",
            "/CN=test authority",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-days",
            "2",
            "-addext",
            "keyUsage=critical,keyCertSign",
            "-keyout",
            str(self._key),
            "-out",
            str(self.certificate),
        )

    def server(self, names: str, *, is_self_signed: bool = False) -> ssl.SSLContext:
        """A TLS context for a server with these names (`DNS:...`, `IP:...`)."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.files(names, is_self_signed=is_self_signed))
        return context

    def files(self, names: str, *, is_self_signed: bool = False) -> tuple[Path, Path]:
        """Creates a certificate and its key."""
        certificate, key = self._directory / "server.pem", self._directory / "server.key"
        signed_by = () if is_self_signed else ("-CA", str(self.certificate), "-CAkey", str(self._key))
        self._make(
            "-x509",
            *signed_by,
            "-subj",
            "/CN=server",
            "-addext",
            f"subjectAltName={names}",
            "-days",
            "2",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        )
        return certificate, key

    def _make(self, *arguments: str) -> None:
        subprocess.run([self._openssl, "req", *KEY, *arguments], check=True, capture_output=True, timeout=30)
