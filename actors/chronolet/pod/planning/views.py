"""Views of a pod's state for `actions`. Pure.

Input: State. Output: `PodView`. Next: `plan`.
"""

from __future__ import annotations

from chronolet.pod.planning import probing
from chronolet.pod.planning.actions import ContainerView, InitView, PodView, SandboxView
from chronolet.pod.state import Container, State
from chronolet_schemas import pod


def pod_view(state: State) -> PodView:
    """Return the pod as the kubelet would find it in the runtime."""
    seen = ((one.name, container_view(state, one)) for one in state.containers)
    return PodView(
        policy=state.manifest.spec.restart_policy,
        apps=tuple(one.name for one in state.of_kind("app")),
        init=tuple(
            InitView(
                name=one.name,
                restartable=one.kind == "sidecar",
                startup_probe="Startup" in probing.wanted(state, one),
            )
            for one in state.of_kind("init", "sidecar")
        ),
        ephemeral=tuple(one.name for one in state.of_kind("ephemeral")),
        host_network=state.manifest.spec.host_network,
        sandboxes=_sandboxes(state),
        containers={name: view for name, view in seen if view.seen != "never_seen"},
    )


def container_view(state: State, one: Container) -> ContainerView:
    """Return the view of one container. A container that is being started or stopped counts as running until it is
    known to have ended.
    """
    if one.phase == "running":
        return ContainerView(
            seen="running",
            definition_changed=one.spec_hash != state.container_hashes.get(one.name, ""),
            startup=probing.result(one, "Startup"),
            liveness=probing.result(one, "Liveness"),
        )
    if one.alive:
        return ContainerView(seen="running")
    if one.exit is None:
        return ContainerView(seen="never_seen")
    active = one.exit.sandbox_id == state.sandbox.id
    if one.stop is not None and _starts_again(state, one.stop.reason):
        # We stopped it to restart it, which the kubelet does in the same sync, whatever the exit code.
        return ContainerView(seen="created", active=active)
    return ContainerView(seen="exited", exit_code=one.exit.exit_code, active=active)


def _starts_again(state: State, reason: pod.StopReason) -> bool:
    if reason in probing.FAILED:
        return state.manifest.spec.restart_policy != "Never"
    return reason in ("SpecChanged", "SandboxGone")


def sandbox_good(state: State) -> bool:
    """Whether the current sandbox is running, matches the spec and is not blocked."""
    sandbox = state.sandbox
    return sandbox.phase == "running" and sandbox.spec_hash == state.sandbox_hash and not sandbox.blocked


def _sandboxes(state: State) -> tuple[SandboxView, ...]:
    sandbox = state.sandbox
    # A runtime that reports no address must not cause a new sandbox.
    ip = sandbox.ip or "none"
    match sandbox.phase:
        case "absent":
            return ()
        case "failed":
            # The next start reuses the failed sandbox's number: the newest sandbox that existed is the one before it.
            before = SandboxView(ready=False, attempt=sandbox.attempt - 1, ip=ip)
            return (before,) if sandbox.attempt else ()
        case _:
            return (SandboxView(ready=sandbox_good(state), attempt=sandbox.attempt, ip=ip),)
