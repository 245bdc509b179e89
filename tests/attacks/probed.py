"""Pods with liveness probes in attacks, and the raw results of those.

Comes in: a node. Goes out: manifests, counts of successes, waits for more of them. Next: the tests of attacks, and
tests/setup/clock_checks.py.
"""

from __future__ import annotations

from typing import Any

from chronolet.adapters.probes.kept import kept_results
from tests.e2e.node import Node, pod, shell

PERIOD = 1
"""In seconds."""
SERVES = "exec httpd -f -p 8080"


def probed(name: str, period: int = PERIOD) -> dict[str, Any]:
    """A pod that serves, and is killed if its port cannot be reached three times in a row."""
    liveness = {"tcpSocket": {"port": 8080}, "periodSeconds": period, "timeoutSeconds": period, "failureThreshold": 3}
    return pod(name, shell("app", SERVES, livenessProbe=liveness))


def outcomes(node: Node, name: str) -> list[str]:
    """What each probe of the pod came to, the last one first, from the node's raw results."""
    found = kept_results(node.url, node.name)
    return [one.outcome for one in found if one.pod == f"default/{name}"]


def succeeded(node: Node, name: str) -> int:
    """How many probes of the pod succeeded."""
    return outcomes(node, name).count("success")


def wait_for_probes(node: Node, *names: str, more: int = 2) -> None:
    """Until so many more probes of each of these pods have succeeded."""
    known = {name: succeeded(node, name) for name in names}
    node.journal.wait_for(
        f"{more} probes of {names}", lambda: all(succeeded(node, name) >= known[name] + more for name in names)
    )
