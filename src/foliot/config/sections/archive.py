"""Settings of the archive of old history, and of the search engine."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from foliot.config.sections.coordination import CoordinationSettings


class ArchiveSettings(CoordinationSettings, frozen=True, kw_only=True):
    archive_url: Annotated[
        str,
        Meta(
            description="Where history is kept after its retention: s3://BUCKET/PREFIX or the absolute path of a "
            "directory. Empty: nowhere."
        ),
    ] = ""
    archive_format: Annotated[
        Literal["parquet", "jsonl"], Meta(description="Format of the archive: Parquet, or gzipped JSON lines.")
    ] = "parquet"
    archive_minutes: Annotated[
        Literal[1, 5, 10, 15, 30, 60, 120, 240],
        Meta(description="Minutes of history that an object of the archive holds."),
    ] = 15
    archive_timeout_seconds: Annotated[
        float, Meta(gt=0, le=600, description="How long a request to the archive may take.")
    ] = 30
    archive_s3_endpoint: Annotated[
        str, Meta(description="URL of an S3 store other than that of AWS, such as MinIO, Ceph or R2.")
    ] = ""
    archive_s3_region: Annotated[str, Meta(description="Region of the bucket. Empty: as the AWS tools find it.")] = ""
    archive_s3_access_key: Annotated[
        str, Meta(description="Access key id. Empty: the credentials that the AWS tools find, such as a role.")
    ] = ""
    archive_s3_secret_key: Annotated[str, Meta(description="Secret access key that belongs to it.")] = ""
    archive_s3_secret_key_file: Annotated[str, Meta(description="File that contains `archive_s3_secret_key`.")] = ""
    search_url: Annotated[
        str,
        Meta(description="URL of an OpenSearch or Elasticsearch that indexes runs and their output. Empty: none."),
    ] = ""
    search_prefix: Annotated[
        str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$(?!\n)", description="Beginning of the names of its indexes.")
    ] = "foliot"
    search_keep_days: Annotated[
        int, Meta(ge=1, le=36_500, description="Days after which a policy of the search engine deletes an index.")
    ] = 90
    search_username: Annotated[str, Meta(description="User of the search engine. Empty: none.")] = ""
    search_password: Annotated[str, Meta(description="Password of that user.")] = ""
    search_password_file: Annotated[str, Meta(description="File that contains `search_password`.")] = ""
    search_api_key: Annotated[str, Meta(description="API key for the search engine, instead of a user.")] = ""
    search_api_key_file: Annotated[str, Meta(description="File that contains `search_api_key`.")] = ""
