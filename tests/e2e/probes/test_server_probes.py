"""Probes of servers, as the Kubernetes documentation describes them: real HTTP, TCP and gRPC in real containers.

The pods are those of the documentation, with scripts for this machine's Python in place of its images, and with its
times divided by about three; `--long` uses the original times.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from chronolet.adapters.probes.results.reader import kept_results
from chronolet_schemas import pod, prober
from tests.e2e.node import Node, running_node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.probes.probed_pods import ENOUGH_SECONDS, NEVER, file_in, started, started_and_ready
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import private_redis


class Times(NamedTuple):
    """Times of the probes, in seconds. `http`: delay, period, and how many requests are answered with 200 (not a time).
    `tcp`: delay and period. `grpc`: delay.
    """

    http: tuple[int, int, int]
    tcp: tuple[int, int]
    grpc: int


OWN, SHORT = Times((3, 3, 3), (15, 10), 10), Times((2, 1, 2), (5, 3), 3)

HTTP = """
import http.server, itertools, os, sys
again = os.path.exists("/state/been")
open("/state/been", "w").close()
numbers, well = itertools.count(1), sys.maxsize if again else int(sys.argv[1])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        awesome = self.headers["Custom-Header"] == "Awesome" and self.path == "/healthz"
        self.send_response(404 if not awesome else 200 if next(numbers) <= well else 500)
        self.end_headers()
        self.wfile.write(b"ok")
http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
"""
"""An HTTP server like the documentation's image, but healthy for N requests instead of N seconds; then it responds with
status 500. After a restart it is healthy.
"""

GRPC = """
import grpc, os, time
from concurrent.futures import ThreadPoolExecutor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
server, servicer = grpc.server(ThreadPoolExecutor(2)), health.HealthServicer()
health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
server.add_insecure_port("0.0.0.0:2379")
server.start()
words = health_pb2.HealthCheckResponse
while True:
    for service in ("", "shop"):
        ill = os.path.exists("/tmp/ill") and service
        servicer.set(service, words.NOT_SERVING if ill else words.SERVING)
    time.sleep(0.05)
"""
"""A gRPC server that is healthy, except that its service `shop` is unhealthy while a file exists."""


def python(name: str, script: str, *words: str, **more: Any) -> dict[str, Any]:
    """Return a container that runs a script with the Python that runs the tests."""
    mounts = [{"name": f"v{number}", "mountPath": path, "readOnly": True} for number, path in enumerate(_folders())]
    mounts.append({"name": "state", "mountPath": "/state"})
    command = [sys.executable, "-c", script, *words]
    return shell(name, **more) | {"command": command, "volumeMounts": mounts}


def _folders() -> list[str]:
    """Return the folders of this Python and its libraries."""
    named = {"/usr", "/lib", "/lib64", sys.prefix, sys.base_prefix}
    return sorted(one for one in named if not any(one.startswith(f"{other}/") for other in named))


def served(name: str, *containers: dict[str, Any]) -> dict[str, Any]:
    """Return a pod with the volumes that containers made by `python` mount. The folder `/state` outlives the
    containers.
    """
    volumes = [{"name": f"v{number}", "hostPath": {"path": path}} for number, path in enumerate(_folders())]
    return a_pod(name, *containers, volumes=[*volumes, {"name": "state", "emptyDir": {}}])


def pods(times: Times) -> list[dict[str, Any]]:
    """Return the pods of all tests, so that they run concurrently."""
    delay, period, healthy_requests = times.http
    enough = {"timeoutSeconds": ENOUGH_SECONDS}
    http = {
        "httpGet": {
            "path": "/healthz",
            "port": 8080,
            "httpHeaders": [{"name": "Custom-Header", "value": "Awesome"}],
        },
        "initialDelaySeconds": delay,
        "periodSeconds": period,
        **enough,
    }
    tcp = {"tcpSocket": {"port": 8080}, "initialDelaySeconds": times.tcp[0], "periodSeconds": times.tcp[1], **enough}
    # A server may take any time to start on a busy machine: its other probes wait for the startup probe, or never give
    # up.
    patient = {"failureThreshold": NEVER, **enough}
    health = {"grpc": {"port": 2379}, "initialDelaySeconds": times.grpc, **patient}
    begins = {"tcpSocket": {"port": 8080}, "periodSeconds": 1, **patient}
    serves = "trap 'exit 0' TERM; httpd -f -p 8080 & wait"
    waits = "while [ ! -e /tmp/close ]; do sleep 0.1; done"
    for_a_while = f"trap 'exit 0' TERM; httpd -f -p 8080 & {waits}; kill $!; sleep 600 & wait"
    named = {"ports": [{"name": "liveness-port", "containerPort": 8080}]}
    often = {"periodSeconds": 1, "failureThreshold": 2, **enough}
    return [
        served(
            "liveness-http", python("liveness", HTTP, str(healthy_requests), startupProbe=begins, livenessProbe=http)
        ),
        a_pod("goproxy", shell("goproxy", serves, livenessProbe={**tcp, **patient}, readinessProbe=tcp)),
        a_pod(
            "closes",
            shell(
                "app",
                for_a_while,
                **named,
                startupProbe=begins,
                livenessProbe={"tcpSocket": {"port": "liveness-port"}, "initialDelaySeconds": 2, **often},
            ),
        ),
        served("etcd-with-grpc", python("etcd", GRPC, livenessProbe=health)),
        served(
            "shop",
            python(
                "app",
                GRPC,
                startupProbe={"grpc": {"port": 2379}, "periodSeconds": 1, **patient},
                readinessProbe={"grpc": {"port": 2379, "service": "shop"}, **often},
                livenessProbe={"grpc": {"port": 2379}, **often},
            ),
        ),
        a_pod(
            "no-health",
            shell("app", serves, readinessProbe={"grpc": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 1}),
        ),
    ]


@pytest.fixture(scope="module", params=[SHORT, pytest.param(OWN, marks=pytest.mark.long)], ids=["short", "own"])
def times(request: pytest.FixtureRequest) -> Times:
    found: Times = request.param
    return found


@pytest.fixture(scope="module")
def node(docker_engine: PrivateDocker, times: Times) -> Iterator[Node]:
    """One node with the pods of all tests, in the network of the pods."""
    with private_redis() as server:
        root = server.folder / "agent"
        with running_node(docker_engine, server.url, "servers", root, in_network=True) as node:
            node.write("pods.yaml", *pods(times))
            yield node


def liveness_results(node: Node, container_id: str) -> list[str]:
    """Return the outcomes of a container's liveness probes, oldest first."""
    kept = kept_results(node.environ["CHRONOLET_REDIS"], node.name)
    return [one.outcome for one in kept if one.id == container_id and one.probe == "Liveness"][::-1]


def test_liveness_over_http(node: Node, times: Times) -> None:
    """The container is probed after the delay. It is healthy for some requests; three failures, a kill and a restart
    follow.
    """
    delay = times.http[0] * 1_000
    began = started(node, "liveness-http").started_at
    first = node.journal.wait_for_event(pod.ContainerStopRequested, pod="default/liveness-http").id
    good = node.journal.events(prober.ProbeSucceeded, id=first, probe="Liveness")[0]
    assert (good.code, good.output) == (200, "ok")
    assert good.at - began >= delay
    bad = node.journal.events(prober.ProbeFailed, id=first, probe="Liveness")
    assert [(one.consecutive, one.code) for one in bad] == [(1, 500), (2, 500), (3, 500)]
    period = times.http[1] * 1_000
    assert bad[2].at - bad[0].at >= period, "two periods, but the first of them may have begun late"
    expected = ["success"] * times.http[2] + ["failure"] * 3
    node.journal.wait_for("a result for each request", lambda: len(liveness_results(node, first)) >= len(expected))
    found = liveness_results(node, first)
    assert found[: len(expected)] == expected
    assert set(found[len(expected) :]) <= {"failure", "error"}, "probed until the last one is in the log"
    assert ("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500") in node.kube_events(
        "liveness-http"
    )
    killing = ("Killing", "Container liveness failed liveness probe, will be restarted")
    assert killing in node.kube_events("liveness-http")
    started(node, "liveness-http", attempt=1)
    assert node.restarts("liveness-http") == [1]


def test_liveness_and_readiness_over_tcp(node: Node, times: Times) -> None:
    """The pod is not ready before the first probe, which runs after the delay."""
    delay = times.tcp[0] * 1_000
    began = started(node, "goproxy").started_at
    ready = node.journal.wait_for_event(
        prober.ResultChanged, pod="default/goproxy", result="success", probe="Readiness"
    )
    assert ready.consecutive == 1
    for probe in ("Readiness", "Liveness"):
        first = node.journal.wait_for_event(prober.ProbeSucceeded, pod="default/goproxy", probe=probe)
        assert first.at - began >= delay
        assert (first.output, first.code) == ("", None)
    node.journal.wait_for("it to be ready", lambda: started_and_ready(node, "goproxy") == (True, True))
    assert node.restarts("goproxy") == [0]


def test_a_server_that_no_longer_listens_is_restarted(node: Node) -> None:
    started(node, "closes")
    node.journal.wait_for_event(prober.ProbeSucceeded, pod="default/closes", probe="Liveness")
    file_in(node, "closes", "/tmp/close").touch()
    stopped = node.journal.wait_for_event(pod.ContainerStopRequested, pod="default/closes")
    assert stopped.reason == "LivenessFailed"
    failed = node.journal.events(prober.ProbeFailed, pod="default/closes", probe="Liveness")
    assert len(failed) >= 2
    assert all("connect: connection refused" in one.output for one in failed[:2])
    started(node, "closes", attempt=1)


def test_liveness_over_grpc(node: Node, times: Times) -> None:
    delay = times.grpc * 1_000
    began = started(node, "etcd-with-grpc").started_at
    first = node.journal.wait_for_event(prober.ProbeSucceeded, pod="default/etcd-with-grpc")
    assert first.output == "service healthy"
    assert first.at - began >= delay
    assert node.restarts("etcd-with-grpc") == [0]


def test_a_service_of_a_grpc_server_is_probed_by_name(node: Node) -> None:
    started(node, "shop")
    node.journal.wait_for("it to be ready", lambda: started_and_ready(node, "shop") == (True, True))
    file_in(node, "shop", "/tmp/ill").touch()
    node.journal.wait_for("it to become unready", lambda: started_and_ready(node, "shop") == (True, False))
    failed = node.journal.events(prober.ProbeFailed, pod="default/shop", probe="Readiness")[-1]
    assert failed.output == 'service unhealthy (responded with "NOT_SERVING")'
    file_in(node, "shop", "/tmp/ill").unlink()
    node.journal.wait_for("it to be ready again", lambda: started_and_ready(node, "shop") == (True, True))
    assert node.restarts("shop") == [0]


def test_a_server_without_the_health_service_is_not_ready(node: Node) -> None:
    node.journal.wait_for_event(prober.ProbeFailed, pod="default/no-health")
    assert started_and_ready(node, "no-health") == (True, False)
