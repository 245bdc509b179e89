"""Explains a missed goal: the sampled agent's threads and functions, by CPU time and by waiting time.

Input: the folded stacks of `sampled`. Output: `<PATH>.txt` with tables, and a line for the figure's note. Next: `pods`.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from chronolet_schemas.envelope import Entry, Position

ROWS = 25
NOTED = 4
STANDING = {"MeasureLog", "GuardDisk", "IndexArchive", "FollowRuntime", "Relist", "WatchFolder", "KeepSecrets"}
"""Effects that spend most of their time waiting by design."""


def begin(folder: Path, part: str) -> Path:
    """Remove the samples of an earlier run; return the path prefix of a part's samples."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob(f"{part}-*"):
        path.unlink()
    return (folder / part).absolute()


def has_samples(path: Path) -> bool:
    """Return whether the agent has begun to write samples."""
    return bool(list(path.parent.glob(f"{path.name}-*.wall")))


def summary(path: Path, entries: Iterable[Entry] = ()) -> str:
    """Write the tables, including the times between entries of the log; return a line with their path and the functions
    that used the most CPU time.
    """
    cpu, wall = _read(path, "cpu"), _read(path, "wall")
    text = path.with_suffix(".txt")
    own = Counter({stack: amount for stack, amount in wall.items() if _acts(stack)})
    text.write_text(
        "\n\n".join(
            [
                _table("CPU time by thread", _by(cpu, lambda names: names[:1])),
                _table("CPU time by function, itself", _by(cpu, lambda names: names[-1:])),
                _table("CPU time by function, with what it calls", _by(cpu, lambda names: set(names[1:]))),
                _table("time stood in effects, by function, with what it calls", _by(own, set)),
                _hops(entries),
            ]
        )
        + "\n"
    )
    top = _by(cpu, lambda names: names[-1:]).most_common(NOTED)
    total = sum(cpu.values()) or 1
    return f"profile: {text}: CPU {total / 1e6:.1f} s: " + ", ".join(
        f"{100 * each // total} % {name}" for name, each in top
    )


def _hops(entries: Iterable[Entry]) -> str:
    """Return a table of the time from an entry's cause to the entry, by type."""
    types: dict[str, str] = {}
    took: dict[str, list[int]] = {}
    for entry in entries:
        types[str(entry.position)] = entry.type
        if caused_by := types.get(entry.cause):
            way = f"{caused_by} -> {entry.type}"
            took.setdefault(way, []).append(entry.position.milliseconds - Position.parse(entry.cause).milliseconds)
    rows = [
        f"{statistics.median(each):8.0f} ms  {max(each):8} ms  {len(each):6}  {way}"
        for way, each in sorted(took.items(), key=lambda item: -sum(item[1]))
    ]
    return "\n".join(["from an entry of the log to what it caused: median, longest, how often", *rows[: 2 * ROWS]])


def _read(path: Path, kind: str) -> Counter[tuple[str, ...]]:
    """Read all samples of a part, during which the agent may have been restarted."""
    found: Counter[tuple[str, ...]] = Counter()
    for file in path.parent.glob(f"{path.name}-*.{kind}"):
        for line in file.read_text().splitlines():
            stack, _, amount = line.rpartition(" ")
            found[tuple(stack.split(";"))] += int(amount)
    return found


def _acts(stack: tuple[str, ...]) -> bool:
    """Return whether the stack is that of an effect that others may wait for: not one of STANDING."""
    _, _, effect = stack[0].partition(" ")
    return bool(effect) and effect not in STANDING


def _by(found: Counter[tuple[str, ...]], names_of: Callable[[tuple[str, ...]], Iterable[str]]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for stack, amount in found.items():
        for name in names_of(stack):
            totals[name] += amount
    return totals


def _table(title: str, found: Counter[str]) -> str:
    rows = [f"{amount / 1e6:10.3f} s  {name}" for name, amount in found.most_common(ROWS)]
    return "\n".join([title, *rows])
