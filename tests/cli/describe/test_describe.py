"""`describe` of pods: golden pages for a hand-written history."""

from typing import Any

import pytest
from msgspec.structs import replace

from chronolet.cli.describe.pod_section import described
from chronolet_schemas import prober
from chronolet_schemas.podspec import ExecAction, Probe
from chronolet_schemas.prober import RawResult
from tests.cli.support.histories import SECOND, UID, accepted, recorded
from tests.cli.support.written_node import NOON, WrittenNode


def test_the_page_of_a_pod_has_all_sections_and_its_events(node: WrittenNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    result = node.run("describe", "pod", "web")
    assert (result.status, result.errors) == (0, "")
    assert result.output == GOLDEN


GOLDEN = """\
Name:             web
Namespace:        default
UID:              5c0ffee5
Priority:         0
Node:             node-1
Start Time:       Fri, 15 Jan 2027 08:00:00 +0000
Labels:           <none>
Annotations:      <none>
Status:           Running
IP:               10.0.0.7
IPs:
  IP:  10.0.0.7
Containers:
  app:
    Container ID:   docker://a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1
    Image:          busybox:1
    Image ID:       docker://sha256:1
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
    Image ID:       docker://sha256:1
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
  Type                        Status   Reason               Message
  PodReadyToStartContainers   True
  Initialized                 True
  Ready                       False    ContainersNotReady   containers with unready status: [app]
  ContainersReady             False    ContainersNotReady   containers with unready status: [app]
  PodScheduled                True
Volumes:
  data:
    Type:           EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:
    SizeLimit:      <unset>
QoS Class:                   Burstable
Node-Selectors:              <none>
Tolerations:                 <none>
Events:
  Type      Reason    Age                     From        Message
  ----      ------    ---                     ----        -------
  Normal    Started   2m20s (x2 over 3m20s)   chronolet   Started container app
  Warning   BackOff   2m10s                   chronolet   Back-off restarting failed container app
"""


def _raw(probe: str, outcome: str, ago: int, **changes: str) -> RawResult:
    fields = {"container": "app", "uid": UID, "code": "", "output": "", "milliseconds": "5", "late_milliseconds": "0.1"}
    return RawResult(
        **{**fields, "pod": "default/web", "id": "k0", "probe": probe, "outcome": outcome, **changes},
        at=str(NOON - ago * SECOND),
    )


def test_the_page_has_the_last_results_of_probes(node: WrittenNode) -> None:
    probe = Probe(exec=ExecAction(command=("true",)))
    who: dict[str, Any] = {"pod": "default/web", "uid": UID, "container": "app", "probe": "Liveness"}
    added = prober.ProbeAdded(definition=probe, restarts="Always", period_milliseconds=250, field="f", **who)
    began = prober.ProbingBegan(attempt=0, id="k0", started_at=1, ip="", from_at=1, started=True, **who)
    changed = prober.ResultChanged(attempt=0, id="k0", started_at=1, result="success", **who)
    failed = prober.ProbeFailed(id="k0", consecutive=2, threshold=3, at=1, milliseconds=1, **who)
    node.write("prober/default/web/app/Liveness", added, began, changed)
    definition = {"exec": {"command": ["true"]}}
    one = accepted(containers=[{"name": "app", "image": "busybox:1", "livenessProbe": definition}])
    node.write("pod/default/web", one)
    assert "      Result:       success (not probed yet)\n" in node.run("describe", "pod", "web").output
    node.write("prober/default/web/app/Liveness", failed)
    node.results = [
        _raw("Liveness", "failure", 1, code="1", output="no\x1b[2J\nmore", milliseconds="1200"),
        _raw("Readiness", "failure", 1),
        _raw("Liveness", "failure", 2, uid="another"),
        _raw("Liveness", "error", 3),
        _raw("Liveness", "error", 3),  # a duplicate, as after a lost connection
        _raw("Liveness", "success", 4),
        _raw("Liveness", "success", 5),
    ]
    node.now = NOON
    page = node.run("describe", "pod", "web").output
    begin = page.index("    Liveness:")
    assert page[begin : page.index("    Environment:")] == PROBED
    requested = prober.KillAsked(attempt=0, id="k0", started_at=1, consecutive=3, threshold=3, short_of=("cpu",), **who)
    node.write("prober/default/web/app/Liveness", replace(failed, consecutive=3), requested)
    words = "success (3 of 3 failures in a row; stop held back: the node is overloaded)"
    assert words in node.run("describe", "pod", "web").output
    node.write("prober/default/web/app/Liveness", prober.KillWithdrawn(id="k0", started_at=1, **who))
    node.write("prober/default/web/app/Liveness", replace(failed, held=True))
    assert "success (no longer probed)" in node.run("describe", "pod", "web").output
    node.write("prober/default/web/app/Liveness", prober.ProbingPaused(id="k0", **who))
    assert "success (not probed: the container is not running" in node.run("describe", "pod", "web").output


PROBED = """\
    Liveness:       exec [true] delay=0s timeout=1s period=10s #success=1 #failure=3
      Period:       250ms
      Result:       success (last 2 of 3 failures in a row)
      Last Results:
        Age   Outcome   Code   Took   Output
        1s    failure   1      1.2s   no\\x1b[2J
        3s    error     -      5ms
        4s    success   -      5ms
"""


RICH: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"b": "2", "a": "1"}},
    "spec": {
        "nodeName": "node-1",
        "priority": 7,
        "restartPolicy": "OnFailure",
        "activeDeadlineSeconds": 60,
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [
            {"key": "k", "value": "v", "effect": "NoSchedule"},
            {"operator": "Exists"},
            {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        ],
        "initContainers": [
            {"name": "first", "image": "i:1"},
            {
                "name": "sidecar",
                "image": "i:2",
                "restartPolicy": "Always",
                "startupProbe": {"exec": {"command": ["test", "-f", "/up"]}, "failureThreshold": 30},
            },
        ],
        "containers": [
            {
                "name": "app",
                "image": "i:3",
                "command": ["sh", "-c"],
                "args": ["one\n  two"],
                "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}],
                "livenessProbe": {"httpGet": {"port": "http", "path": "/live"}, "initialDelaySeconds": 5},
                "readinessProbe": {"tcpSocket": {"port": 80}},
                "lifecycle": {
                    "postStart": {"exec": {"command": ["warm", "up"]}},
                    "preStop": {"sleep": {"seconds": 3}},
                },
                "envFrom": [
                    {"configMapRef": {"name": "all"}, "prefix": "C_"},
                    {"secretRef": {"name": "keys", "optional": True}},
                ],
                "env": [
                    {"name": "PLAIN", "value": "1"},
                    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k", "optional": True}}},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                    {"name": "ODD", "valueFrom": {"fileKeyRef": {}}},
                ],
                "volumeMounts": [{"mountPath": "/x", "name": "h", "readOnly": True, "subPath": "sub"}],
                "volumeDevices": [{"devicePath": "/dev/xvda", "name": "claim"}],
            }
        ],
        "ephemeralContainers": [
            {"name": "debug", "image": "i:4", "lifecycle": {"preStop": {"grpc": {"port": 1}, "x": {}}}}
        ],
        "volumes": [
            {"name": "h", "hostPath": {"path": "/data", "type": "Directory"}},
            {"name": "e", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "s", "secret": {"secretName": "keys"}},
            {"name": "c", "configMap": {"name": "all", "optional": True}},
            {"name": "d", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"name": "claim", "persistentVolumeClaim": {"claimName": "disk", "readOnly": True}},
            {
                "name": "j",
                "projected": {
                    "sources": [
                        {"secret": {"name": "keys"}},
                        {"configMap": {"name": "all"}},
                        {"downwardAPI": {}},
                        {"serviceAccountToken": {}},
                    ]
                },
            },
            {"name": "n", "nfs": {"server": "far"}},
        ],
    },
    "status": {
        "phase": "Failed",
        "reason": "DeadlineExceeded",
        "message": "too late",
        "initContainerStatuses": [
            {
                "name": "first",
                "ready": True,
                "state": {"terminated": {"exitCode": 0, "reason": "Completed", "message": "done"}},
            }
        ],
    },
}


def test_the_page_lists_every_part_of_a_pod_in_order() -> None:
    """The expected lines are a subsequence of the page."""
    expected = """\
Priority:         7
Labels:           a=1
                  b=2
Status:           Failed
Active Deadline:  60s
Restart Policy:   OnFailure
Reason:           DeadlineExceeded
Message:          too late
Init Containers:
  first:
    State:          Terminated
      Reason:       Completed
      Message:      done
      Exit Code:    0
    Ready:          True
  sidecar:
    Restart Policy: Always
    State:          Waiting
    Startup:        exec [test -f /up] delay=0s timeout=1s period=10s #success=1 #failure=30
Containers:
  app:
    Ports:          80/TCP (http), 53/UDP
    Host Ports:     0/TCP, 0/UDP
    Args:
      one
        two
    Liveness:       http-get http://:http/live delay=5s timeout=1s period=10s #success=1 #failure=3
    Readiness:      tcp-socket :80 delay=0s timeout=1s period=10s #success=1 #failure=3
    Post Start:     exec [warm up]
    Pre Stop:       sleep 3s
    Environment Variables from:
      all  ConfigMap with prefix 'C_'  Optional: false
      keys  Secret  Optional: true
    Environment:
      PLAIN:  1
      KEY:    <set to the key 'k' in secret 's'>  Optional: false
      MAP:    <set to the key 'k' of config map 'm'>  Optional: true
      NODE:   node-1 (v1:spec.nodeName)
      CPU:     (limits.cpu)
      ODD:    <from another source>
    Mounts:
      /x from h (ro,path="sub")
    Devices:
      /dev/xvda from claim
Ephemeral Containers:
  debug:
    Pre Stop:       grpc <pod>:1
Volumes:
  h:
    Type:           HostPath (bare host directory volume)
    Path:           /data
    HostPathType:   Directory
    Medium:         Memory
    SizeLimit:      1Mi
    SecretName:     keys
    Optional:       False
    Name:           all
    Optional:       True
    Items:
      metadata.labels -> l
    ClaimName:      disk
    ReadOnly:       true
    SecretName:     keys
    ConfigMapName:  all
    DownwardAPI:    true
    ServiceAccountToken:  true
    Type:           Nfs
    Server:         far
Node-Selectors:              disk=ssd
Tolerations:                 k=v:NoSchedule
                             op=Exists
                             gone:NoExecute op=Exists for 300s
Events:                      <none>
""".splitlines()
    page = iter(described(RICH, (), 0))
    for line in expected:
        assert line in page, f"{line!r} is missing or out of order"


def test_an_unobserved_exit_code_is_unknown() -> None:
    gone = {"exitCode": 137, "reason": "ContainerStatusUnknown"}
    status = {"containerStatuses": [{"name": "app", "state": {"terminated": gone}}]}
    page = described({**RICH, "status": status}, (), 0)
    assert "      Exit Code:    unknown (137)" in page


def test_describe_without_a_name_covers_the_namespace(node: WrittenNode) -> None:
    node.write("pod/default/api", accepted("api"))
    names = [line for line in node.run("describe", "pods").output.splitlines() if line.startswith("Name:")]
    assert names == ["Name:             api", "Name:             web"]
    assert node.run("describe", "pods", "-n", "empty").errors == "No resources found in empty namespace.\n"
    everywhere = node.run("describe", "pods", "-A").output
    assert [line.split()[1] for line in everywhere.splitlines() if line.startswith("Name:")] == ["db", "api", "web"]
    one = node.run("describe", "pods", "--field-selector", "metadata.name=api").output
    assert [line.split()[1] for line in one.splitlines() if line.startswith("Name:")] == ["api"]
    assert node.run("describe", "pods", "-A", "-l", "x").errors == "No resources found.\n"
    assert node.run("describe", "pod", "web", "-l", "x").status == 2


def test_control_characters_from_a_pod_are_escaped(node: WrittenNode) -> None:
    node.write("pod/default/web", recorded("Failed", "\x1b]0;gotcha\x07 line\nbreak"))
    out = node.run("describe", "pod", "web").output
    assert "\x1b" not in out
    assert "\\x1b]0;gotcha\\x07 line\\nbreak" in out
