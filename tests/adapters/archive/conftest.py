"""Fixtures of the archive tests: an S3-compatible service, and each archive storage in turn."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chronolet.adapters.archive.places import place
from chronolet.kernel.log.archive_storage import ArchiveStorage
from tests.support.s3.server import BUCKET, Service, service

Opened = Callable[[str], ArchiveStorage]


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def bucket(s3: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of an empty prefix in the bucket, and set the environment variables that give access to it."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture(params=["folder", "named folder", "bucket"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Return a function that opens the storage of a run. Tests run once per kind of storage."""
    if request.param == "bucket":
        return place(request.getfixturevalue("bucket"), tmp_path)
    return place(str(tmp_path / "shared") if request.param == "named folder" else "", tmp_path / "root")
