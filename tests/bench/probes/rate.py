"""Many HTTP probes per second: CPU of agent and Redis, and the lateness of each probe.

Input: an agent, the number of pods. Output: figures. Next: `probes`.

Each of 110 containers has all three probes. A startup probe ends with its first success, and only then do the other two
begin, so two of three are running. Their period is two thirds of a second, which gives 330 probes per second.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any, NamedTuple

import redis

from chronolet.rules.probes.periods import ANNOTATION
from chronolet_schemas.keys import Keys
from tests.bench.figures import Figure
from tests.bench.kernel.idle import cpu_seconds
from tests.bench.pods.agent import NODE, Agent
from tests.bench.pods.churn import containers
from tests.support import scratch
from tests.support.docker.images import BUSYBOX

PERIOD_MS = 667
PROBES_AT_WORK = 2
SETTLE_SECONDS, WINDOW_SECONDS = 15.0, 40.0
"""Seconds before the window, and its length. All results of the window fit into the stream of results."""
WRITTEN_SECONDS = 2.0
"""Seconds after which all outcomes of the window are in the stream."""
CPU_GOAL, LATE_GOAL = 10.0, 20.0

_SERVES = "trap 'exit 0' TERM; mkdir -p /tmp/www; touch /tmp/www/ok; httpd -f -p 8080 -h /tmp/www & wait"


class Window(NamedTuple):
    """Measurements taken during a window of `seconds`."""

    seconds: float
    agent: float
    server: float
    """`agent`, `server`: CPU seconds of the agent and of Redis."""
    results: list[dict[str, str]]

    @property
    def rate(self) -> float:
        """Probes per second."""
        return len(self.results) / self.seconds

    @property
    def failed(self) -> int:
        """The number of probes that did not succeed."""
        return sum(one["outcome"] != "success" for one in self.results)

    def cpu(self, name: str, goal: float | None) -> Figure:
        """Return a figure for the CPU usage of agent and Redis together."""
        percent = 100 / self.seconds
        return Figure(
            name=name,
            ours=(self.agent + self.server) * percent,
            unit="% of a core",
            goal=goal,
            note=f"agent {self.agent * percent:.1f}, Redis {self.server * percent:.1f}, over {self.seconds:.0f} s",
        )


def figures(agent: Agent, pods: int, *, quick: bool) -> list[Figure]:
    """Measure how many probes run per second, their CPU cost, and how late they begin."""
    names = [f"rate-{number}" for number in range(pods)]
    for name in names:
        _put(agent, name)
    scratch.wait_until(lambda: len(containers(agent)) == 2 * pods, f"{pods} pods", 300)
    time.sleep(5 if quick else SETTLE_SECONDS)
    window = measured(agent, 10 if quick else WINDOW_SECONDS)
    for name in names:
        (agent.manifests / f"{name}.json").unlink()
    scratch.wait_until(lambda: not containers(agent), "the end of all pods", 300)
    return _figures(window, pods, quick=quick)


def _figures(window: Window, pods: int, *, quick: bool) -> list[Figure]:
    wanted = pods * PROBES_AT_WORK / (PERIOD_MS / 1000)
    late = sorted(float(one["late_milliseconds"]) for one in window.results) or [math.inf]
    return [
        Figure(
            name="HTTP probes a second",
            ours=window.rate,
            unit="a second",
            goal=0.99 * wanted,
            bound="at least",
            note=f"{pods} containers with three probes each, two of which go on, every {PERIOD_MS} ms: {wanted:.0f}"
            f" a second; {window.failed} of {len(window.results)} failed",
        ),
        window.cpu("CPU of agent and Redis meanwhile", None if quick else CPU_GOAL),
        Figure(
            name="begin of a probe after its time, p99",
            ours=late[int(len(late) * 0.99)],
            unit="ms",
            goal=LATE_GOAL,
            note=f"median {late[len(late) // 2]:.1f}, worst {late[-1]:.1f}",
        ),
    ]


def measured(agent: Agent, seconds: float) -> Window:
    """Measure for `seconds` from now on; return the CPU times and the results of the probes that began meanwhile."""
    server = agent.redis()[0]
    before, began = (cpu_seconds(agent.pid), cpu_seconds(server)), time.time()
    time.sleep(seconds)
    after, ended = (cpu_seconds(agent.pid), cpu_seconds(server)), time.time()
    time.sleep(WRITTEN_SECONDS)
    with redis.Redis.from_url(agent.url, decode_responses=True) as client:
        entries: Any = client.xrange(Keys(NODE).probe_results, f"{began * 1000:.0f}", "+")
    found = [fields for _, fields in entries if began * 1000 <= int(fields["at"]) < ended * 1000]
    return Window(ended - began, after[0] - before[0], after[1] - before[1], found)


def _put(agent: Agent, name: str) -> None:
    stage = agent.folder / "stage"
    stage.mkdir(exist_ok=True)
    (stage / name).write_text(json.dumps(_manifest(name)))
    (stage / name).rename(agent.manifests / f"{name}.json")


def _manifest(name: str) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/ok", "port": 8080}, "periodSeconds": 1, "failureThreshold": 10}
    container: dict[str, Any] = {
        "name": "app",
        "image": f"{BUSYBOX.repository}:{BUSYBOX.tag}",
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-c", _SERVES],
        **dict.fromkeys(("startupProbe", "livenessProbe", "readinessProbe"), probe),
    }
    metadata = {"name": name, "namespace": "default", "annotations": {ANNOTATION: str(PERIOD_MS)}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 2}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
