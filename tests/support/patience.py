"""Waits of the product that a busy machine may exceed, made long in the test's own process.

Comes out: fixtures for the `conftest.py` of a folder.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronolet.kernel import redis_store
from tests.support.scratch import HANG_SECONDS


@pytest.fixture(scope="module", autouse=True)
def patient_stores() -> Iterator[None]:
    """Stores that tests make themselves give up only a server that hangs."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STEP", "LEASE", "QUERY"):
            patch.setattr(redis_store, f"{name}_TIMEOUT_SECONDS", HANG_SECONDS)
        yield
