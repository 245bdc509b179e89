"""Fixtures: a `Desk`, at which plugins register."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from chronolet.adapters.device_plugins.plugins import GrpcDevicePlugins
from tests.adapters.device_plugins.support import PATIENT, SHORT, Desk
from tests.support import scratch


@pytest.fixture
def desk() -> Iterator[Desk]:
    root = scratch.create("devices")
    folder, watched = root / "device-plugins", root / "plugins_registry"
    yield Desk(GrpcDevicePlugins(folder, watched, PATIENT), folder, watched)
    shutil.rmtree(root)


@pytest.fixture
def hasty(desk: Desk) -> Desk:
    """A second `Desk` for the folders of `desk`, with short time-outs, for tests in which a call times out."""
    return Desk(GrpcDevicePlugins(desk.folder, desk.watched, SHORT), desk.folder, desk.watched)
