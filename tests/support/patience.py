"""Store time-outs that only a hang exceeds, for tests on a busy machine.

Input: nothing. Output: `PATIENT`, for stores that a test creates; a fixture for the `conftest.py` of a folder whose
tests run product code that creates stores.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronolet.kernel.storage.redis.store import RedisStore, Timeouts
from tests.support.scratch import HANG_SECONDS

PATIENT = Timeouts(
    step_seconds=HANG_SECONDS,
    resending_seconds=HANG_SECONDS,
    lease_seconds=HANG_SECONDS,
    query_seconds=HANG_SECONDS,
    scan_seconds=HANG_SECONDS,
    wait_margin_seconds=HANG_SECONDS,
)
"""Time-outs for a server that may get no CPU time for a while. An agent gives up after a few seconds; a test that only
reads the log should not.
"""


@pytest.fixture(scope="module", autouse=True)
def patient_stores() -> Iterator[None]:
    """Apply `be_patient` to all tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        be_patient(patch)
        yield


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `PATIENT` the default of the stores that this process creates, including those in product code."""
    defaults = RedisStore.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "timeouts", PATIENT)
