"""Fixture: a pod's start, whose steps the tests in this folder record."""

import pytest

from tests.cli.support.pod_start import Started


@pytest.fixture
def start() -> Started:
    return Started()
