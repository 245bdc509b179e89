"""Liveness probes on a starved machine: the number of healthy containers that are restarted, and the time until three
broken ones are.

Input: options. Output: figures. Next: `__main__`.

There are 250 pods, half with TCP and half with HTTP probes each second. For ten minutes they run next to 60 busy loops;
then, for three minutes each, next to writers that saturate the disk, next to readers whose memory is constantly
reclaimed, and on an engine that is stopped for 30 s at a time. While the busy loops run, three containers break: one
answers 404, one refuses connections, one hangs.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, pleg, pod, prober, registry
from chronolet_schemas.envelope import Event, Position
from tests.bench.figures import Figure
from tests.bench.pods import serving
from tests.bench.pods.agent import NODE, Agent, running
from tests.support import scratch

BUSY_LOOPS, WRITERS, READERS = 60, 6, 4
BOUND_SECONDS = 143
"""The time within which docs/probes.md promises a restart on a stalled machine with three failing pods, one of which
hangs.
"""
OVERDUE_SECONDS = 120
"""Seconds beyond the bound to wait for the restart of a broken container."""
BREAKS = ("answers 404", "refuses", "hangs")


class Plan(NamedTuple):
    """The number of pods and the durations of the phases."""

    pods: int
    cpu_seconds: float
    other_seconds: float
    stop_seconds: float


FULL, QUICK = Plan(250, 600, 180, 30), Plan(12, 60, 20, 10)


class Restart(NamedTuple):
    """A stop of a container because of its probe; `at` is the time of the log entry in milliseconds."""

    pod: str
    at: int


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Run all phases; return figures of the restarts of healthy and of broken containers, and of how often the overload
    protection acted.
    """
    plan = QUICK if options.quick else FULL
    if options.cpu_seconds:
        plan = plan._replace(cpu_seconds=options.cpu_seconds)
    os.environ |= serving.ROOMY
    with running(in_network=True) as agent:
        serving.start(agent, plan.pods, _probes)
        store = RedisStore(agent.url, NODE)
        try:
            return _measured(agent, store, plan)
        finally:
            store.close()


def _measured(agent: Agent, store: RedisStore, plan: Plan) -> list[Figure]:
    before = store.last()
    _say(f"{BUSY_LOOPS} busy loops")
    with _busy():
        time.sleep(min(plan.cpu_seconds / 6, 30))
        broken = _break(agent)
        _sleep_or(plan.cpu_seconds, lambda: set(broken) <= {one.pod for one in _restarts(store, before)})
    phases: Mapping[str, Callable[[], Any]] = {
        "disk": lambda: _while(_writing(agent), plan.other_seconds),
        "memory": lambda: _while(_reclaiming(agent), plan.other_seconds),
        "engine stopped": lambda: _stop_engine(agent, plan),
    }
    for name, phase in phases.items():
        _say(name)
        phase()
    time.sleep(5)
    return _figures(store, before, broken, plan)


def _figures(store: RedisStore, before: Position, broken: Mapping[str, int], plan: Plan) -> list[Figure]:
    restarts = _restarts(store, before)
    healthy = [one for one in restarts if one.pod not in broken]
    first = {name: min((one.at for one in restarts if one.pod == name), default=None) for name in broken}
    took = {name: (at - broken[name]) / 1000 for name, at in first.items() if at is not None}
    within = sum(seconds <= BOUND_SECONDS for seconds in took.values())
    note = ", ".join(f"{name} {took.get(name, float('inf')):.1f} s" for name in broken)
    return [
        Figure(name=f"healthy containers restarted, of {plan.pods}", ours=len(healthy), unit="", goal=0),
        Figure(name="broken containers restarted in time, of 3", ours=within, unit="", goal=3, bound="at least"),
        Figure(
            name="slowest of them",
            ours=max(took.values(), default=float("inf")),
            unit="s",
            goal=BOUND_SECONDS,
            note=note,
        ),
        *(
            Figure(name=name, ours=len(_events(store, before, kind)), unit="")
            for name, kind in (
                ("runs of unjudged probes, and reports of them", prober.ProbeUnjudged),
                ("times that kills were held back", pleg.ProbeKillsHeldBack),
                ("kills held", pleg.ProbeKillHeld),
                ("kills dropped", pleg.ProbeKillDropped),
            )
        ),
    ]


def _restarts(store: RedisStore, after: Position) -> list[Restart]:
    found = _events(store, after, pod.ContainerStopRequested)
    return [Restart(one.pod, at) for at, one in found if one.reason in ("LivenessFailed", "StartupFailed")]


def _events(store: RedisStore, after: Position, kind: type[Any]) -> list[tuple[int, Any]]:
    """Return the events of one class, each with its time in milliseconds."""
    name = registry.type_of(kind)
    entries = [entry for entry in store.scan(after) if entry.type == name]
    return [(one.position.milliseconds, codec.decode(one.type, one.data, Event)) for one in entries]


# -- pods --------------------------------------------------------------------------------------------------------------


def _say(what: str) -> None:
    print(f"==> overload: {what}, at a load of {os.getloadavg()[0]:.0f}", file=sys.stderr, flush=True)  # noqa: T201


def _probes(number: int) -> dict[str, Any]:
    """Return an HTTP or TCP liveness probe with a period of one second."""
    return {"livenessProbe": {**serving.handler(number), "periodSeconds": 1, "failureThreshold": 3}}


def _break(agent: Agent) -> dict[str, int]:
    """Break three containers, each in a different way; return the times in milliseconds."""
    broken: dict[str, int] = {}
    for number, how in zip((0, 1, 2), BREAKS, strict=True):
        name = serving.name(number)
        shell, server = _processes(agent, name)
        match how:
            case "answers 404":
                (Path(f"/proc/{shell}/root/tmp/www/ok")).unlink()
            case "refuses":
                os.kill(server, signal.SIGKILL)
            case _:
                os.kill(server, signal.SIGSTOP)
        broken[f"default/{name}"] = time.time_ns() // 1_000_000
    return broken


def _processes(agent: Agent, name: str) -> tuple[int, int]:
    """Return the pids of the pod's shell and server, as seen on this machine."""
    api = agent.docker.api()
    try:
        (one,) = [each for each in api.containers() if f"chrono_app_{name}_default" in each["Names"][0]]
        shell = api.inspect_container(one["Id"])["State"]["Pid"]
    finally:
        api.close()
    server = next(pid for pid in scratch.children(shell) if b"httpd" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return shell, server


# -- loads -------------------------------------------------------------------------------------------------------------


@contextmanager
def _processes_of(count: int, *words: str) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            stack.callback(process.wait, 60)
            stack.callback(process.kill)
        yield


def _busy() -> Any:
    return _processes_of(BUSY_LOOPS, sys.executable, "-c", "while True: pass")


@contextmanager
def _writing(agent: Agent) -> Iterator[None]:
    """Run processes that repeatedly write 32 MiB each and sync."""
    script = (
        "import os, sys; path = sys.argv[1] + str(os.getpid()); data = bytes(4 << 20)\n"
        "while True:\n"
        "    with open(path, 'wb') as file:\n"
        "        for _ in range(8):\n"
        "            file.write(data); file.flush(); os.fsync(file.fileno())\n"
    )
    try:
        with _processes_of(WRITERS, sys.executable, "-c", script, f"{agent.folder}/write-"):
            yield
    finally:
        for path in agent.folder.glob("write-*"):
            path.unlink()


@contextmanager
def _reclaiming(agent: Agent) -> Iterator[None]:
    """Run containers that repeatedly read more than fits into their memory, so that the kernel constantly reclaims
    memory.
    """
    api, made = agent.docker.api(), []
    script = "dd if=/dev/zero of=/tmp/big bs=1048576 count=64; while :; do cat /tmp/big >/dev/null; done"
    try:
        for _ in range(READERS):
            limits = api.create_host_config(mem_limit="24m")
            made.append(api.create_container(serving.IMAGE, ["/bin/sh", "-c", script], host_config=limits)["Id"])
            api.start(made[-1])
        yield
    finally:
        for one in made:
            api.remove_container(one, force=True)
        api.close()


def _stop_engine(agent: Agent, plan: Plan) -> None:
    until = time.monotonic() + plan.other_seconds
    while time.monotonic() < until:
        try:
            agent.docker.pause()
            time.sleep(plan.stop_seconds)
        finally:
            agent.docker.resume()
        time.sleep(plan.stop_seconds / 2)


def _while(load: Any, seconds: float) -> None:
    with load:
        time.sleep(seconds)


def _sleep_or(seconds: float, done: Callable[[], bool]) -> None:
    """Sleep for `seconds`, then wait until `done()` is true or BOUND_SECONDS is exceeded by OVERDUE_SECONDS."""
    began = time.monotonic()
    time.sleep(seconds)
    while not done() and time.monotonic() - began < max(seconds, BOUND_SECONDS + OVERDUE_SECONDS):
        time.sleep(1)
