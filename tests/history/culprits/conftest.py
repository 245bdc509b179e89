"""A pod's start, of which the tests of this folder record the steps."""

import pytest

from tests.cli.started import Started


@pytest.fixture
def start() -> Started:
    return Started()
