"""An archive in an S3 store: that of AWS, or a compatible one."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import botocore.config
from botocore.exceptions import ClientError

from foliot.archive.destination import ArchiveUnavailable
from foliot.config import Config, bucket_of

LISTED = 1_000
ERROR_MAX = 500


class S3:
    def __init__(self, config: Config) -> None:
        bucket = bucket_of(config.archive_url)
        assert bucket is not None  # noqa: S101
        self.location = f"s3://{bucket.name}/{bucket.prefix}".rstrip("/")
        self._bucket = bucket.name
        self._prefix = f"{bucket.prefix}/" if bucket.prefix else ""
        self._client: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=config.archive_s3_endpoint or None,
            region_name=config.archive_s3_region or ("us-east-1" if config.archive_s3_endpoint else None),
            aws_access_key_id=config.archive_s3_access_key or None,
            aws_secret_access_key=config.archive_s3_secret_key or None,
            config=botocore.config.Config(
                connect_timeout=min(5.0, config.archive_timeout_seconds),
                read_timeout=config.archive_timeout_seconds,
                retries={"max_attempts": 0},
                s3={"addressing_style": "path"} if config.archive_s3_endpoint else None,
                # Other stores do not know the checksums that AWS has added; all of them know MD5.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )

    def put(self, name: str, content: bytes) -> None:
        md5 = base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
        with self._answering():
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content, ContentMD5=md5)
            stored = self._client.head_object(Bucket=self._bucket, Key=self._prefix + name)["ContentLength"]
        if stored != len(content):
            raise ArchiveUnavailable(f"{self.location}: {name} has {stored} bytes instead of {len(content)}")

    def get(self, name: str) -> bytes | None:
        with self._answering():
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            except ClientError as error:
                if error.response["Error"]["Code"] == "NoSuchKey":
                    return None
                raise
            content: bytes = answer["Body"].read()
            return content

    def sizes(self, directory: str) -> dict[str, int]:
        top = self._prefix + directory
        return {
            found["Key"].removeprefix(top): found["Size"]
            for page in self._pages(top, {})
            for found in page.get("Contents", ())
        }

    def directories(self, directory: str) -> list[str]:
        top = self._prefix + directory
        return [
            found["Prefix"].removeprefix(top).rstrip("/")
            for page in self._pages(top, {"Delimiter": "/"})
            for found in page.get("CommonPrefixes", ())
        ]

    def _pages(self, prefix: str, more: dict[str, str]) -> Iterator[dict[str, Any]]:
        asked: dict[str, Any] = {"Bucket": self._bucket, "Prefix": prefix, "MaxKeys": LISTED, **more}
        while True:
            with self._answering():
                page = self._client.list_objects_v2(**asked)
            yield page
            if not page.get("IsTruncated"):
                return
            asked["ContinuationToken"] = page["NextContinuationToken"]

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """A server that answers garbage makes the library raise errors of any kind."""
        try:
            yield
        except ArchiveUnavailable:
            raise
        except Exception as error:
            text = " ".join(str(error).split())[:ERROR_MAX]
            raise ArchiveUnavailable(f"{self.location}: {type(error).__name__}: {text}") from error
