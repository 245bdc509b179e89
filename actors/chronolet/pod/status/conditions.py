"""Derives a pod's conditions (Initialized, ContainersReady, Ready) from its containers' readiness. Pure.

Input: whether each container is ready or initialized, by name; the phase; readiness gates. Output: `Condition`. Next:
`status`. Source: pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from chronolet.pod.status.phase import Phase


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition. `unknown`, `lacking` and `gates` name the containers and gates that keep it from being true;
    `lack` is the status of those in `lacking`.
    """

    status: bool
    reason: str = ""
    unknown: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    lack: str = ""
    gates: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The kubelet's message for this condition."""
        parts = [f"containers with unknown status: [{' '.join(self.unknown)}]"] if self.unknown else []
        if self.lacking:
            parts.append(f"containers with {self.lack} status: [{' '.join(self.lacking)}]")
        parts += [f'the status of pod readiness gate "{gate}" is not "True"' for gate in self.gates]
        return ", ".join(parts)


def containers_ready(
    containers: Sequence[str], ready: Mapping[str, bool] | None, phase: Phase, sidecars: Sequence[str] = ()
) -> Condition:
    """Return the condition ContainersReady. `ready`: whether each container is ready, by name; None if no status is
    known.
    """
    if ready is None:
        return Condition(status=False, reason="UnknownContainerStatuses")
    names = (*sidecars, *containers)
    unknown = tuple(name for name in names if name not in ready)
    lacking = tuple(name for name in names if ready.get(name) is False)
    if phase == "Succeeded" and not unknown:
        return Condition(status=False, reason="PodCompleted")
    if phase == "Failed":
        return Condition(status=False, reason="PodFailed")
    if unknown or lacking:
        return Condition(status=False, reason="ContainersNotReady", unknown=unknown, lacking=lacking, lack="unready")
    return Condition(status=True)


def pod_ready(containers: Condition, gates: Sequence[str], known: Mapping[str, str]) -> Condition:
    """Return the condition Ready: true if the containers are ready and no readiness gate names a condition that is
    `known` to be other than True.

    Unlike in a kubelet, a condition without a value does not block, because no controller exists here to set it.
    """
    if not containers.status:
        return containers
    unmet = tuple(gate for gate in gates if known.get(gate, "True") != "True")
    return Condition(status=not unmet, reason="ReadinessGatesNotReady" if unmet else "", gates=unmet)


def initialised(
    done: Mapping[str, bool] | None, names: Sequence[str], phase: Phase, *, app_ran: bool = False
) -> Condition:
    """Return the condition Initialized. `names`: the init containers. `done`: by name, whether each of them has
    completed (a sidecar: whether it has started). `app_ran`: whether an app container ran in the current sandbox, which
    happens only after initialisation; a sidecar's restart does not undo that (HasAnyActiveRegularContainerStarted).
    """
    if done is None and names:
        return Condition(status=False, reason="UnknownContainerStatuses")
    known = done or {}
    unknown = tuple(name for name in names if name not in known)
    lacking = tuple(name for name in names if known.get(name) is False)
    if phase == "Succeeded" and not unknown:
        return Condition(status=True, reason="PodCompleted")
    if not app_ran and (unknown or lacking):
        return Condition(
            status=False, reason="ContainersNotInitialized", unknown=unknown, lacking=lacking, lack="incomplete"
        )
    return Condition(status=True)
