"""Waits of the product that a busy machine may exceed, made long in the test's own process.

Comes out: fixtures for the `conftest.py` of a folder.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronolet.kernel import redis_reader, redis_scan, redis_store
from tests.support.scratch import HANG_SECONDS


@pytest.fixture(scope="module", autouse=True)
def patient_stores() -> Iterator[None]:
    """Stores that tests make themselves give up only a server that hangs."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STEP", "LEASE", "QUERY"):
            patch.setattr(redis_store, f"{name}_TIMEOUT_SECONDS", HANG_SECONDS)
        patch.setattr(redis_reader, "_MARGIN_SECONDS", HANG_SECONDS)
        patch.setattr(redis_scan, "_TIMEOUT_SECONDS", HANG_SECONDS)
        defaults = redis_store.RedisStore.__init__.__kwdefaults__
        assert defaults is not None
        patch.setitem(defaults, "patience_seconds", HANG_SECONDS)
        yield
