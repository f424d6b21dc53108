"""A real S3 server, Versity's gateway, built from its Go module. It keeps objects as files and checks signatures."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import boto3
import botocore.config

from tests.support.go_modules import built_program
from tests.support.real_server import SECRET, RealServer

VERSION = "1.0.14"
PACKAGE = "github.com/versity/versitygw/cmd/versitygw"
BUCKET, KEY, REGION = "archive", "foliot", "eu-central-1"


class S3Server(RealServer):
    kind = "s3"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self, port: int = 0) -> dict[str, str]:
        """The settings of an archive here. `port`: of a proxy in front of it."""
        return {
            "archive_url": f"s3://{BUCKET}/history",
            "archive_s3_endpoint": f"http://127.0.0.1:{port or self.port}",
            "archive_s3_region": REGION,
            "archive_s3_access_key": KEY,
            "archive_s3_secret_key": SECRET,
        }

    def command(self) -> list[str]:
        program = built_program(f"{PACKAGE}@v{VERSION}", "versitygw")
        (self.directory / "objects" / BUCKET).mkdir(parents=True, exist_ok=True)
        return [
            str(program), "--port", f"127.0.0.1:{self.port}", "--region", REGION, "--quiet", "posix",
            str(self.directory / "objects"),
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        return {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def objects(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """The name and content of each object whose name begins so."""
        client: Any = boto3.session.Session().client(
            "s3", endpoint_url=self.url, region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
            config=botocore.config.Config(s3={"addressing_style": "path"}),
        )  # fmt: skip
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix):
            for found in page.get("Contents", ()):
                yield found["Key"], client.get_object(Bucket=BUCKET, Key=found["Key"])["Body"].read()
