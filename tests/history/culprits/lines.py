"""Gets the first line of `chronolet trace`, which names what was slow, and why."""

from __future__ import annotations

from typing import Any

from tests.cli.support.histories import UID
from tests.cli.support.pod_start import Started

ABOUT: dict[str, Any] = {"pod": "default/web", "uid": UID}


def first_line(start: Started) -> str:
    return start.traced()[0]
