"""A pod's conditions, from its containers' flags. Pure.

Comes in: names with flags, the phase, readiness gates. Goes out: `Condition`. Next: `status`. Source:
pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from chronolet.pod.status.phase import Phase


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition. The names say which containers or gates stand in the way."""

    status: bool
    reason: str = ""
    unknown: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    lack: str = ""
    gates: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The kubelet's text."""
        parts = [f"containers with unknown status: [{' '.join(self.unknown)}]"] if self.unknown else []
        if self.lacking:
            parts.append(f"containers with {self.lack} status: [{' '.join(self.lacking)}]")
        parts += [f'the status of pod readiness gate "{gate}" is not "True"' for gate in self.gates]
        return ", ".join(parts)


def containers_ready(
    containers: Sequence[str], ready: Mapping[str, bool] | None, phase: Phase, sidecars: Sequence[str] = ()
) -> Condition:
    """ContainersReady. `ready` by name; None if no status is known at all."""
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
    """Ready: the containers are, and no readiness gate names a condition that is `known` not to be `True`.

    Unlike a kubelet: a condition that nobody states holds nothing up, for no controller is here to state it.
    """
    if not containers.status:
        return containers
    shut = tuple(gate for gate in gates if known.get(gate, "True") != "True")
    return Condition(status=not shut, reason="ReadinessGatesNotReady" if shut else "", gates=shut)


def initialised(
    done: Mapping[str, bool] | None, names: Sequence[str], phase: Phase, *, app_ran: bool = False
) -> Condition:
    """Initialized. `names` are the init containers; `done` says of each whether it is (a sidecar: whether it
    started). `app_ran`: an app container came to run in the sandbox at hand, which it does after initialisation only. A
    sidecar that starts again takes nothing of that back (HasAnyActiveRegularContainerStarted).
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
