"""Memory of the agent's process: by mapping, as reported by the kernel, and by package, as reported by Python.

Input: options. Output: figures for no pods, for pods without probes, and for pods with an HTTP probe each second; each
for an agent without a device plugin, and for one that has loaded gRPC for a connected plugin. Next: `mappings` (smaps),
`packages` (tracemalloc, in a separate agent, because tracemalloc itself uses memory).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.figures import Figure
from tests.bench.memory import mappings, packages
from tests.bench.pods import SETTLE_SECONDS, serving
from tests.bench.pods.agent import Agent, running
from tests.bench.pods.parts import MEMORY_GOALS
from tests.support import scratch
from tests.support.devices.sample_plugin import sample_plugin

EACH_SECOND = {"livenessProbe": {"httpGet": {"path": "/ok", "port": 8080}, "periodSeconds": 1, "failureThreshold": 3}}
TOLD_MIB = 0.5
"""Minimum size of a package that gets a row; smaller packages are added up as `the rest`."""
PLUGIN = ", a plugin connected"
TRACED = Path(__file__).with_name("traced.py")
"""The program that runs a traced agent. It is run as a file: run as a module, it would load this package and its
imports.
"""
RESOURCE = "bench.example/device"


class Case(NamedTuple):
    """A case to be measured: the number of pods that run, and their probe."""

    pods: int
    probe: str

    @property
    def name(self) -> str:
        return f"{self.pods} pods" + ("" if self.probe == "none" else f", {self.probe} each second")

    @property
    def goal(self) -> float | None:
        return MEMORY_GOALS.get(f"{self.pods}:{self.probe}")

    def fields(self, _: int) -> dict[str, Any]:
        """Return the fields of a pod's container."""
        return {} if self.probe == "none" else EACH_SECOND


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure a plain agent, one with tracemalloc, and finally one with gRPC: it comes last because an agent that has
    once seen a plugin keeps looking for it.
    """
    pods = 5 if options.quick else 30
    cases = Case(0, "none"), Case(pods, "none"), Case(pods, "http")
    with running(in_network=True) as agent:
        found = _held(agent, cases, options, "")
        by_package = _traced(agent, cases[-1], options)
        agent.restart()
        with plugin(agent):
            found += _held(agent, cases, options, PLUGIN)
        return found + by_package


def _held(agent: Agent, cases: Sequence[Case], options: argparse.Namespace, what: str) -> list[Figure]:
    found: list[Figure] = []
    for case in cases:
        _say(f"{case.name}{what}")
        with _running(agent, case, options):
            found += _figures(agent, case, what)
    return found


def _figures(agent: Agent, case: Case, what: str) -> list[Figure]:
    ours, server = mappings.of(agent.pid), mappings.of(agent.redis()[0])
    resident, redis = mappings.resident_mib(ours), mappings.resident_mib(server)
    total = Figure(
        name=f"{case.name}{what}: agent and Redis, resident",
        ours=resident + redis,
        unit="MiB",
        goal=case.goal,
        note=f"agent {resident:.1f}, Redis {redis:.1f}; the most by file: {mappings.largest(ours)}",
    )
    parts = [
        Figure(
            name=f"{case.name}{what}: the agent's {kind}",
            ours=held.pss_mib,
            unit="MiB",
            note="" if round(held.rss_mib, 1) == round(held.pss_mib, 1) else f"{held.rss_mib:.1f} with what is shared",
        )
        for kind, held in mappings.by_kind(ours).items()
    ]
    return [total, *parts]


def _traced(agent: Agent, case: Case, options: argparse.Namespace) -> list[Figure]:
    """Restart the agent with tracemalloc; return its memory by package, without and with gRPC."""
    path = agent.folder / "traced"
    agent.restart(("-P", str(TRACED), str(path)))
    found: list[Figure] = []
    with _running(agent, case, options):
        for what in ("", PLUGIN):
            _say(f"by package, {case.name}{what}")
            with plugin(agent) if what else nullcontext():
                found += _by_package(packages.held(packages.snapshot(path)), f"{case.name}{what}")
    return found


def _by_package(held: dict[str, float], what: str) -> list[Figure]:
    large = {name: mib for name, mib in held.items() if mib >= TOLD_MIB}
    rest = sum(held.values()) - sum(large.values())
    rows = {"all packages": sum(held.values()), **large, "the rest": rest}
    return [Figure(name=f"{what}: Python objects of {name}", ours=mib, unit="MiB") for name, mib in rows.items()]


@contextmanager
def _running(agent: Agent, case: Case, options: argparse.Namespace) -> Iterator[None]:
    """Run the pods during the block, which begins a fixed time after their start, so that the work of starting them is
    over; remove them afterwards.
    """
    with serving.served(agent, case.pods, case.fields):
        time.sleep(SETTLE_SECONDS if options.quick else 4 * SETTLE_SECONDS)
        yield


@contextmanager
def plugin(agent: Agent) -> Iterator[None]:
    """Keep a device plugin connected during the block, so that the agent uses gRPC."""
    folder = agent.state / "kubelet" / "device-plugins"
    scratch.wait_until((folder / "kubelet.sock").exists, "the socket of device plugins")
    with sample_plugin("--resource", RESOURCE, folder=folder) as connected:
        connected.wait_for(f"{RESOURCE} list")
        time.sleep(SETTLE_SECONDS)
        yield


def _say(text: str) -> None:
    print(f"==> memory: {text}", file=sys.stderr, flush=True)  # noqa: T201
