"""The kernel's tests share the rig."""

import pytest
import structlog

from tests.kernel.rig import rig

__all__ = ["rig"]


@pytest.fixture(autouse=True, scope="session")
def plain_tracebacks() -> None:
    """Not structlog's own, which draw all local variables: next to other load a failing host costs a second of that."""
    processors = structlog.get_config()["processors"]
    for one in processors:
        if isinstance(one, structlog.dev.ConsoleRenderer):
            one.exception_formatter = structlog.dev.plain_traceback
