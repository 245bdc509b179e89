"""Waits of the product that a busy machine may exceed, made long in the test's own process.

Comes out: a fixture for the `conftest.py` of a folder, and what it does for one test.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronolet.kernel.storage.redis import reader, scan, store
from tests.support.scratch import HANG_SECONDS


@pytest.fixture(scope="module", autouse=True)
def patient_stores() -> Iterator[None]:
    """`be_patient`, for all tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        be_patient(patch)
        yield


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores that this process makes wait for a server that gets no processor for a while; only one that hangs is given
    up. An agent's give up after seconds, which is no business of a test that only looks at the log.
    """
    for name in ("STEP", "LEASE", "QUERY"):
        monkeypatch.setattr(store, f"{name}_TIMEOUT_SECONDS", HANG_SECONDS)
    monkeypatch.setattr(reader, "_MARGIN_SECONDS", HANG_SECONDS)
    monkeypatch.setattr(scan, "_TIMEOUT_SECONDS", HANG_SECONDS)
    defaults = store.RedisStore.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "patience_seconds", HANG_SECONDS)
