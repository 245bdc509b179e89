"""A pod's start, of which the tests of this folder record the steps."""

import pytest

from tests.cli.support.pod_start import Started


@pytest.fixture
def start() -> Started:
    return Started()
