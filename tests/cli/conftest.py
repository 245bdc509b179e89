"""The node that the tests of views look at."""

import pytest

from tests.cli import histories
from tests.cli.written import WrittenNode


@pytest.fixture
def node() -> WrittenNode:
    """web: app crashed twice and waits, side runs. db in another namespace is being made. gone has ended."""
    return histories.web()
