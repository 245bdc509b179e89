"""The record that describes one setting.

Input: none. Output: `Setting`. Next: `table` and the partial tables for each subject, which list the settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Setting(Struct, frozen=True):
    """A setting's names, help text and parser. `field`: its path in a KubeletConfiguration, empty if there is none."""

    name: str
    flag: str
    env: str
    help: str
    parse: Callable[[str, Any], Any]
    field: str = ""
    metavar: str = "TEXT"
