"""The tests of the store wait for a server that gets no processor."""

import pytest

from tests.support.patience import be_patient


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those about time-outs set their own."""
    be_patient(monkeypatch)
