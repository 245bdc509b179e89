"""`get`, `describe`, `logs`: golden outputs of a history written by hand."""

import json
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from chronolet.cli import services
from chronolet.cli.description import described
from chronolet_schemas import manifests, pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard, shard_for
from chronolet_schemas.kube_events import Recorded
from tests.cli.written import NODE, NOON, WrittenNode, manifest

SECOND = 1_000
UID = "5c0ffee5"


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


TWO = [
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
APP = {"pod": "default/web", "uid": UID, "container": "app"}
SIDE = {**APP, "container": "side"}
RUN = "5e" * 32


def start(about: dict[str, str], attempt: int, container_id: str, at: int) -> list[Event]:
    named = {**about, "attempt": attempt}
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


def told(reason: str, message: str, severity: str = "Normal") -> Recorded:
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


@pytest.fixture
def node() -> WrittenNode:
    """web: app crashed twice and waits, side runs. db in another namespace is being made. gone has ended."""
    written = WrittenNode()
    web = "pod/default/web"
    box = {"pod": "default/web", "uid": UID, "attempt": 0}
    written.write(
        web,
        accepted(containers=TWO, volumes=[{"name": "data", "emptyDir": {}}]),
        pod.SandboxStartRequested(**box, spec_hash="s", requested_at=NOON),
        pod.SandboxStarted(**box, id="box", ip="10.0.0.7", started_at=NOON),
        *start(SIDE, 0, RUN, NOON + SECOND),
        *start(APP, 0, "a0" * 32, NOON + SECOND),
        told("Started", "Started container app"),
    )
    written.now = NOON + 60 * SECOND
    written.write(web, *crash(0, "a0" * 32, written.now), *start(APP, 1, "a1" * 32, written.now))
    written.write(web, told("Started", "Started container app"))
    written.now += 10 * SECOND
    restarting = told("BackOff", "Back-off restarting failed container app", "Warning")
    written.write(web, *crash(1, "a1" * 32, written.now), back_off(1, written.now + 10 * SECOND), restarting)
    written.write("pod/data/db", accepted("db", "data"))
    written.write("pod/default/gone", accepted("gone"), pod.PodEnded(pod="default/gone", uid=UID))
    written.now = NOON + 200 * SECOND
    return written


def test_get_prints_what_a_jsonpath_finds(node: WrittenNode) -> None:
    assert node.run("get", "pod", "web", "-o", "jsonpath={.status.podIP}").out == "10.0.0.7"
    assert node.run("get", "pods", "-A", "-o=jsonpath={.items[*].metadata.name}").out == "db web"
    each = 'jsonpath={range .items[*]}{.metadata.namespace}{"/"}{.metadata.name}{"\\n"}{end}'
    assert node.run("get", "pods", "-A", "-o", each).out == "data/db\ndefault/web\n"
    assert node.run("get", "actors", "-o", "jsonpath={.items[0].name}").out == "manifests"
    gone = node.run("get", "pod", "gone", "-o", "jsonpath={.metadata.name}")
    assert (gone.status, gone.out) == (1, "")
    outside = node.run("get", "pod/web", "-o", "jsonpath={.spec.containers[2].name}")
    assert (outside.status, outside.out) == (1, "")
    assert outside.err == "error: -o jsonpath: array index out of bounds: index 2, length 2\n"


def test_get_pods_is_kubectls_table(node: WrittenNode) -> None:
    said = node.run("get", "pods")
    assert (said.status, said.err) == (0, "")
    assert said.out == (
        "NAME   READY   STATUS             RESTARTS        AGE\n"
        "web    1/2     CrashLoopBackOff   1 (2m10s ago)   3m20s\n"
    )


def test_get_pods_of_all_namespaces_wide_and_without_headers(node: WrittenNode) -> None:
    assert node.run("get", "po", "-A", "-o", "wide").out == (
        "NAMESPACE   NAME   READY   STATUS              RESTARTS        AGE     IP         NODE\n"
        "data        db     0/1     ContainerCreating   0               3m20s   <none>     node-1\n"
        "default     web    1/2     CrashLoopBackOff    1 (2m10s ago)   3m20s   10.0.0.7   node-1\n"
    )
    assert node.run("get", "pod", "-n", "data", "--no-headers").out == "db   0/1   ContainerCreating   0   3m20s\n"


@pytest.mark.parametrize("words", [["pods", "web"], ["pod/web"], ["po/web"], ["pod", "web", "web"]])
def test_get_one_pod_by_name(node: WrittenNode, words: list[str]) -> None:
    assert node.run("get", *words, "-o", "name") == ("pod/web\n", "", 0)


def test_what_is_not_there_is_an_error_beside_what_is(node: WrittenNode) -> None:
    said = node.run("get", "pods", "web", "nope", "-o", "name")
    assert said == ("pod/web\n", 'error: pod "nope" not found in namespace "default"\n', 1)
    assert node.run("get", "pods", "-n", "empty") == ("", "No resources found in empty namespace.\n", 0)
    assert node.run("describe", "pod", "nope").err == 'error: pod "nope" not found in namespace "default"\n'
    assert node.run("logs", "nope").err == 'error: pod "nope" not found in namespace "default"\n'


def test_json_and_yaml_are_the_apis_objects(node: WrittenNode) -> None:
    whole = json.loads(node.run("get", "pods", "-A", "-o", "json").out)
    assert (whole["apiVersion"], whole["kind"]) == ("v1", "List")
    assert [item["metadata"]["name"] for item in whole["items"]] == ["db", "web"]
    one = yaml.safe_load(node.run("get", "pod", "web", "-o", "yaml").out)
    assert one == json.loads(node.run("get", "pod", "web", "-o", "json").out)
    assert (one["kind"], one["metadata"]["uid"], one["spec"]["nodeName"]) == ("Pod", UID, NODE)
    assert one["status"]["phase"] == "Running"
    assert one["status"]["podIP"] == "10.0.0.7"
    app = one["status"]["containerStatuses"][0]
    assert app["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert app["lastState"]["terminated"]["exitCode"] == 3
    assert app["restartCount"] == 1


def test_get_containers(node: WrittenNode) -> None:
    assert node.run("get", "containers", "-o", "wide").out == (
        "NAME   POD   STATE              RESTARTS   AGE      IMAGE       ID\n"
        "app    web   CrashLoopBackOff   1          <none>   busybox:1   a1a1a1a1a1a1\n"
        "side   web   Running            0          3m19s    busybox:1   5e5e5e5e5e5e\n"
    )
    assert node.run("get", "container", "side", "-o", "name").out == "container/web/side\n"


def test_a_pod_that_ends_is_terminating(node: WrittenNode) -> None:
    deadline = node.now + 30 * SECOND
    ends = pod.TerminationRequested(
        pod="default/web", uid=UID, reason="Deleted", grace_period_seconds=30, deadline=deadline
    )
    node.write("pod/default/web", ends)
    assert node.run("get", "pods", "--no-headers").out.split()[2] == "Terminating"
    assert "Status:           Terminating (lasts 0s, grace period 30s)" in node.run("describe", "pod/web").out


def test_describe_tells_everything_and_what_was_told(node: WrittenNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    said = node.run("describe", "pod", "web")
    assert (said.status, said.err) == (0, "")
    assert said.out == GOLDEN


GOLDEN = """\
Name:             web
Namespace:        default
UID:              5c0ffee5
Node:             node-1
Start Time:       Fri, 15 Jan 2027 08:00:00 +0000
Labels:           <none>
Annotations:      <none>
Status:           Running
IP:               10.0.0.7
Containers:
  app:
    Container ID:   docker://a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1
    Image:          busybox:1
    Image ID:       sha256:1
    Port:           80/TCP
    Host Port:      8080/TCP
    Command:
      httpd
      -f
    State:          Waiting
      Reason:       CrashLoopBackOff
      Message:      back-off 10s restarting failed container=app pod=web_default(5c0ffee5)
    Last State:     Terminated
      Reason:       Error
      Exit Code:    3
      Started:      Fri, 15 Jan 2027 08:01:09 +0000
      Finished:     Fri, 15 Jan 2027 08:01:10 +0000
    Ready:          False
    Restart Count:  1
    Limits:
      cpu:     500m
      memory:  64Mi
    Requests:
      cpu:     500m
      memory:  64Mi
    Environment:
      A:  b
    Mounts:
      /data from data (rw)
  side:
    Container ID:   docker://5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e
    Image:          busybox:2
    Image ID:       sha256:1
    Port:           <none>
    Host Port:      <none>
    State:          Running
      Started:      Fri, 15 Jan 2027 08:00:01 +0000
    Ready:          True
    Restart Count:  0
    Environment:    <none>
    Mounts:
      /in from data (ro)
Conditions:
  Type                        Status
  PodReadyToStartContainers   True
  Initialized                 True
  Ready                       False
  ContainersReady             False
  PodScheduled                True
Volumes:
  data:
    Type:           EmptyDir
Events:
  Type      Reason    Age                     From        Message
  ----      ------    ---                     ----        -------
  Normal    Started   2m20s (x2 over 3m20s)   pod (app)   Started container app
  Warning   BackOff   2m10s                   pod (app)   Back-off restarting failed container app
"""


def test_the_type_of_a_host_path_is_not_taken_for_the_volume_s(node: WrittenNode) -> None:
    pod: dict[str, Any] = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}}
    pod["spec"] = {"volumes": [{"name": "v", "hostPath": {"path": "/data", "type": "Directory"}}]}
    page = list(described(pod, (), node.now))
    assert page[page.index("Volumes:") + 1 : -1] == [
        "  v:",
        "    Type:           HostPath",
        "    Path:           /data",
        "    HostPathType:   Directory",
    ]


def test_describe_without_a_name_takes_the_whole_namespace(node: WrittenNode) -> None:
    node.write("pod/default/api", accepted("api"))
    names = [line for line in node.run("describe", "pods").out.splitlines() if line.startswith("Name:")]
    assert names == ["Name:             api", "Name:             web"]
    assert node.run("describe", "pods", "-n", "empty").err == "No resources found in empty namespace.\n"


def test_words_from_a_pod_cannot_steer_the_terminal(node: WrittenNode) -> None:
    node.write("pod/default/web", told("Failed", "\x1b]0;gotcha\x07 line\nbreak"))
    out = node.run("describe", "pod", "web").out
    assert "\x1b" not in out
    assert "\\x1b]0;gotcha\\x07 line\\nbreak" in out


def test_logs_ask_docker_for_the_right_container(node: WrittenNode) -> None:
    ids = {"now": "c1" * 32, "dead": "c0" * 32}
    web = "pod/default/web"
    node.write(web, *start(APP, 2, ids["dead"], node.now), *crash(2, ids["dead"], node.now))
    asked: list[tuple[str, dict[str, object]]] = []

    def logs(container_id: str, **options: object) -> object:
        asked.append((container_id, options))
        return iter([("stdout", b"out\n"), ("stderr", b"err\n")])

    node.runtime.logs = logs  # type: ignore[method-assign, assignment]
    said = node.run("logs", "web", "-c", "app", "--tail", "5", "--since", "10s", "--timestamps")
    assert said == ("out\n", "err\n", 0)
    everything = {"follow": False, "tail": None, "since": None, "timestamps": False}
    assert asked.pop() == (
        ids["dead"],
        {"follow": False, "tail": 5, "since": node.now - 10 * SECOND, "timestamps": True},
    )
    node.write(web, *start(APP, 3, ids["now"], node.now))
    assert node.run("logs", "pod/web", "app").status == 0
    assert asked.pop() == (ids["now"], everything)
    assert node.run("logs", "web", "app", "-p", "-f").status == 0
    assert asked.pop() == (ids["dead"], everything)


def test_logs_say_why_there_are_none(node: WrittenNode) -> None:
    assert node.run("logs", "web", "-c", "side", "-p").err == (
        'error: previous terminated container "side" in pod web not found\n'
    )
    assert node.run("logs", "web", "-c", "cook").err == (
        "error: container cook is not valid for pod web, expected app, side\n"
    )
    assert node.run("logs", "db", "-n", "data").err == (
        'error: container "app" in pod db is waiting to start: ContainerCreating\n'
    )
    gone = node.run("logs", "web")
    assert gone.status == 1
    assert gone.err.splitlines()[0] == 'Defaulted container "app" out of: app, side'
    assert "was removed from Docker" in gone.err


def test_logs_of_a_docker_that_does_not_answer_end_with_one_line(
    node: WrittenNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was stopped: its socket takes connections and nobody answers."""
    assert services.ANSWER_SECONDS == 10
    monkeypatch.setattr(services, "ANSWER_SECONDS", 0.2)
    node.docker = services.docker_runtime
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "sock"))
        silent.listen()
        said = node.run("logs", "web", "-c", "side", "-f", "--docker", f"unix://{tmp_path}/sock")
    assert (said.status, said.out) == (1, "")
    assert said.err == f"error: Docker at {tmp_path}/sock: no answer in time to GET /version\n"


def test_get_actors_tells_owner_lag_and_what_waits(node: WrittenNode) -> None:
    store, mail = node.store, Shard("manifests")
    store.renew("p1", "{}", 10_000)
    store.acquire(mail, "", "p1", 1, proven_dead=False)
    store.acquire(Shard("pleg"), "", "p0", 1, proven_dead=False)
    store.send(mail, "manifests.DeletePods@1", "manifests/node", "r1", b"")
    wanted = manifests.PodApplied(pod="default/web", uid=UID, source="apply", digest="d", manifest=manifest())
    node.write("manifests/node", wanted)
    rows = [line.split() for line in node.run("get", "actors").out.splitlines()]
    assert rows[0] == ["NAME", "OWNER", "EPOCH", "VERSION", "LAG", "WAITING", "ENTITIES", "SNAPSHOT"]
    assert rows[1] == ["manifests", "p1", "1", "0", "0", "1", "1", "<none>"]
    by_name = {row[0]: row for row in rows}
    web = str(shard_for("pod", 4, "default/web"))
    mine = [entry for entry in node.server.log if entry.type.startswith("manifests.Pod")]
    assert sum(int(by_name[f"pod/{index}"][4]) for index in range(4)) == len(mine) > 0
    assert int(by_name[web][4]) > 0
    assert by_name["pleg"][4] == "0", "nothing in the log is for it"
    assert by_name["pleg"][1:4] == ["p0", "(dead)", "1"]
    assert sum(int(by_name[f"pod/{index}"][6]) for index in range(4)) == 2
    assert node.run("get", "actor", "pod/2", "-o", "name").out == "actor/pod/2\n"
    assert len(json.loads(node.run("get", "actors", "pod", "-o", "json").out)["items"]) == 4


def test_what_get_shows_can_be_applied_and_changes_nothing(node: WrittenNode) -> None:
    for form in ("yaml", "json"):
        shown = node.run("get", "pod", "db", "-n", "data", "-o", form).out
        said = node.run("apply", "--dry-run", "-f", "-", stdin=shown.encode())
        assert said == ("pod/db unchanged (dry run)\n", "", 0)


def test_dry_run_says_what_would_change(node: WrittenNode) -> None:
    same = json.dumps({**manifest_plain("db", "data")})
    assert node.run("apply", "-f", "-", "--dry-run=client", stdin=same.encode()).out == "pod/db unchanged (dry run)\n"
    assert node.run("apply", "--dry-run", "-f", "-", stdin=same.encode()).out == "pod/db unchanged (dry run)\n"
    changed = same.replace("busybox:1", "busybox:9")
    assert node.run("apply", "--dry-run", "-f", "-", stdin=changed.encode()).out == (
        'pod/db configured (dry run)\n  spec.containers[0].image: "busybox:1" -> "busybox:9"\n'
    )
    other = same.replace('"db"', '"new"')
    before = list(node.server.log)
    assert node.run("apply", "--dry-run", "-f", "-", stdin=other.encode()).out == "pod/new created (dry run)\n"
    assert node.server.log == before


def test_dry_run_says_what_would_be_refused(node: WrittenNode) -> None:
    event = msgspec.structs.replace(accepted("mine"), source="file:/m/mine.yaml")
    node.write("pod/default/mine", event)
    both = b"\n---\n".join(json.dumps(manifest_plain(name, "default")).encode() for name in ("mine", "new"))
    said = node.run("apply", "--dry-run", "-f", "-", stdin=both)
    assert (said.status, said.out) == (1, "pod/new created (dry run)\n")
    assert said.err == "error: default/mine is wanted by file:/m/mine.yaml already (dry run)\n"


def manifest_plain(name: str, namespace: str) -> dict[str, object]:
    containers = [{"name": "app", "image": "busybox:1"}]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def test_a_node_without_a_log_is_named() -> None:
    empty = WrittenNode()
    with empty.server.changed:
        empty.server.log.clear()
        empty.server.last = empty.server.last._replace(milliseconds=0, n=0)
    said = empty.run("get", "pods")
    assert said.status == 1
    assert said.err.startswith("error: node node-1 has no log at unix:///none: start its agent")
