"""Formats pods as rows in kubectl's format.

Input: Pods in API form with status, as plain data. Output: rows. Next: `get`, `describe`.
Source: pkg/printers/internalversion (printPod).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from chronolet.cli.printing import ages

Object = dict[str, Any]

HEAD = ("NAME", "READY", "STATUS", "RESTARTS", "AGE")
WIDE = ("IP", "NODE", "QOS CLASS")


class Summary(NamedTuple):
    """The values behind a pod's cells READY, STATUS and RESTARTS."""

    ready: int
    total: int
    status: str
    restarts: int
    last_restart: int
    """When the run before the latest restart ended, in milliseconds since the epoch; 0 if there was no restart."""

    def restarted(self, now: ages.Now) -> str:
        """Format the RESTARTS cell: `0`, or `5 (2m ago)`."""
        tail = f" ({ages.ago(self.last_restart, now)} ago)" if self.restarts and self.last_restart else ""
        return f"{self.restarts}{tail}"


def row(pod: Object, now: ages.Now, *, namespaced: bool, wide: bool, labelled: bool = False) -> list[str]:
    """Return the cells of one pod."""
    summary = summarized(pod)
    metadata, status = pod["metadata"], pod.get("status", {})
    cells = [metadata["namespace"]] if namespaced else []
    cells += [
        metadata["name"],
        f"{summary.ready}/{summary.total}",
        summary.status,
        summary.restarted(now),
        ages.ago(milliseconds(metadata.get("creationTimestamp")), now),
    ]
    if wide:
        node = pod["spec"].get("nodeName") or "<none>"
        cells += [status.get("podIP") or "<none>", node, status.get("qosClass") or "<none>"]
    return [*cells, labels(pod)] if labelled else cells


def head(*, namespaced: bool, wide: bool, labelled: bool = False) -> list[str]:
    """Return the column names."""
    last = ("LABELS",) if labelled else ()
    return [*(("NAMESPACE",) if namespaced else ()), *HEAD, *(WIDE if wide else ()), *last]


def labels(pod: Object) -> str:
    """Format the LABELS cell."""
    found = pod["metadata"].get("labels", {})
    return ",".join(f"{name}={value}" for name, value in sorted(found.items())) or "<none>"


def summarized(pod: Object) -> Summary:
    """Compute the summary from a pod's status."""
    status = pod.get("status", {})
    sidecars = frozenset(
        one["name"] for one in pod["spec"].get("initContainers", []) if one.get("restartPolicy") == "Always"
    )
    init, apps = status.get("initContainerStatuses", []), status.get("containerStatuses", [])
    given = {one["type"]: one["status"] == "True" for one in status.get("conditions", [])}
    started, word = _initialising(init, sidecars)
    counted = init
    if not word or given.get("Initialized"):
        counted = [*(one for one in init if one["name"] in sidecars), *apps]
        started += apps
        default = word or status.get("reason") or status.get("phase", "Unknown")
        word = _word(default, apps, ready=given.get("Ready", False))
    if pod["metadata"].get("deletionTimestamp") and status.get("phase") not in ("Succeeded", "Failed"):
        word = "Terminating"
    return Summary(
        ready=sum(1 for one in started if one.get("ready") and "running" in one.get("state", {})),
        total=len(pod["spec"].get("containers", [])) + len(sidecars),
        status=word,
        restarts=sum(one.get("restartCount", 0) for one in counted),
        last_restart=max((_finished(one) for one in counted), default=0),
    )


def _initialising(init: Sequence[Object], sidecars: Collection[str]) -> tuple[list[Object], str]:
    """Return the started sidecars, up to the first init container that has neither succeeded nor, as a sidecar,
    started; and the status word of that container, empty if there is none.
    """
    started = list[Object]()
    for number, one in enumerate(init):
        state = one.get("state", {})
        waiting, terminated = state.get("waiting", {}), state.get("terminated")
        if terminated is not None and terminated.get("exitCode", 0) == 0:
            continue
        if one["name"] in sidecars and one.get("started"):
            started.append(one)
        elif terminated is not None:
            return started, "Init:" + (terminated.get("reason") or f"ExitCode:{terminated['exitCode']}")
        elif waiting.get("reason", "PodInitializing") != "PodInitializing":
            return started, f"Init:{waiting['reason']}"
        else:
            return started, f"Init:{number}/{len(init)}"
    return started, ""


def _word(word: str, containers: Sequence[Object], *, ready: bool) -> str:
    """Return the status word: the reason (or exit code) of the first container that waits with a reason or has
    terminated, else `word`. If that gives `Completed` while another container is ready, return `Running`, or `NotReady`
    if the pod is not ready.
    """
    running = False
    for one in reversed(containers):
        state = one.get("state", {})
        waiting, terminated = state.get("waiting", {}), state.get("terminated")
        if waiting.get("reason"):
            word = waiting["reason"]
        elif terminated is not None:
            word = terminated.get("reason") or f"ExitCode:{terminated.get('exitCode', 0)}"
        elif "running" in state and one.get("ready"):
            running = True
    if word == "Completed" and running:
        return "Running" if ready else "NotReady"
    return word


def _finished(container: Object) -> int:
    """Return when the previous run finished, in milliseconds since the epoch; 0 if there was none."""
    return milliseconds(container.get("lastState", {}).get("terminated", {}).get("finishedAt"))


def milliseconds(moment: str | None) -> int:
    """Convert an RFC 3339 time to milliseconds since the epoch. Return 0 if it is None or empty."""
    return int(datetime.fromisoformat(moment).timestamp() * 1000) if moment else 0


def bare_id(container_id: str) -> str:
    """Return the container id without its scheme: `docker://abc` -> `abc`."""
    return container_id.rpartition("//")[2]
