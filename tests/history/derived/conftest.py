"""Lowers the limit of decompressed bodies for these tests."""

import pytest

from chronolet.history.derived import sealed
from tests.history.derived.support import LARGEST_BODY


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LARGEST_BODY < sealed.LARGEST_BODY
    monkeypatch.setattr(sealed, "LARGEST_BODY", LARGEST_BODY)
