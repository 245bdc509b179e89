"""Formats the page of `describe pod`.

Input: a Pod in API form, its events, and lines about its probes. Output: lines in kubectl's format. Next:
`container_section` and `volume_section`, which format its longest parts. Source: kubectl's pkg/describe (describePod).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.cli.containers import parts
from chronolet.cli.describe import container_section, volume_section
from chronolet.cli.describe.layout import line, mapping, moment, stacked
from chronolet.cli.describe.probe_section import NO_PROBES, Probes
from chronolet.cli.get import pod_rows
from chronolet.cli.printing import ages, table
from chronolet.ports.kube_sinks import last_at
from chronolet.rules.names.kube_event import COMPONENT
from chronolet_schemas.kube_events import Post

Object = dict[str, Any]

_EVENTS = ("Type", "Reason", "Age", "From", "Message")
_TAIL_COLUMN = 29
_GROUPS: tuple[tuple[parts.Kind, str], ...] = (
    ("init", "Init Containers"),
    ("app", "Containers"),
    ("ephemeral", "Ephemeral Containers"),
)


def described(pod: Object, posts: Sequence[Post], now: int, probes: Probes = NO_PROBES) -> Iterator[str]:
    """Yield the lines that `describe pod` prints for a pod."""
    spec, status = pod["spec"], pod.get("status", {})
    yield from _head(pod["metadata"], spec, status, now)
    known = parts.parts(pod)
    for kind, title in _GROUPS:
        group = [part for part in known if part.kind == kind]
        if group or kind == "app":
            yield f"{title}:"
        for part in group:
            yield from container_section.described(part, pod, probes)
    yield from conditions(status.get("conditions", []))
    yield from volume_section.described(spec.get("volumes", []))
    yield line("QoS Class", status.get("qosClass", "BestEffort"), column=_TAIL_COLUMN)
    yield from mapping("Node-Selectors", spec.get("nodeSelector", {}), "=", _TAIL_COLUMN)
    tolerations = [_toleration(one) for one in spec.get("tolerations", [])]
    yield from stacked("Tolerations", tolerations, _TAIL_COLUMN)
    yield from events(posts, now)


def _head(metadata: Object, spec: Object, status: Object, now: int) -> Iterator[str]:
    yield line("Name", metadata["name"])
    yield line("Namespace", metadata["namespace"])
    yield line("UID", metadata["uid"])
    yield line("Priority", str(spec.get("priority", 0)))
    for title, name in (("Priority Class Name", "priorityClassName"), ("Service Account", "serviceAccountName")):
        if spec.get(name):
            yield line(title, spec[name])
    yield line("Node", spec.get("nodeName") or "<none>")
    yield line("Start Time", moment(status.get("startTime")))
    yield from mapping("Labels", metadata.get("labels", {}), "=")
    yield from mapping("Annotations", metadata.get("annotations", {}), ": ")
    yield from _life(metadata, spec, status, now)
    for name in ("reason", "message"):
        if status.get(name):
            yield line(name.capitalize(), status[name])
    yield line("IP", status.get("podIP", ""))
    if status.get("podIPs"):
        yield "IPs:"
        yield from (f"  IP:  {table.plain(one['ip'])}" for one in status["podIPs"])


def _life(metadata: Object, spec: Object, status: Object, now: int) -> Iterator[str]:
    """Yield the status line (the phase, or Terminating) and the settings that govern the pod's lifetime."""
    if metadata.get("deletionTimestamp"):
        # The API's timestamp is the deadline: time of the request plus grace period.
        grace = metadata.get("deletionGracePeriodSeconds", 0)
        since = ages.ago(pod_rows.milliseconds(metadata["deletionTimestamp"]) - grace * 1000, now)
        yield line("Status", f"Terminating (lasts {since})")
        yield line("Termination Grace Period", f"{grace}s")
    else:
        yield line("Status", status.get("phase", "Unknown"))
    if spec.get("activeDeadlineSeconds") is not None:
        yield line("Active Deadline", f"{spec['activeDeadlineSeconds']}s")
    if spec.get("restartPolicy", "Always") != "Always":
        yield line("Restart Policy", spec["restartPolicy"])


def conditions(found: Sequence[Object]) -> Iterator[str]:
    """Yield the table of conditions, with their reasons and messages if they have any."""
    if not found:
        return
    head, rows = ["Type", "Status"], [[one["type"], one["status"]] for one in found]
    if any(one.get("reason") for one in found):
        head += ["Reason", "Message"]
        rows = [[*row, one.get("reason", ""), one.get("message", "")] for row, one in zip(rows, found, strict=True)]
    yield "Conditions:"
    yield from table.lines(head, rows, indent="  ")


def _toleration(one: Object) -> str:
    """Format a toleration as `key=value:Effect op=Exists for 300s`. Source: printTolerationsInColumn."""
    text = one.get("key", "")
    if one.get("value"):
        text += f"={one['value']}"
    if one.get("effect"):
        text += f":{one['effect']}"
    if one.get("operator") and not one.get("value"):
        text += f" op={one['operator']}" if text else f"op={one['operator']}"
    seconds = one.get("tolerationSeconds")
    return text if seconds is None else f"{text} for {seconds}s"


def events(posts: Sequence[Post], now: int) -> Iterator[str]:
    """Yield the table of events that ends a page."""
    if not posts:
        yield line("Events", "<none>", column=_TAIL_COLUMN)
        return
    yield "Events:"
    rows = [(one.severity, one.reason, _age(one, now), COMPONENT, one.message.strip()) for one in posts]
    yield from table.lines(_EVENTS, [["-" * len(name) for name in _EVENTS], *rows], indent="  ")


def _age(post: Post, now: int) -> str:
    last = ages.ago(last_at(post), now)
    return last if post.count == 1 else f"{last} (x{post.count} over {ages.ago(post.first, now)})"
