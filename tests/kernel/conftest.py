"""Shares the `rig` fixture among the kernel's tests."""

import pytest
import structlog

from tests.kernel.rig import rig

__all__ = ["rig"]


@pytest.fixture(autouse=True, scope="session")
def plain_tracebacks() -> None:
    """Replace structlog's tracebacks with plain ones: structlog's show all local variables, which takes up to a second
    per failing host under load.
    """
    processors = structlog.get_config()["processors"]
    for one in processors:
        if isinstance(one, structlog.dev.ConsoleRenderer):
            one.exception_formatter = structlog.dev.plain_traceback
