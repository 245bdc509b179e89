"""Decide which files hold a cgroup's values, what to write to them, and whether their content already matches. Pure.

Input: `Values`. Output: `Line`s, each with its controller. Next: `tree`. Source: the kernel's
Documentation/admin-guide/ cgroup-v1 and cgroup-v2.rst; opencontainers/runc libcontainer/cgroups/fs, fs2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from chronolet.rules.resources.cgroups import UNLIMITED, Values, weight

_PAGE = os.sysconf("SC_PAGE_SIZE")
_V1_UNLIMITED = 1 << 60
"""In v1, values of this size or more mean no limit."""
_MAX = "max"
_V2 = 2
_MOST_KEPT = 1_000
"""Maximum number of entries in each of the caches of lines. They pay off because the values of every pod are checked
repeatedly.
"""


class Line(NamedTuple):
    """One file with its desired content. `means` returns whether a given content is equivalent to the desired one."""

    controller: str
    file: str
    wanted: str
    means: Callable[[str], bool]


@lru_cache(_MOST_KEPT)
def lines(version: int, values: Values) -> Sequence[Line]:
    """Return the lines in the order in which they must be written: a period before its quota."""
    return tuple(_v2(values) if version == _V2 else _v1(values))


@lru_cache(_MOST_KEPT)
def extra_lines(version: int, values: Values) -> Sequence[Line]:
    """Return the subset of `lines` that is also written to a container's own cgroup: huge page limits, and memory.min,
    memory.low and memory.high if they are given. The runtime creates that cgroup and writes the other values.
    """
    given = {
        "memory.min": values.memory_min_bytes,
        "memory.low": values.memory_low_bytes,
        "memory.high": values.memory_high_bytes,
    }
    return tuple(
        line for line in lines(version, values) if line.controller == "hugetlb" or given.get(line.file) is not None
    )


def page_name(size: int) -> str:
    """Return the form in which file names spell a huge page size, such as 2MB. Raises ValueError if it is not a
    multiple of 1 KiB.
    """
    for unit, bytes_of in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if size % bytes_of == 0:
            return f"{size // bytes_of}{unit}"
    raise ValueError(f"{size} bytes is not a valid huge page size")


def page_bytes(name: str) -> int:
    """Return the size in bytes of a huge page, given its size in a file name: `2MB`, or `2048kB` as in /sys."""
    digits = name.rstrip("kKMGB")
    return int(digits) << {"KB": 10, "MB": 20, "GB": 30}[name.removeprefix(digits).upper()]


def _v1(values: Values) -> Iterator[Line]:
    if values.cpu_shares is not None:
        yield _exact("cpu", "cpu.shares", values.cpu_shares)
    if values.cpu_period_us is not None:
        yield _exact("cpu", "cpu.cfs_period_us", values.cpu_period_us)
    yield _exact("cpu", "cpu.cfs_quota_us", UNLIMITED if values.cpu_quota_us is None else values.cpu_quota_us)
    limit = values.memory_limit_bytes
    wanted = UNLIMITED if limit is None else limit
    yield Line("memory", "memory.limit_in_bytes", str(wanted), lambda found: _v1_limit(found, wanted))
    yield _counted("pids", "pids.max", values.pids)
    for size, much in values.huge_pages:
        yield _rounded("hugetlb", f"hugetlb.{page_name(size)}.limit_in_bytes", much, size)


def _v2(values: Values) -> Iterator[Line]:
    if values.cpu_shares is not None:
        yield _exact("cpu", "cpu.weight", weight(values.cpu_shares))
    if values.cpu_quota_us is None or values.cpu_quota_us == UNLIMITED:
        yield Line("cpu", "cpu.max", _MAX, lambda found: found.split()[:1] == [_MAX])
    else:
        both = f"{values.cpu_quota_us} {values.cpu_period_us}"
        yield Line("cpu", "cpu.max", both, lambda found: found == both)
    yield _counted("memory", "memory.max", values.memory_limit_bytes, _PAGE)
    yield _rounded("memory", "memory.min", values.memory_min_bytes or 0, _PAGE)
    yield _rounded("memory", "memory.low", values.memory_low_bytes or 0, _PAGE)
    yield _counted("memory", "memory.high", values.memory_high_bytes, _PAGE)
    yield _counted("pids", "pids.max", values.pids)
    for size, much in values.huge_pages:
        yield _rounded("hugetlb", f"hugetlb.{page_name(size)}.max", much, size)


def _exact(controller: str, file: str, value: int) -> Line:
    return Line(controller, file, str(value), lambda found: found == str(value))


def _counted(controller: str, file: str, value: int | None, unit: int = 1) -> Line:
    """Return the line for a limit; its content is `max` if there is no limit."""
    if value is None:
        return Line(controller, file, _MAX, lambda found: found == _MAX)
    return _rounded(controller, file, value, unit)


def _rounded(controller: str, file: str, value: int, unit: int) -> Line:
    """Return a line whose content is compared in whole units of `unit`, because the kernel rounds it; huge values count
    as `max`.
    """

    def means(found: str) -> bool:
        if found == _MAX:
            return value >= _V1_UNLIMITED
        return int(found) // unit == value // unit or min(int(found), value) >= _V1_UNLIMITED

    return Line(controller, file, str(value), means)


def _v1_limit(found: str, wanted: int) -> bool:
    if wanted == UNLIMITED:
        return int(found) >= _V1_UNLIMITED
    return int(found) // _PAGE == wanted // _PAGE
