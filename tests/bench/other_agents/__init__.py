"""`scripts/bench versus COMMAND...`: the same rows for chronolet and for other agents, measured alternately on one
engine.

Input: shell commands, each of which starts another agent in the background (`other`). Without any, the other agent is a
second chronolet, which shows how far two equal agents differ. Output: figures of chronolet next to those of each other
agent. Next: `other` (how an agent is started), `rows` (what is measured).

One agent runs at a time. In each round, every agent is started, measured and killed with SIGKILL; the first pod after a
start is not measured.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from tests.bench.figures import Figure
from tests.bench.other_agents import rows
from tests.bench.other_agents.other import NAME, SECOND, Other
from tests.bench.pods import attempted
from tests.bench.pods.agent import AnyAgent, on
from tests.support.docker.engine import private_docker

OURS = "chronolet"


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure chronolet and the other agents; return the rows of the selected parts, by default of all."""
    os.environ["PYTHONUNBUFFERED"] = "1"
    with private_docker() as docker, on(docker, docker.folder / "agent", in_network=True) as ours:
        ours.kill()
        agents: dict[str, AnyAgent] = {OURS: ours}
        with ExitStack() as ends:
            for name, command in named(options.commands or [SECOND]).items():
                agents[name] = theirs = Other(docker.folder / name.replace(" ", "-"), docker, command)
                ends.callback(theirs.destroy)
            return _measured(agents, options)


def named(commands: Sequence[str]) -> Mapping[str, str]:
    """Return the commands by the name that each agent has in the table."""
    return {NAME if len(commands) == 1 else f"{NAME} {number}": one for number, one in enumerate(commands, 1)}


def _measured(agents: Mapping[str, AnyAgent], options: argparse.Namespace) -> list[Figure]:
    parts = rows.QUICK if options.quick else rows.FULL
    wanted = {name: part for name, part in parts.items() if not options.only or name in options.only}
    return [
        figure
        for name, part in wanted.items()
        for figure in attempted(lambda name=name, part=part: _by_turns(name, part, agents))  # type: ignore[misc]
    ]


def _by_turns(name: str, part: rows.Part, agents: Mapping[str, AnyAgent]) -> list[Figure]:
    """Measure one part with every agent, in several rounds; return its rows. In every second round, the agents are
    measured in reverse order.
    """
    found: dict[str, list[rows.Found]] = {who: [] for who in agents}
    for number in range(part.rounds):
        for who in list(agents)[:: -1 if number % 2 else 1]:
            print(f"==> versus: {name}, round {number + 1}, {who}", file=sys.stderr, flush=True)  # noqa: T201
            found[who].append(_turn(agents[who], name, part))
    others = list(agents)[1:]
    return [rows.compared(row, found[OURS], found[who], who) for row in rows.of(name, part) for who in others]


def _turn(agent: AnyAgent, name: str, part: rows.Part) -> rows.Found:
    """Start, measure and kill the agent, and remove its containers from the engine; return the measurements."""
    agent.start()
    try:
        agent.measure("a", "--reps", "1")
        return agent.measure(name, *part.options, *(agent.counted() if name == "d" else ()))
    finally:
        agent.kill()
        agent.docker.remove_containers()
