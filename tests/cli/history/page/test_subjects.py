"""Which object an entry is about, how important it is, and how rows are drawn."""

from typing import Any

import pytest

from chronolet.cli.history.page.pods import look
from chronolet.cli.history.page.subjects import about, severity
from chronolet.history.page.viewing import Look, Object, Severity
from chronolet_schemas.envelope import Entry, Position

NORMAL, NOTABLE, WARNING = Severity.NORMAL, Severity.NOTABLE, Severity.WARNING
THE_NODE = Object("node", "n")


def entry(type_: str, entity: str, subject: str = "") -> Entry:
    return Entry(Position(1, 1), f"{type_}@1", entity, subject, "", "", b"")


def kube_event(**more: Any) -> dict[str, Any]:
    return {"object_kind": "Pod", "namespace": "a", "name": "web", **more}


@pytest.mark.parametrize(
    ("given", "data", "expected"),
    [
        (entry("pod.PodEnded", "pod/a/web"), {"pod": "a/web"}, Object("pod", "a/web")),
        (entry("pod.ContainerStarted", "pod/a/web", "container/app"), {}, Object("container", "a/web/app")),
        (entry("pod.SandboxStarted", "pod/a/web", "sandbox"), {}, Object("pod", "a/web")),
        (entry("pod.New", "pod/a/web", "container/"), {}, Object("pod", "a/web")),
        (entry("prober.ProbeFailed", "prober/a/web/app/Liveness"), {}, Object("probe", "a/web/app/Liveness")),
        (entry("prober.Odd", "prober/a"), {"pod": "a/web", "container": "app"}, Object("container", "a/web/app")),
        (
            entry("pleg.ContainerDied", "pleg/node"),
            {"pod": "a/web", "container": "app"},
            Object("container", "a/web/app"),
        ),
        (entry("qos.PodAdmitted", "qos/node"), {"pod": "a/web"}, Object("pod", "a/web")),
        (entry("image_gc.RunStarted", "image_gc/node", "run/7"), {"run": 7}, Object("gc", "image_gc")),
        (entry("container_gc.Removed", "container_gc/node", "run/7"), {"pod": "a/web"}, Object("gc", "container_gc")),
        (entry("container_gc.PodNoted", "container_gc/node", "pod/u"), {"pod": "a/web"}, Object("pod", "a/web")),
        (entry("kube_events.Recorded", "pod/a/web"), kube_event(), Object("pod", "a/web")),
        (
            entry("kube_events.Recorded", "pleg/node"),
            kube_event(field_path="spec.initContainers{prepare}"),
            Object("container", "a/web/prepare"),
        ),
        (entry("kube_events.Recorded", "pod/a/web"), kube_event(object_kind="Node", name="n"), THE_NODE),
        (entry("kube_events.Recorded", "pod/a/web"), {}, THE_NODE),
        (entry("kernel.LogStarted", "node/n"), {"node": "n"}, THE_NODE),
        (entry("", ""), "undecodable", THE_NODE),
        (entry("x.Y", "z/1"), {"pod": 5}, THE_NODE),
        (entry("x.Y", "z/1"), {"pod": "no namespace"}, THE_NODE),
        (entry("x.Y", "z/1"), {"pod": "a/web", "container": ["app"]}, Object("pod", "a/web")),
    ],
)
def test_an_entry_is_about_the_smallest_object_that_it_names(given: Entry, data: Any, expected: Object) -> None:
    assert about(given, data, "n") == expected


@pytest.mark.parametrize(
    ("type_", "data", "expected"),
    [
        ("kube_events.Recorded", {"severity": "Warning"}, WARNING),
        ("kube_events.Recorded", {"severity": "Normal", "reason": "Killing"}, NORMAL),
        ("pod.ContainerExited", {}, NORMAL),
        ("pod.ContainerExited", {"exit_code": 143}, NOTABLE),
        ("pod.ContainerExited", {"exit_code": 137}, WARNING),
        ("pod.ContainerExited", {"exit_code": ["odd"]}, WARNING),
        ("pod.SandboxExited", {"exit_code": 137}, NORMAL),
        ("prober.ProbeFailed", {}, WARNING),
        ("prober.ResultChanged", {"result": "failure"}, WARNING),
        ("prober.ResultChanged", {"result": "success"}, NORMAL),
        ("pod.RestartScheduled", {}, NOTABLE),
        ("image_gc.ImageNotRemoved", {}, NOTABLE),
        ("pod.ContainerStarted", {}, NORMAL),
        ("from.TheFuture", "undecodable", NORMAL),
    ],
)
def test_failures_are_warnings_and_retries_are_notable(type_: str, data: Any, expected: Severity) -> None:
    assert severity(entry(type_, "pod/a/web"), data) == expected


@pytest.mark.parametrize(
    ("status", "ready", "expected"),
    [
        ("Running", True, Look.GOOD),
        ("Running", False, Look.WAITING),
        ("Completed", False, Look.IDLE),
        ("Pending", False, Look.WAITING),
        ("Init:0/2", False, Look.WAITING),
        ("Init:Error", False, Look.BAD),
        ("Init:CrashLoopBackOff", False, Look.BAD),
        ("Terminating", True, Look.WAITING),
        ("CrashLoopBackOff", False, Look.BAD),
        ("ExitCode:3", False, Look.BAD),
        ("OOMKilled", False, Look.BAD),
        ("a word of the future", True, Look.BAD),
    ],
)
def test_the_look_of_a_pod_follows_from_its_status(status: str, ready: bool, expected: Look) -> None:
    assert look(status, ready=ready) == expected
