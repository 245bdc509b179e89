"""One setting: its names, and how it is read.

Comes in: nothing. Goes out: what the tables of settings are made of. Next: `settings` and those tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Setting(Struct, frozen=True):
    """One setting's names. `field` is its path in a KubeletConfiguration, empty where the kubelet has none there."""

    name: str
    flag: str
    env: str
    help: str
    parse: Callable[[str, Any], Any]
    field: str = ""
    metavar: str = "TEXT"
