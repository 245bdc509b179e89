"""Determines which object of the page an entry is about, and how important it is. Pure.

Input: an entry, its data as plain data. Output: an object, a severity. Next: `viewer`.
"""

from __future__ import annotations

import re
from typing import Any

from chronolet.cli.history.page.node import COLLECTOR_KINDS, COLLECTORS, NODE, PROBES
from chronolet.cli.history.page.pods import CONTAINERS, PODS
from chronolet.history.page.viewing import Object, Severity
from chronolet_schemas.envelope import Entry

_KUBE_EVENT = "kube_events.Recorded@"
_FIELD = re.compile(r"spec\.(?:init|ephemeral)?[cC]ontainers\{(.+)\}")
"""The field path of a KubeEvent about a container."""
_WARNINGS = ("prober.ProbeFailed@", "pod.PodFailed@")
_RESULT = "prober.ResultChanged@"
_EXITED = "pod.ContainerExited@"
_TERMINATED = 128 + 15
"""The exit code of a program that SIGTERM has ended, as most stops do."""
_NOTABLE = re.compile(r"Fail|Refused|Rejected|NotRemoved|GivenUp|Unjudged|Delayed|Kill|Lost|BackOff|Restart")


def about(entry: Entry, data: Any, node: str) -> Object:
    """Return the object: a probe, container or pod, a collector, or else the node."""
    fields = data if isinstance(data, dict) else {}
    kind, _, key = entry.entity.partition("/")
    if entry.type.startswith(_KUBE_EVENT):
        return _of_kube_event(fields) or Object(NODE.name, node)
    if kind == "prober" and key.count("/") >= 3:  # noqa: PLR2004 - namespace/pod/container/PROBE
        return Object(PROBES.name, key)
    if kind in COLLECTOR_KINDS and entry.subject.startswith("run/"):
        return Object(COLLECTORS.name, kind)
    pod = key if kind == "pod" else fields.get("pod")
    if not isinstance(pod, str) or "/" not in pod:
        return Object(NODE.name, node)
    container = entry.subject.removeprefix("container/") if kind == "pod" else fields.get("container")
    if container and isinstance(container, str) and container != (entry.subject if kind == "pod" else ""):
        return Object(CONTAINERS.name, f"{pod}/{container}")
    return Object(PODS.name, pod)


def _of_kube_event(fields: dict[str, Any]) -> Object | None:
    if fields.get("object_kind") != "Pod":
        return None
    pod = f"{fields.get('namespace')}/{fields.get('name')}"
    field = _FIELD.fullmatch(str(fields.get("field_path", "")))
    return Object(CONTAINERS.name, f"{pod}/{field[1]}") if field else Object(PODS.name, pod)


def severity(entry: Entry, data: Any) -> Severity:
    """Return how important the entry is. Warnings are failures of pods, containers and probes, and KubeEvents of that
    type. A container that was killed counts as failed, as its exit code does not tell who killed it.
    """
    fields = data if isinstance(data, dict) else {}
    if entry.type.startswith(_KUBE_EVENT):
        return Severity.WARNING if fields.get("severity") == "Warning" else Severity.NORMAL
    if entry.type.startswith(_EXITED):
        code = fields.get("exit_code", 0)
        return Severity.NORMAL if code == 0 else Severity.NOTABLE if code == _TERMINATED else Severity.WARNING
    failed = entry.type.startswith(_RESULT) and fields.get("result") == "failure"
    if failed or entry.type.startswith(_WARNINGS):
        return Severity.WARNING
    return Severity.NOTABLE if _NOTABLE.search(entry.type) else Severity.NORMAL
