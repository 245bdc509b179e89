"""Many pods, each with a small HTTP server, for benchmarks that probe them.

Input: an agent, the number of pods, their probes. Output: running pods. Next: `cli`, `overload`, `steady`, `mixed`,
`memory`, `power`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.bench.pods.agent import Agent
from tests.bench.pods.churn import containers
from tests.support import scratch
from tests.support.docker.images import BUSYBOX

SERVES = "trap 'exit 0' TERM; mkdir -p /tmp/www; touch /tmp/www/ok; httpd -f -p 8080 -h /tmp/www & sleep 1000000 & wait"
IMAGE = f"{BUSYBOX.repository}:{BUSYBOX.tag}"
ROOMY = {"CHRONOLET_MAX_PODS": "1000", "CHRONOLET_NODE_CAPACITY": "cpu=1000,memory=4Ti"}
"""The environment of an agent that admits up to 1000 pods."""
_START_SECONDS = 1800
"""Time limit for the start of all pods: 250 pods take four minutes on two idle cores."""


def start(agent: Agent, count: int, probes: Callable[[int], dict[str, Any]]) -> None:
    """Start the pods and wait until all run. `probes` returns fields of a container, given the pod's number."""
    for number in range(count):
        path = agent.folder / f"{number}.json"
        path.write_text(json.dumps(_manifest(name(number), probes(number))))
        path.rename(agent.manifests / path.name)
    scratch.wait_until(lambda: len(containers(agent)) == 2 * count, f"{count} pods", _START_SECONDS)
    time.sleep(5)


@contextmanager
def served(agent: Agent, count: int, probes: Callable[[int], dict[str, Any]]) -> Iterator[None]:
    """Run the pods during the block, and remove them afterwards."""
    start(agent, count, probes)
    try:
        yield
    finally:
        for number in range(count):
            (agent.manifests / f"{number}.json").unlink(missing_ok=True)
    scratch.wait_until(lambda: not containers(agent, everyone=True), "the end of all pods", 300)


def name(number: int) -> str:
    """Return the name of a pod."""
    return f"over-{number}"


def handler(number: int) -> dict[str, Any]:
    """Return a probe's handler: HTTP for pods with an even number, TCP for the others."""
    return {"httpGet": {"path": "/ok", "port": 8080}} if number % 2 == 0 else {"tcpSocket": {"port": 8080}}


def _manifest(name: str, probes: dict[str, Any]) -> dict[str, Any]:
    container = {
        "name": "app",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-c", SERVES],
        **probes,
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 2}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
