"""The pytest plugin `pytest-chronolet`: gives tests recorded histories.

Input: the name of a file. Output: a `History`. pytest loads this module wherever chronolet is installed, so it imports
the rest only when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from chronolet.testing.history import History


@pytest.fixture
def history(request: pytest.FixtureRequest) -> Callable[[Path | str], History]:
    """Return a function that reads an exported history. A relative name is one in the folder of the test's file."""
    from chronolet.testing.history import History  # noqa: PLC0415 - see above

    return lambda file: History.read(request.path.parent / file)
