"""The machine's cgroups as tests read them, independent of the product: v1 or v2, plain folders or systemd slices.

Input: a cgroup's name, in the form that Docker uses for a parent. Output: folders, numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.support.docker.engine import DRIVER, IS_V2

_ROOT = Path("/sys/fs/cgroup")
_FILES = {
    "shares": ("cpu", "cpu.shares", "cpu.weight"),
    "quota": ("cpu", "cpu.cfs_quota_us", "cpu.max"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.max"),
    "used": ("cpuacct", "cpuacct.usage", "cpu.stat"),
}
CONTROLLERS = ("",) if IS_V2 else ("cpu", "memory", "pids", "freezer", "devices")
"""The hierarchies in which Docker and the agent create cgroups; v2 has only one."""


def named(*parts: str) -> str:
    """Return the name of a cgroup, given the parts of its path."""
    if DRIVER == "systemd":
        return "-".join(part.replace("-", "_") for part in parts) + ".slice"
    return "/" + "/".join(parts)


def folder(cgroup: str, controller: str = "memory") -> Path:
    """Return a cgroup's folder. A slice's folder is inside that of its parent slice: a-b.slice is in a.slice."""
    path = "/".join(_slices(cgroup)) if cgroup.endswith(".slice") else cgroup.lstrip("/")
    return _ROOT / ("" if IS_V2 else controller) / path


def of_container(container_id: str) -> str:
    """Return the name of the cgroup that Docker creates for a container below its parent."""
    return f"docker-{container_id}.scope" if DRIVER == "systemd" else container_id


def value(what: str, cgroup: str, beneath: str = "") -> int:
    """Return a value of a cgroup, or of the cgroup `beneath` it: `shares` (v2: weight), `quota` in microseconds,
    `memory` in bytes, `used` in nanoseconds; -1 if there is no limit.
    """
    controller, v1, v2 = _FILES[what]
    text = (folder(cgroup, controller) / beneath / (v2 if IS_V2 else v1)).read_text()
    if what == "used" and IS_V2:
        return int(text.split()[1]) * 1000  # usage_usec is the first line
    word = text.split()[0]
    return -1 if word == "max" or int(word) >= 1 << 62 else int(word)


def file_of(what: str) -> str:
    """Return the name of a value's file."""
    _, v1, v2 = _FILES[what]
    return v2 if IS_V2 else v1


def _slices(unit: str) -> Iterator[str]:
    words = unit.removesuffix(".slice").split("-")
    for depth in range(1, len(words) + 1):
        yield "-".join(words[:depth]) + ".slice"
