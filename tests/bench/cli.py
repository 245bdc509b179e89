"""CPU time of single commands compared with a Python interpreter that does nothing.

Input: options. Output: figures. Next: `__main__`.

Each command alternates with `python -I -c pass`. A figure is the ratio of the medians of their CPU times, user and
system together. Agent, Redis and pods are real.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence

from tests.bench.figures import Figure
from tests.bench.pods import serving
from tests.bench.pods.agent import NODE, Agent, running

ROUNDS, QUICK_ROUNDS = 15, 3
POD_COUNTS, QUICK_POD_COUNTS = (30, 250), (3,)
NOTHING = (sys.executable, "-I", "-c", "pass")
CHRONOLET = (sys.executable, "-c", "from chronolet.cli.loading import main; main()")
"""The code that the installed `chronolet` script runs."""
VERSION_GOAL, HELP_GOAL, LOG_GOAL = 4.0, 6.0, 8.0
GET_GOALS = {30: 8.0, 250: 12.0}
"""The goals for `get pods` by number of pods."""


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure `--version` and `--help`, which read nothing, then `get pods` and `log` with each number of pods."""
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    found = [
        compared("--version", ("--version",), rounds, VERSION_GOAL),
        compared("--help", ("--help",), rounds, HELP_GOAL),
    ]
    os.environ |= serving.ROOMY
    with running() as agent:
        for pods in QUICK_POD_COUNTS if options.quick else POD_COUNTS:
            serving.start(agent, pods, lambda _: {})
            found += [
                compared(f"get pods, {pods} pods", _of(agent, "get", "pods"), rounds, GET_GOALS.get(pods)),
                compared(f"log -n 20, {pods} pods", _of(agent, "log", "-n", "20"), rounds, LOG_GOAL),
            ]
    return found


def compared(name: str, words: Sequence[str], rounds: int, goal: float | None) -> Figure:
    """Measure a command, alternating with an interpreter that does nothing."""
    command = (*CHRONOLET, *words)
    cpu_seconds(command)  # the first run compiles modules that have no bytecode yet
    pairs = [(cpu_seconds(command), cpu_seconds(NOTHING)) for _ in range(rounds)]
    ours, nothing = (statistics.median(times) for times in zip(*pairs, strict=True))
    figure = Figure(name=f"chronolet {name}", ours=ours, unit="CPU s", reference=nothing, reference_name="s", goal=goal)
    # Also immediately: with hundreds of pods, the engine may fail to stop in time, and the table is not printed.
    print("==> cli:", *figure.row(), file=sys.stderr, flush=True)  # noqa: T201
    return figure


def cpu_seconds(command: Sequence[str]) -> float:
    """Run a command and return its user and system time. Raises CalledProcessError if it fails."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


def _of(agent: Agent, *words: str) -> Sequence[str]:
    return (*words, "--redis", agent.url, "--root-dir", str(agent.state), "--hostname-override", NODE)
