"""A process's memory as the kernel counts it, by kind of mapping.

Input: `/proc/<pid>/smaps`. Output: resident and proportional sizes (PSS: a shared page counts in part) by kind and by
file. Source: proc(5).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

KINDS = ("heap", "anonymous memory", "libraries", "files")
"""Kinds of mappings. `libraries` are files of which at least one mapping is executable, including the program itself.
Pages that they modify become anonymous, but still count as theirs. `anonymous memory` is all other memory without a
file, such as stacks.
"""
LARGEST = 5
_HEADING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+ *(.*)$")
_KIB_A_MIB = 1024


class Mapping(NamedTuple):
    """One range of addresses; sizes in KiB."""

    path: str
    executable: bool
    rss: int
    pss: int


class Held(NamedTuple):
    """Resident and proportional sizes in MiB."""

    rss_mib: float
    pss_mib: float


def of(pid: int) -> list[Mapping]:
    """Return all mappings of a process. Raises FileNotFoundError or ProcessLookupError if there is no such process."""
    return parsed(Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8", errors="replace").splitlines())


def parsed(lines: Iterable[str]) -> list[Mapping]:
    """Parse the lines of smaps into mappings."""
    found: list[Mapping] = []
    for line in lines:
        if heading := _HEADING.match(line):
            found.append(Mapping(heading[2], "x" in heading[1], 0, 0))
        elif line.startswith("Rss:"):
            found[-1] = found[-1]._replace(rss=int(line.split()[1]))
        elif line.startswith("Pss:"):
            found[-1] = found[-1]._replace(pss=int(line.split()[1]))
    return found


def resident_mib(mappings: Sequence[Mapping]) -> float:
    """Return the resident memory of all mappings in MiB."""
    return sum(one.rss for one in mappings) / _KIB_A_MIB


def by_kind(mappings: Sequence[Mapping]) -> dict[str, Held]:
    """Return the sizes by kind, in the order of KINDS."""
    programs = {one.path for one in mappings if one.executable and one.path.startswith("/")}
    rss: Counter[str] = Counter()
    pss: Counter[str] = Counter()
    for one in mappings:
        kind = _kind(one.path, programs)
        rss[kind] += one.rss
        pss[kind] += one.pss
    return {kind: Held(rss[kind] / _KIB_A_MIB, pss[kind] / _KIB_A_MIB) for kind in KINDS}


def _kind(path: str, programs: set[str]) -> str:
    if path == "[heap]":
        return "heap"
    if not path.startswith("/"):
        return "anonymous memory"
    return "libraries" if path in programs else "files"


def largest(mappings: Sequence[Mapping]) -> str:
    """Format the files with the most resident memory as one line, each with its resident size in MiB."""
    found: Counter[str] = Counter()
    for one in mappings:
        if one.path.startswith("/"):
            found[Path(one.path).name] += one.rss
    return ", ".join(f"{name} {kib / _KIB_A_MIB:.1f}" for name, kib in found.most_common(LARGEST))
