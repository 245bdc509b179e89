"""The figures of the benchmark `history`.

Input: a node with a long past. Output: figures. Next: `figures` of the package.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from chronolet.cli.services import pure_kinds
from chronolet.history.derived.folds import KindFold
from chronolet.history.derived.wanted import of_kinds
from chronolet_schemas.envelope import Position
from tests.bench.figures import Figure
from tests.bench.history.node import Past

CHRONOLET = (sys.executable, "-c", "from chronolet.cli.loading import main; main()")
"""The code that the installed `chronolet` script runs."""
_RUNNER = """
import os, sys, time
begun = time.monotonic()
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
print(time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Runs a command and reports what it took: a process counts the memory of the one that starts it, here a small one."""
POD = "web-37"
HOUR = 3_600_000
AT_GOAL, WHY_GOAL, LOG_GOAL, DIFF_GOAL = 1.0, 1.0, 0.5, 1.0
FOLD_GOAL = 100_000
ONE_PODS_KINDS = ("pod", "prober")
"""The kinds whose events belong to one pod."""


class Run(NamedTuple):
    """What one run of a command took, and printed."""

    seconds: float
    cpu_seconds: float
    mib: float
    """The most memory that its process held."""
    lines: int


def commands(past: Past, rounds: int) -> Iterator[Figure]:
    """Measure each command about the past, as a user runs it."""
    middle = (past.first.milliseconds + past.last.milliseconds) // 2
    cases: dict[str, tuple[Sequence[str], float]] = {
        "get pods --at the middle": (("get", "pods", "--at", _moment(middle)), AT_GOAL),
        "get pod NAME --at the middle": (("get", "pod", POD, "--at", _moment(middle)), AT_GOAL),
        "describe pod NAME --at the middle": (("describe", "pod", POD, "--at", _moment(middle)), AT_GOAL),
        "why, one of 100 pods": (("why", POD), WHY_GOAL),
        "log --pod, one of 100 pods": (("log", "--pod", POD), LOG_GOAL),
        "diff over an hour": (("diff", "--from", _moment(middle), "--to", _moment(middle + HOUR)), DIFF_GOAL),
    }
    for name, (words, goal) in cases.items():
        runs = [_run((*words, *past.flags)) for _ in range(rounds)]
        yield _figure(name, runs, goal)


def without_indexes(past: Past) -> Iterator[Figure]:
    """Measure some of the commands on the same archive files without indexes and checkpoints."""
    middle = (past.first.milliseconds + past.last.milliseconds) // 2
    folder = Path(past.archive.storage.place())
    hidden = folder.with_name("hidden")
    hidden.mkdir()
    moved = [path for suffix in ("index", "checkpoint") for path in folder.glob(f"*.{suffix}")]
    for path in moved:
        path.rename(hidden / path.name)
    try:
        for words in (("get", "pods", "--at", _moment(middle)), ("why", POD), ("log", "--pod", POD)):
            yield _figure(f"{' '.join(words[:2])} ... without them", [_run((*words, *past.flags))], None)
    finally:
        for path in moved:
            (hidden / path.name).rename(path)


def folding(past: Past, rounds: int) -> Iterator[Figure]:
    """Measure how many events a second of CPU time are folded, from the archive alone."""
    half = _numbered(past, past.events // 2)
    end = _numbered(past, past.events // 2 + past.events // 10)
    wanted = of_kinds(dict.fromkeys(ONE_PODS_KINDS))
    total = sum(1 for _ in past.node_archive.entries(half, end))
    theirs = sum(1 for entry in past.node_archive.entries(half, end) if wanted.meets(entry))

    def fold() -> float:
        folds = {kind.name: KindFold(kind) for kind in pure_kinds(ONE_PODS_KINDS)}
        begun = time.process_time()
        for entry in past.node_archive.entries(half, end, wanted):
            name, _, key = entry.entity.partition("/")
            if name in folds:
                folds[name].add(key, entry)
        return time.process_time() - begun

    seconds = statistics.median(fold() for _ in range(rounds))
    yield Figure(
        name="folding pod and prober of all pods",
        ours=theirs / seconds,
        unit="events/s",
        goal=FOLD_GOAL,
        bound="at least",
        note=f"reading, decoding and folding their {theirs:,} of {total:,} entries, or {total / seconds:,.0f} of the"
        " log a second; the target is 250,000",
    )


def upkeep(past: Past) -> Iterator[Figure]:
    """Report what indexes and checkpoints cost, next to writing the archive files."""
    archived = past.events // 20_000 * 20_000 - 20_000
    yield Figure(name="archive files", ours=past.size(".archive") / archived, unit="bytes an event")
    yield Figure(name="indexes", ours=past.size(".index") / archived, unit="bytes an event")
    yield Figure(name="checkpoints", ours=past.size(".checkpoint") / archived, unit="bytes an event")
    yield Figure(name="writing an archive file", ours=past.write_seconds / archived * 1e6, unit="CPU us an event")
    yield Figure(
        name="writing its index and checkpoint", ours=past.index_seconds / archived * 1e6, unit="CPU us an event"
    )


def _figure(name: str, runs: Sequence[Run], goal: float | None) -> Figure:
    figure = Figure(
        name=name,
        ours=statistics.median(run.seconds for run in runs),
        unit="s",
        goal=goal,
        note=f"{statistics.median(run.cpu_seconds for run in runs):.3f} s of CPU time,"
        f" {max(run.mib for run in runs):.0f} MiB at most, {runs[0].lines:,} lines",
    )
    print("==> history:", *figure.row(), figure.note, file=sys.stderr, flush=True)  # noqa: T201
    return figure


def _run(words: Sequence[str]) -> Run:
    """Run a command. Raises CalledProcessError if it fails."""
    process = subprocess.run(
        (sys.executable, "-I", "-c", _RUNNER, *CHRONOLET, *words), capture_output=True, text=True, check=True
    )
    seconds, cpu_seconds, mib = map(float, process.stderr.splitlines()[-1].split())
    lines = process.stdout.count("\n")
    assert lines > 1, words
    return Run(seconds, cpu_seconds, mib, lines)


def _moment(milliseconds: int) -> str:
    return f"@{milliseconds / 1000:.3f}"


def _numbered(past: Past, number: int) -> Position:
    entry = past.node_archive.numbered(number)
    assert entry is not None
    return entry.position
