"""`describe`: the golden page of a history written by hand."""

from typing import Any

import pytest

from chronolet.cli.description import described
from tests.cli.histories import accepted, told
from tests.cli.written import WrittenNode


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
