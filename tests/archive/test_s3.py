"""The archive in a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from foliot.archive.destination import ArchiveUnavailable, open_destination
from foliot.config import Config
from foliot.model.archive import KINDS
from foliot.store.store import Store
from tests.support.archive import DAY_SECONDS, archiver_of, catch_up, fill, rows_of
from tests.support.fake_clock import FakeClock
from tests.support.s3 import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def in_s3(s3: S3Server, config: Config) -> Config:
    return msgspec.structs.replace(config, **s3.settings())


async def test_days_are_archived_listed_and_read_back(store: Store, in_s3: Config, fake_clock: FakeClock) -> None:
    ids = await fill(store, fake_clock)
    await fake_clock.advance(DAY_SECONDS)
    await catch_up(archiver_of(store, in_s3))
    destination = open_destination(in_s3)
    assert set(destination.directories("")) == {"runs", *(kind for kind in KINDS if destination.sizes(f"{kind}/"))}
    assert sorted(row["id"] for row in rows_of(destination, "runs")) == sorted(ids)


def test_an_object_is_replaced_and_one_that_is_missing_is_none(in_s3: Config) -> None:
    destination = open_destination(in_s3)
    for content in (b"first", b"second"):
        destination.put("tries/ä object", content)
        assert destination.get("tries/ä object") == content
    assert destination.sizes("tries/") == {"ä object": 6}
    assert destination.get("tries/nothing") is None
    assert destination.directories("nowhere/") == []


def test_a_wrong_key_is_an_archive_that_is_unavailable(in_s3: Config) -> None:
    destination = open_destination(msgspec.structs.replace(in_s3, archive_s3_secret_key="swordfish"))
    with pytest.raises(ArchiveUnavailable, match=r"SignatureDoesNotMatch|403"):
        destination.put("tries/x", b"x")
    with pytest.raises(ArchiveUnavailable):
        destination.sizes("tries/")


def test_a_server_that_is_down_is_an_archive_that_is_unavailable(tmp_path: Path, config: Config) -> None:
    nowhere = msgspec.structs.replace(config, **S3Server(tmp_path).settings())
    with pytest.raises(ArchiveUnavailable):
        open_destination(nowhere).put("tries/x", b"x")
