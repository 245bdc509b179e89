"""Pods with liveness probes for attacks, and the raw results of these probes.

Input: a node. Output: manifests, counts of successful probes, waits for further ones. Next: the attack tests, and
tests/setup/clock_checks.py.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from chronolet.adapters.probes.results.reader import kept_results
from chronolet.kernel.storage.store import StoreUnreachable
from chronolet_schemas.prober import RawResult
from tests.e2e.node import Node, pod, shell
from tests.support import scratch

PERIOD = 1
"""The default period of probes, in seconds."""
PATIENT = 60
"""A probe time-out in seconds that is not reached even on a busy machine."""
SERVES = "exec httpd -f -p 8080"


def probed(name: str, period: int = PERIOD, timeout: int = PATIENT) -> dict[str, Any]:
    """Return a pod with a server; its container is killed if the port cannot be reached three times in a row."""
    liveness = {"tcpSocket": {"port": 8080}, "periodSeconds": period, "timeoutSeconds": timeout, "failureThreshold": 3}
    return pod(name, shell("app", SERVES, livenessProbe=liveness))


def results(node: Node, name: str) -> list[RawResult]:
    """Return the stored results of the pod's probes, newest first; retries while the server is stalled."""
    found: list[RawResult] = []

    def read() -> bool:
        try:
            found[:] = kept_results(node.url, node.name)
        except StoreUnreachable:
            return False
        return True

    scratch.wait_until(read, "the raw results of probes")
    return [one for one in found if one.pod == f"default/{name}"]


def outcomes(node: Node, name: str) -> list[str]:
    """Return the outcomes of the pod's probes from the raw results, newest first."""
    return [one.outcome for one in results(node, name)]


def succeeded(node: Node, name: str, after: RawResult | None = None) -> int:
    """Return the number of probes that succeeded since the result `after`. Only a few dozen results are stored per
    probe, so a count of all stored successes would stop growing.
    """
    return sum(one.outcome == "success" for one in takewhile(lambda one: one != after, results(node, name)))


def wait_for_probes(node: Node, *names: str, more: int = 2) -> None:
    """Wait until `more` further probes of each of these pods have succeeded."""
    last = {name: next(iter(results(node, name)), None) for name in names}
    node.journal.wait_for(
        f"{more} probes of {names}", lambda: all(succeeded(node, name, last[name]) >= more for name in names)
    )
