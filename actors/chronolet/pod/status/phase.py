"""A pod's phase, derived from its containers' statuses. Pure.

Input: the restart policy and a status for each container. Output: Pending, Running, Succeeded or Failed. Next:
`status`. Source: pkg/kubelet/kubelet_pods.go (getPhase).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from chronolet_schemas.podspec import RestartPolicy

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about one container on which the phase depends.

    `state` is `missing` if the container has no status. `exit_code` belongs to a termination, `last_exit_code` to the
    termination before a wait (None if there was none). `started` and `restartable` matter for sidecars.
    """

    state: Literal["missing", "waiting", "running", "terminated"]
    exit_code: int = 0
    last_exit_code: int | None = None
    started: bool = False
    restartable: bool = False

    @property
    def stopped(self) -> bool:
        """Whether the container has run and is not running now."""
        return self.state == "terminated" or (self.state == "waiting" and self.last_exit_code is not None)

    @property
    def succeeded(self) -> bool:
        """Whether the container terminated with exit code 0 and does not wait for a restart."""
        return self.state == "terminated" and self.exit_code == 0

    @property
    def awaits_first_run(self) -> bool:
        """Whether the container waits for its first run."""
        return self.state == "waiting" and self.last_exit_code is None


def pod_phase(
    policy: RestartPolicy, init: Sequence[Status], apps: Sequence[Status], *, pod_is_terminal: bool = False
) -> Phase:
    """Return the phase. `pod_is_terminal`: whether no container of the pod is running or will run again."""
    plain = [one for one in init if not one.restartable]
    sidecars = [one for one in init if one.restartable]
    if policy == "Never" and any(_failed(one) for one in plain):
        return "Failed"
    if _initialising(plain, sidecars, apps):
        return "Pending"
    unknown = any(one.state == "missing" for one in (*sidecars, *apps))
    if any(one.state == "running" for one in (*sidecars, *apps)):
        return "Pending" if unknown else "Running"
    if unknown or not any(one.stopped for one in apps):
        return "Pending"
    return _ended(policy, all(one.succeeded for one in apps), pod_is_terminal=pod_is_terminal)


def _failed(one: Status) -> bool:
    code = one.exit_code if one.state == "terminated" else one.last_exit_code
    return one.stopped and code != 0


def _initialising(plain: Sequence[Status], sidecars: Sequence[Status], apps: Sequence[Status]) -> bool:
    """Whether a plain init container has not ended, another container waits for its first run, or, before any app
    container has run, a sidecar has not started.
    """
    if any(not one.stopped for one in plain) or any(one.awaits_first_run for one in (*sidecars, *apps)):
        return True
    # Once an app container has run, a restarting sidecar does not return the pod to Pending.
    apps_ran = any(one.state == "running" or one.stopped for one in apps)
    return not apps_ran and any(one.state == "missing" or _starting(one) for one in sidecars)


def _starting(one: Status) -> bool:
    return one.state == "running" and not one.started


def _ended(policy: RestartPolicy, succeeded: bool, *, pod_is_terminal: bool) -> Phase:
    """Return the phase if no container is running or waits for its first run."""
    if policy == "Always" and not pod_is_terminal:
        return "Running"
    if succeeded:
        return "Succeeded"
    return "Failed" if pod_is_terminal or policy == "Never" else "Running"
