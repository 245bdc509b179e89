"""Points to the output of containers at a moment of the past: the log of the node has no output, the container's log
has.

Input: the containers of pods as they were at that moment. Output: a row for each, with the id of its run and a command
that prints what the run had written until then. Next: `logs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronolet.cli.containers.log_target import run_of
from chronolet.cli.containers.parts import Part
from chronolet.cli.printing import ages

Object = dict[str, Any]

HEAD = ("POD", "CONTAINER", "STATE", "STARTED", "FINISHED", "READ WITH")
_NONE = "<none>"


def rows(found: Iterable[tuple[str, Part]], moment: int, *, previous: bool) -> list[list[str]]:
    """Return the row of each container of a pod, given with the pod's name. `moment`: in milliseconds since the epoch.
    `previous`: point to the run before. Raises Failure if a container had no such run.
    """
    return [_row(pod, part, moment, previous=previous) for pod, part in found]


def _row(pod: str, part: Part, moment: int, *, previous: bool) -> list[str]:
    run = run_of(part, pod, previous=previous)
    state, times = _state_of(part.status, run)
    read = f"docker logs --until {ages.rfc3339(moment, fraction=True)} {run}"
    return [pod, part.name, state, times.get("startedAt") or _NONE, times.get("finishedAt") or _NONE, read]


def _state_of(status: Object, run: str) -> tuple[str, Object]:
    """Return the state of a run, with its times: that of the container, or its last one."""
    for states in (status.get("state", {}), status.get("lastState", {})):
        for name, found in states.items():
            own = status if name == "running" else found
            if str(own.get("containerID", "")).endswith(run):
                return name, found
    return "unknown", {}
