"""What an additional process of an idle node costs: memory and CPU time.

Input: options. Output: for a process that can host everything, and for one that hosts probers only, how much the memory
of all agents grows (PSS: a page that processes share counts once), and CPU seconds per minute.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Sequence

from tests.bench.figures import Figure
from tests.bench.kernel.child import REPOSITORY
from tests.bench.kernel.idle import per_minute
from tests.bench.memory import mappings
from tests.bench.pods.agent import Agent, running

MIB_GOAL = 45.0
CPU_GOAL = 0.1
SETTLE_SECONDS = 20.0
CASES: dict[str, Sequence[str]] = {"all kinds": (), "probers only": ("--actors", "prober")}


def figures(*, quick: bool) -> list[Figure]:
    """Measure both cases, one after the other, next to an agent without pods."""
    seconds = 5.0 if quick else 60.0
    found = []
    with running() as agent:
        time.sleep(2.0 if quick else SETTLE_SECONDS)
        for name, flags in CASES.items():
            found += _measured(agent, name, flags, seconds, 2.0 if quick else SETTLE_SECONDS)
    return found


def _measured(agent: Agent, name: str, flags: Sequence[str], seconds: float, settle: float) -> list[Figure]:
    before = _pss_mib([agent.pid])
    process = _started(agent, flags)
    try:
        time.sleep(settle)
        (cpu, server) = per_minute([process.pid, agent.redis()[0]], seconds)
        after = _pss_mib([agent.pid, process.pid])
    finally:
        process.terminate()
        process.wait()
    return [
        Figure(name=f"memory of an additional process, {name}", ours=after - before, unit="MiB", goal=MIB_GOAL),
        Figure(
            name=f"CPU time of an additional process, {name}",
            ours=cpu,
            unit="CPU s/min",
            goal=CPU_GOAL,
            note=f"{server:.2f} in Redis, which serves both processes",
        ),
    ]


def _started(agent: Agent, flags: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start another process of the agent's node, with the same command and further flags."""
    words = shlex.split(agent.start_command.removeprefix("setsid ").partition(" >>")[0])
    more = ["--process-name", "additional", "--redis", agent.url, *flags]
    with agent.log.open("ab") as log:
        return subprocess.Popen([*words, *more], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=REPOSITORY)


def _pss_mib(pids: Sequence[int]) -> float:
    return sum(one.pss for pid in pids for one in mappings.of(pid)) / 1024
