"""Hand-written histories, from which commands produce the golden outputs.

Input: none. Output: events of pods, and a node with pods in various phases.
"""

from typing import Any

from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.kube_events import Recorded
from tests.cli.support.written_node import NOON, WrittenNode, manifest

SECOND = 1_000
UID = "5c0ffee5"
WEB = "pod/default/web"


def accepted(name: str = "web", namespace: str = "default", **spec: object) -> pod.SpecAccepted:
    return pod.SpecAccepted(
        pod=f"{namespace}/{name}",
        uid=UID,
        source="apply",
        digest="d",
        manifest=manifest(name, namespace, **spec),
        accepted_at=NOON,
        sandbox_hash="s",
        container_hashes={},
    )


TWO_CONTAINERS = [
    {
        "name": "app",
        "image": "busybox:1",
        "command": ["httpd", "-f"],
        "ports": [{"containerPort": 80, "hostPort": 8080}],
        "env": [{"name": "A", "value": "b"}],
        "resources": {"limits": {"memory": "64Mi", "cpu": "500m"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    },
    {"name": "side", "image": "busybox:2", "volumeMounts": [{"name": "data", "mountPath": "/in", "readOnly": True}]},
]
APP: dict[str, Any] = {"pod": "default/web", "uid": UID, "container": "app"}
SIDE: dict[str, Any] = {**APP, "container": "side"}
RUN = "5e" * 32


def start(about: dict[str, Any], attempt: int, container_id: str, at: int) -> list[Event]:
    named: dict[str, Any] = {**about, "attempt": attempt}
    return [
        pod.ImageEnsureRequested(**named, image="busybox:1", policy="IfNotPresent"),
        pod.ImageReady(**named, image="busybox:1", image_id="sha256:1", pulled=False),
        pod.ContainerStartRequested(**named, sandbox_id="box", spec_hash="", requested_at=at),
        pod.ContainerStarted(**named, id=container_id, started_at=at),
    ]


def crash(attempt: int, container_id: str, at: int) -> list[Event]:
    exited = pod.ContainerExited(
        **APP, attempt=attempt, id=container_id, exit_code=3, reason="Error", started_at=at - SECOND, finished_at=at
    )
    return [exited]


def back_off(attempt: int, at: int) -> pod.RestartScheduled:
    return pod.RestartScheduled(**APP, attempt=attempt, at=at, back_off_seconds=10, next_back_off_seconds=20)


def recorded(reason: str, message: str, severity: str = "Normal") -> Recorded:
    path = "spec.containers{app}"
    return Recorded(
        object_kind="Pod",
        namespace="default",
        name="web",
        uid=UID,
        field_path=path,
        severity=severity,  # type: ignore[arg-type]
        reason=reason,
        message=message,
    )


def web() -> WrittenNode:
    """Return a node with these pods: web, whose container app has crashed twice and is backing off, and whose container
    side is running; db in namespace data, which is starting; and gone, which has ended.
    """
    node = WrittenNode()
    box: dict[str, Any] = {"pod": "default/web", "uid": UID, "attempt": 0}
    node.write(
        WEB,
        accepted(containers=TWO_CONTAINERS, volumes=[{"name": "data", "emptyDir": {}}]),
        pod.SandboxStartRequested(**box, spec_hash="s", requested_at=NOON),
        pod.SandboxStarted(**box, id="box", ip="10.0.0.7", started_at=NOON),
        *start(SIDE, 0, RUN, NOON + SECOND),
        *start(APP, 0, "a0" * 32, NOON + SECOND),
        recorded("Started", "Started container app"),
    )
    node.now = NOON + 60 * SECOND
    node.write(WEB, *crash(0, "a0" * 32, node.now), *start(APP, 1, "a1" * 32, node.now))
    node.write(WEB, recorded("Started", "Started container app"))
    node.now += 10 * SECOND
    restarting = recorded("BackOff", "Back-off restarting failed container app", "Warning")
    node.write(WEB, *crash(1, "a1" * 32, node.now), back_off(1, node.now + 10 * SECOND), restarting)
    node.write("pod/data/db", accepted("db", "data"))
    node.write("pod/default/gone", accepted("gone"), pod.PodEnded(pod="default/gone", uid=UID))
    node.now = NOON + 200 * SECOND
    return node
